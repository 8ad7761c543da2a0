"""What two archives, or an archive and a list of files, do not have in common."""

import tarfile
import zipfile
from pathlib import Path


def members(archive: Path) -> dict[str, tuple[object, ...]]:
    """
    Read what an archive holds.

    Parameters
    ----------
    archive
        A wheel (``.whl``) or an sdist (``.tar.gz``).

    Returns
    -------
    dict
        For every file by its name, that of an sdist without its top folder: what it
        contains, when it was changed and its permissions.
    """
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as file:
            return {
                each.filename: (file.read(each), each.date_time, each.external_attr)
                for each in file.infolist()
            }
    with tarfile.open(archive) as tar:
        found: dict[str, tuple[object, ...]] = {}
        for entry in tar:
            content = tar.extractfile(entry)
            if content is not None:
                owner = (entry.uid, entry.gid, entry.uname, entry.gname)
                found[entry.name.split("/", 1)[1]] = (content.read(), entry.mtime, entry.mode, owner)
        return found


def differences(one: Path, other: Path) -> list[str]:
    """
    Say in what two archives differ; empty when they are the same bytes.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     paths = [Path(folder) / name for name in ("a.whl", "b.whl")]
    ...     for path in paths:
    ...         with zipfile.ZipFile(path, "w") as file:
    ...             file.writestr("module.py", f"# {path.stem}")
    ...     differences(*paths)
    ['module.py: not the same in both']
    """
    if one.read_bytes() == other.read_bytes():
        return []
    ours, theirs = members(one), members(other)
    found = [f"{name}: only in {one}" for name in sorted(ours.keys() - theirs.keys())]
    found += [f"{name}: only in {other}" for name in sorted(theirs.keys() - ours.keys())]
    names = sorted(ours.keys() & theirs.keys())
    found += [f"{name}: not the same in both" for name in names if ours[name] != theirs[name]]
    return found or [f"{one.name}: the same files, packed in another order or by another program"]


def misplaced(archive: Path, expected: set[str]) -> list[str]:
    """
    Say what an archive lacks and what does not belong there.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.whl"
    ...     with zipfile.ZipFile(path, "w") as file:
    ...         file.writestr("notes.txt", "of a developer")
    ...     misplaced(path, {"module.py"})
    ['a.whl lacks module.py', 'a.whl should not hold notes.txt']
    """
    held = members(archive).keys()
    lacking = [f"{archive.name} lacks {name}" for name in sorted(expected - held)]
    return lacking + [f"{archive.name} should not hold {name}" for name in sorted(held - expected)]
