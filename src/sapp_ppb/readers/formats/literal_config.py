"""What a configuration of named values says: each value checked, what is wrong gathered."""

from dataclasses import dataclass, field

from sapp_ppb.costs.checks import LARGEST_COUNT, shown
from sapp_ppb.readers.formats.literal_values import Literals
from sapp_ppb.readers.formats.python_settings import Unread
from sapp_ppb.targets.config import BrokenRule

_MOST_VALUES = 100_000


@dataclass
class LiteralConfig:
    """
    Values by name, and what reading them gathers.

    Attributes
    ----------
    literals
        What the file says.
    broken, unknown, notes
        Rules that it breaks, what is needed and not known, and what is odd.
    """

    literals: Literals
    broken: list[BrokenRule] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def is_given(self, name: str) -> bool:
        """Whether the file gives a name any value but None."""
        return self.literals.values.get(name) is not None

    def is_unread(self, name: str) -> bool:
        """Whether only running the file would show a value."""
        return isinstance(self.literals.values.get(name), Unread)

    def value(self, name: str) -> object:
        """Value of a name; None where it is not given, or not known, which is then kept."""
        value = self.literals.values.get(name)
        if isinstance(value, Unread):
            self.needs(f"{name} is not known: {value.why}")
            return None
        return value

    def whole(
        self, name: str, default: int | None = None, *, least: int = 1, most: int = LARGEST_COUNT
    ) -> int | None:
        """Whole number of a name; None when it is not known, or is none."""
        value = self.value(name)
        if value is None:
            return None if self.is_unread(name) else default
        if _is_whole(value, least, most):
            return int(str(value))
        self.breaks(name, f"must be a whole number from {least} to {most}", value)
        return None

    def wholes(self, name: str, *, least: int = 0) -> tuple[int, ...] | None:
        """Whole numbers of a name; None when they are not given, not known, or are none."""
        value = self.value(name)
        if value is None:
            return None
        fits = isinstance(value, list) and 0 < len(value) <= _MOST_VALUES
        if isinstance(value, list) and fits and all(_is_whole(each, least) for each in value):
            return tuple(value)
        self.breaks(name, f"must be a list of whole numbers from {least} to {LARGEST_COUNT}", value)
        return None

    def text(self, name: str, default: str | None = None) -> str | None:
        """Text of a name; None when it is not known, or is none."""
        value = self.value(name)
        if value is None:
            return None if self.is_unread(name) else default
        if isinstance(value, str):
            return value
        self.breaks(name, "must be text", value)
        return None

    def breaks(self, name: str, rule: str, found: object, mend: str = "") -> None:
        """Keep a rule that a value breaks; ``found`` as it is, or a sentence's end."""
        words = found if isinstance(found, str) else shown(found)
        self.broken.append(BrokenRule(key=name, rule=rule, found=words, mend=mend))

    def needs(self, sentence: str) -> None:
        """Keep what is not known, once."""
        if sentence not in self.unknown:
            self.unknown.append(sentence)


def _is_whole(value: object, least: int, most: int = LARGEST_COUNT) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
