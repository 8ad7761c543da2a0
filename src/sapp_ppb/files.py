"""A file is written whole or not at all."""

import errno
import os
import secrets
import select
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from sapp_ppb.errors import InputError

# Names of temporary files begin and end so.
_TEMPORARY = (".sapp-ppb-", ".tmp")
_WRITER_MS = 2000  # for somebody to write into a pipe
_EXISTS = "the file exists; give --force (force=True) to replace it"


def is_there(path: str | PathLike[str]) -> bool:
    """
    Whether a path leads to anything; not, for one that may not be followed or that can not exist.

    Examples
    --------
    >>> is_there("/"), is_there("x" * 5000)
    (True, False)
    """
    return os.path.exists(path)  # noqa: PTH110  Path.exists() raises where it may not look, and for long names


def is_folder(path: str | PathLike[str]) -> bool:
    """
    Whether a path leads to a folder; not, for one that may not be followed or that can not exist.

    Examples
    --------
    >>> is_folder("/"), is_folder("x" * 5000)
    (True, False)
    """
    return os.path.isdir(path)  # noqa: PTH112  as above


def opened(path: str | PathLike[str]) -> BinaryIO:
    """
    Open a file for reading; a pipe that nobody opens for writing within two seconds is an empty file.

    A pipe with a writer is read to its end as usual.

    Raises
    ------
    OSError, ValueError
        As ``open()``; OSError for a null character too, of which every Python says something else.

    Examples
    --------
    >>> with opened(os.devnull) as file:
    ...     file.read()
    b''
    """
    if "\0" in os.fspath(path):
        raise OSError(errno.EINVAL, "no path holds a null character")
    return open(path, "rb", opener=_without_waiting)


def _without_waiting(path: str, flags: int) -> int:
    found = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if hasattr(select, "poll") and stat.S_ISFIFO(os.fstat(found).st_mode):
        writer = select.poll()
        writer.register(found, select.POLLIN)
        writer.poll(_WRITER_MS)
    if hasattr(os, "set_blocking"):
        os.set_blocking(found, True)
    return found


@contextmanager
def whole_file(path: str | PathLike[str], force: bool = False) -> Iterator[BinaryIO]:
    """
    Open a file for writing so that nobody ever sees half of it.

    What is written goes to a temporary file in the same folder, which takes the name
    at the end.  Missing parent folders are made.  A symbolic link stays one: the file
    it leads to is replaced.

    Parameters
    ----------
    path
        File to write.
    force
        Replace a file that exists.

    Raises
    ------
    InputError
        If the file exists and ``force`` is not set, or if it can not be written:
        the path is a folder or a device, it is not permitted, or the disk is full.
        What was there before is then untouched.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with whole_file(f"{folder}/new.txt") as file:
    ...         _ = file.write(b"abc")
    ...         before = Path(f"{folder}/new.txt").exists()
    ...     print(before, Path(f"{folder}/new.txt").stat().st_size)
    False 3
    """
    where = str(path)
    target = _target(path, force=force)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _replacement(target, force=force) as file:
            yield file
    except FileExistsError:
        raise InputError(where, ["a file stands where a folder is needed; choose another path"]) from None
    except OSError as error:
        raise _not_written(where, error.strerror) from None


def write_text_atomic(path: str | PathLike[str], text: str, force: bool = False) -> None:
    """
    Write UTF-8 text to a file, line ends as they are, so that nobody ever sees half of it.

    Parameters
    ----------
    path, force
        As of ``whole_file``.
    text
        Its whole content.

    Raises
    ------
    InputError
        As ``whole_file`` does, and if the text is no Unicode.
    """
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(str(path), [f"can not be written as UTF-8 ({error.reason})"]) from None
    with whole_file(path, force) as file:
        file.write(content)


def _target(path: str | PathLike[str], *, force: bool) -> Path:
    """Refuse a target that is a folder or a device, or that exists when it must not."""
    where = str(path)
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise InputError(where, ["is a folder; name a file in it"])
        if target.exists() and not target.is_file():
            raise InputError(where, ["is no ordinary file; choose another path"])
        if target.exists() and not force:
            raise InputError(where, [_EXISTS])
    except InputError:
        raise
    except OSError as error:
        raise _not_written(where, error.strerror) from None
    except ValueError as error:  # no file system has such a name
        raise _not_written(where, error) from None
    return target


def _not_written(where: str, why: object) -> InputError:
    return InputError(where, [f"can not be written ({why}); choose another path"])


@contextmanager
def alone_in(folder: str | PathLike[str]) -> Iterator[None]:
    """
    Wait until no other run writes into a folder, so that the files of two are never mixed.

    A folder that is missing is made.  Where that can not be, or the system has no such
    locks, nobody is waited for.
    """
    with ExitStack() as stack:
        with suppress(OSError):
            Path(folder).mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            lock(descriptor, wait=True)
        yield


def lock(descriptor: int, *, wait: bool = False) -> bool | None:
    """
    Take the lock of an open file or folder, which the system gives back when the process ends.

    Returns
    -------
    bool or None
        False where another one has it; None where there are no locks.
    """
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


@contextmanager
def _replacement(target: Path, *, force: bool) -> Iterator[BinaryIO]:
    """Open a temporary file beside the target; at the end it takes the target's name."""
    _remove_left_over(target.parent)
    with _temporary(target.parent) as (temporary, file):
        yield file
        file.flush()
        os.fsync(file.fileno())
        if os.name == "nt":  # renames no file that is open
            file.close()
        if target.exists():
            shutil.copymode(target, temporary)
        _rename(temporary, target, force=force)


@contextmanager
def _temporary(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Make a file that is locked as long as this process writes it, and is gone afterwards."""
    path = folder / f"{_TEMPORARY[0]}{secrets.token_hex(8)}{_TEMPORARY[1]}"
    try:
        with _locked(path) as file:
            yield path, file
    finally:  # an interrupt leaves nothing behind either
        path.unlink(missing_ok=True)


def _locked(path: Path) -> BinaryIO:
    """Make a file and lock it; once more where another run took it for one left over meanwhile."""
    while True:
        file = path.open("xb")  # x: made with the permissions that the user's umask gives
        lock(file.fileno(), wait=True)
        if path.exists():
            return file
        file.close()


def _rename(temporary: Path, target: Path, *, force: bool) -> None:
    """Give a file its name; without force never in the place of one that came meanwhile."""
    if not force:
        try:
            os.link(temporary, target)
        except FileExistsError:
            raise InputError(str(target), [_EXISTS]) from None
        except OSError:  # a file system without hard links
            if target.exists():
                raise InputError(str(target), [_EXISTS]) from None
        else:
            return
    temporary.replace(target)


def _remove_left_over(folder: Path) -> None:
    """Remove the temporary files of processes that were killed: those that nobody has locked."""
    for path in folder.glob("*".join(_TEMPORARY)):
        if path.is_symlink() or not path.is_file():  # a pipe would be waited for
            continue
        with suppress(OSError), path.open("rb") as file:
            if lock(file.fileno()):
                path.unlink(missing_ok=True)
