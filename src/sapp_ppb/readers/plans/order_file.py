"""The file of a custom order, in PyTorch's notation; what it says is judged by the schedule."""

from os import PathLike
from pathlib import Path

from sapp_ppb.errors import InputError
from sapp_ppb.files import is_there
from sapp_ppb.readers.formats.text_file import read_text
from sapp_ppb.schedules import OrderFile

_LARGEST_MB = 64


def read_order(path: str | PathLike[str], sha256: str | None = None, beside: Path | None = None) -> OrderFile:
    """
    Order of a CSV file.

    Parameters
    ----------
    path
        CSV file, a line a stage; the order keeps it as it is given.
    sha256
        Hash that the file must have, hexadecimal; None takes any.
    beside
        Folder in which a relative path is looked for when it is not found from here.

    Raises
    ------
    InputError
        If the file can not be read, or has another hash.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "order.csv").write_text("0F0,0B0")
    ...     read_order("order.csv", beside=Path(folder)).text
    '0F0,0B0'
    """
    place = Path(path)
    if beside is not None and not place.is_absolute() and not is_there(place):
        place = beside / place if is_there(beside / place) else place
    order = OrderFile(
        path=str(path),
        text=read_text(place, largest_mb=_LARGEST_MB, format_name="the order of every stage", keep_mark=True),
    )
    if sha256 is not None and sha256 != order.sha256:
        raise InputError(
            str(path),
            [
                f"the order is not the one that was planned with: its SHA-256 is {order.sha256[:12]}... and "
                f"not {sha256[:12]}...; bring that file back, or plan again"
            ],
        )
    return order
