"""Text to a path, whole or not at all."""

import os
import secrets
import shutil
from os import PathLike
from pathlib import Path

from sapp_ppb.errors import InputError


def write_text_atomic(path: str | PathLike[str], text: str, force: bool = False) -> None:
    """
    Write UTF-8 text to a file so that nobody ever sees half of it.

    The text goes to a temporary file in the same folder, which then takes the
    name.  Missing parent folders are made.  A symbolic link stays one: the file it
    leads to is replaced.

    Parameters
    ----------
    path
        File to write.
    text
        Its whole content; line ends are written as they are.
    force
        Replace a file that exists.

    Raises
    ------
    InputError
        If the file exists and ``force`` is not set, or if it can not be written:
        the path is a folder or a device, it is not permitted, or the disk is full.
        What was there before is then untouched.
    """
    where = str(path)
    try:
        content = text.encode("utf-8")
        target = Path(os.path.realpath(path))
        _check_target(where, target, force=force)
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, content)
    except UnicodeEncodeError as error:
        raise InputError(where, [f"can not be written as UTF-8 ({error.reason})"]) from None
    except FileExistsError:
        raise InputError(where, ["a file stands where a folder is needed; choose another path"]) from None
    except OSError as error:
        raise InputError(where, [f"can not be written ({error.strerror}); choose another path"]) from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(where, [f"can not be written ({error}); choose another path"]) from None


def _check_target(where: str, target: Path, *, force: bool) -> None:
    """Refuse a target that is a folder or a device, or that exists when it must not."""
    if target.is_dir():
        raise InputError(where, ["is a folder; name a file in it"])
    if target.exists() and not target.is_file():
        raise InputError(where, ["is no ordinary file; choose another path"])
    if target.exists() and not force:
        raise InputError(where, ["the file exists; give --force (force=True) to replace it"])


def _replace(target: Path, content: bytes) -> None:
    """Write a temporary file beside the target and let it take the target's name."""
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:  # x: made with the permissions that the user's umask gives
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    except BaseException:  # an interrupt leaves nothing behind either
        temporary.unlink(missing_ok=True)
        raise
