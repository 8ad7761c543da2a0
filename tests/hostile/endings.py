"""How reading a file ends: well, or in an ``InputError`` whose words can be printed and say something."""

import warnings
from pathlib import Path

from sapp_ppb.errors import InputError
from tests.hostile.readers import Reader

LONGEST_FAULT = 3000  # characters


def faults_of(reader: Reader, path: Path) -> tuple[str, ...]:
    """Faults that a file is refused for, none when it is read; anything else is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reader.read(path)
        except InputError as error:
            where, faults = error.where, error.faults
        else:
            return ()
    wrong = [fault for fault in faults if not is_said(fault)]
    assert not wrong, f"{reader.name}: {wrong[0][:200]!r}"
    assert where
    assert faults
    return faults


def is_said(fault: str) -> bool:
    """Whether a fault is a sentence that does nothing to a terminal."""
    is_printable = all(line.isprintable() for line in fault.split("\n"))
    return is_printable and 0 < len(fault.strip()) <= LONGEST_FAULT


def faults_of_content(reader: Reader, content: bytes, folder: Path) -> tuple[str, ...]:
    """Faults of a content under the reader's file name."""
    path = folder / reader.file_name
    path.write_bytes(content)
    return faults_of(reader, path)
