"""
The nodes of a YAML text, for those who read it and those who edit it, within limits.

A text that is too deep or too long is refused where that is seen, and not when all of it
was parsed, which would take minutes.
"""

from typing import Any

from sapp_ppb.errors import InputError

DEEPEST_NESTING = 50
MOST_VALUES = 30_000  # aliases written out; a pipeline of 64 stages takes a few thousand
LONGEST_NUMBER = 300  # characters; a float ends at 309 digits


def bounded_yaml(where: str) -> Any:
    """
    Parser of safe YAML whose ``compose`` raises an InputError when a text has no end.

    Parameters
    ----------
    where
        The file, for errors.

    Examples
    --------
    >>> [key.value for key, _ in bounded_yaml("x.yaml").compose("a: 1").value]
    ['a']
    >>> bounded_yaml("x.yaml").compose("[" * 10_000)
    Traceback (most recent call last):
    sapp_ppb.errors.InputError: x.yaml: the YAML is nested deeper than 50 levels
    """
    from ruamel.yaml import YAML  # 60 ms, only for those who read YAML
    from ruamel.yaml.composer import Composer

    class Bounded(Composer):
        """Counts nodes, and those that are open."""

        nodes = depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.nodes, self.depth = self.nodes + 1, self.depth + 1
            if self.depth > 2 * DEEPEST_NESTING:  # readers count exactly
                raise InputError(where, [too_deep()])
            if self.nodes > MOST_VALUES:
                raise InputError(where, [too_many()])
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = Bounded
    return yaml


def too_deep() -> str:
    """Say that a text is nested too deep."""
    return f"the YAML is nested deeper than {DEEPEST_NESTING} levels"


def too_many() -> str:
    """Say that a text holds too many values."""
    words = f"holds more than {MOST_VALUES:,} values, those that aliases repeat included"
    return f"{words}; is it the right file?"
