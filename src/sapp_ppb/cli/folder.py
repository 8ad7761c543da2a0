"""Where results go: a folder is checked before any time is spent on what it will hold."""

import os
from pathlib import Path

from sapp_ppb.errors import InputError


def output_folder(output: str) -> Path:
    """Refuse an empty name, which would be the folder that one happens to be in."""
    if not output.strip():
        raise InputError("--output", [f"must name a folder (got {output!r}); this one is named ."])
    return Path(output)


def free_path(path: Path, *, force: bool) -> Path:
    """Refuse a file that exists or can not be written before any time is spent on its content."""
    if path.is_dir():
        raise InputError(str(path), [f"is a folder where {path.name} should be; give another --output"])
    if path.exists() and not force:
        raise InputError(str(path), ["the file exists; give --force to replace it"])
    # Folders that are missing are made, in the nearest one that is there.
    there = next((folder for folder in path.parents if folder.exists()), path.parent)
    if not there.is_dir():
        raise InputError(str(there), ["is no folder; give --output a folder"])
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(str(there), ["the folder may not be written to; give another --output"])
    return path
