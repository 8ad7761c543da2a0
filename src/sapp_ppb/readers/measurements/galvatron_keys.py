"""What the two files of a Galvatron profile share: how they are opened and what their keys say."""

import math
import warnings
from dataclasses import dataclass, field
from os import PathLike

from sapp_ppb.costs.checks import listed, number_fault, shown
from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.readers.formats.json_file import read_document

LENGTH = r"[1-9]\d{0,8}"
SEQUENCES = rf"(\[{LENGTH}(?:,{LENGTH})*\]|{LENGTH})"  # one length, or one a kind of layer
_LARGEST = 1e7  # 3 hours or 10 TB in one layer is a slip of the unit


def sequences_of(text: str) -> tuple[int, ...]:
    """
    Sequence lengths of a key.

    Examples
    --------
    >>> sequences_of("2048"), sequences_of("[512,128]")
    ((2048,), (512, 128))
    """
    return tuple(int(length) for length in text.strip("[]").split(","))


@dataclass
class Findings:
    """What is gathered on the way through a file."""

    path: str
    faults: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def number(self, place: str, value: object, *, above_zero: bool = False) -> float:
        """Read a number of milliseconds or MB; 0 where it has a fault."""
        if isinstance(value, float) and not math.isfinite(value):
            return 0.0  # the JSON reader has named it
        fault = number_fault(place, value, above_zero=above_zero)
        if not isinstance(value, int | float) or fault:
            self.faults.append(str(fault))
            return 0.0
        if value > _LARGEST:
            self.faults.append(
                f"{place} must be at most {_LARGEST:,.0f} (got {shown(value)}); check the unit"
            )
        return float(value)

    def objects(self, place: str, value: object) -> dict[str, object]:
        """Read an object; an empty one where it has a fault."""
        if isinstance(value, dict) and value:
            return value
        self.faults.append(f"{place} must be an object that is not empty (got {shown(value)})")
        return {}

    def finish(self) -> None:
        """Say which keys were not read, and raise what is wrong."""
        if self.unknown:
            words = listed((shown(key) for key in self.unknown), most=8)
            warnings.warn(f"{self.path}: {words}: unknown and ignored", FileNote, stacklevel=4)
        if self.faults:
            raise InputError(self.path, self.faults)


def open_profile(path: str | PathLike[str]) -> tuple[dict[str, object], Findings]:
    """
    Keys and values of a file of a profile, with what is wrong so far.

    Raises
    ------
    InputError
        If the file can not be read, or holds no object.
    """
    document = read_document(path)
    if not isinstance(document.value, dict) or not document.value:
        fault = f"must hold a JSON object that is not empty (got {shown(document.value)})"
        raise InputError(str(path), [fault, *document.faults])
    return document.value, Findings(path=str(path), faults=list(document.faults))
