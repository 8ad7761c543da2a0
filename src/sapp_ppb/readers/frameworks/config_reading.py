"""What reading the configuration of a framework gathers: values, broken rules, unknowns and notes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sapp_ppb.costs.checks import LARGEST_COUNT, shown
from sapp_ppb.readers.formats.yaml_file import YamlDocument
from sapp_ppb.targets.config import BrokenRule


@dataclass
class ConfigReading:
    """
    Values of a YAML by their places, and what reading them gathers.

    Attributes
    ----------
    document
        The file.
    broken, unknown, notes
        Rules that it breaks, what is needed and not known, and what is odd.
    """

    document: YamlDocument
    broken: list[BrokenRule] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def value(self, place: str) -> object:
        """Value of a place; None where it is not given, or not known."""
        found = self.document.value
        for key in place.split("."):
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, str) and (variable := re.fullmatch(r"\$\{\w+:-(.*)\}", found)):
            return _plain(variable[1])
        if isinstance(found, str) and found.startswith("$"):
            words = f"{self.document.at(place)}: {shown(found)} is not known; write its value"
            self.unknown += [] if words in self.unknown else [words]
            return None
        return found

    def is_unknown(self, place: str) -> bool:
        """Whether a place holds a variable that is not known."""
        return any(words.startswith(f"{self.document.at(place)}:") for words in self.unknown)

    def whole(self, place: str, default: int, *, least: int = 1, most: int = LARGEST_COUNT) -> int | None:
        """Whole number of a place; None when it is not known, or is none."""
        value = self.value(place)
        if value is None:
            return None if self.is_unknown(place) else default
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.breaks(place, f"must be a whole number from {least} to {most}", value)
        return None

    def flag(self, place: str) -> bool | None:
        """Bool of a place, false where it is not given; None when it is not known, or is none."""
        value = self.value(place)
        if value is None:
            return None if self.is_unknown(place) else False
        if isinstance(value, bool):
            return value
        self.breaks(place, "must be true or false", value)
        return None

    def breaks(self, place: str, rule: str, found: object) -> None:
        """Keep a rule that a value breaks."""
        self.broken.append(BrokenRule(key=self.document.at(place), rule=rule, found=shown(found)))

    def first(self, places: Sequence[str]) -> str:
        """First of some places that is given, or else the first one."""
        given = (place for place in places if self.value(place) is not None or self.is_unknown(place))
        return next(given, places[0])

    def keep(self, section: str, broken: Sequence[BrokenRule], notes: Sequence[str] = ()) -> None:
        """Keep rules that name keys of a section, and notes."""
        self.broken += [replace(rule, key=self.document.at(f"{section}.{rule.key}")) for rule in broken]
        self.notes += notes


def _plain(text: str) -> object:
    """Value of the default of a variable: a whole number, a bool or text."""
    if re.fullmatch(r"-?\d{1,9}", text):
        return int(text)
    return {"true": True, "false": False}.get(text.lower(), text)
