"""Edits of files of flags that leave every other byte as it is, whatever form the file has."""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from sapp_ppb.errors import InputError


class FlagFile(Protocol):
    """A file of flags that can be edited, one flag at a time, all else left as it is."""

    text: str

    def __init__(self, text: str, where: str) -> None: ...

    @property
    def given(self) -> dict[str, object]:
        """Values by flag; None for one that is not known, or that has none."""

    def replaced(self, name: str, value: str) -> str:
        """Text with another value for a flag that is given."""

    def added(self, name: str, value: str, after: str | None) -> str:
        """Text with one more flag, behind another where that is given."""

    def removed(self, name: str) -> str:
        """Text without a flag that is given."""


def flag_form(where: str) -> type[FlagFile]:
    """Kind of file that a name stands for."""
    if where.lower().endswith((".yaml", ".yml")):
        from sapp_ppb.writers.frameworks.megatron_yaml import YamlFlags

        return YamlFlags
    if where.lower().endswith(".json"):
        raise InputError(
            where, ["JSON of Megatron-LM's flags is read and not edited; paste the flags by hand"]
        )
    from sapp_ppb.writers.frameworks.megatron_script import ScriptFlags

    return ScriptFlags


def put_flags(
    text: str,
    where: str,
    flags: Mapping[str, str],
    dropped: Collection[str],
    means: Callable[[object, str, str], bool],
) -> str:
    """
    Put flags into the text of a configuration, and leave every other byte as it is.

    Parameters
    ----------
    flags
        Values of flags, without dashes in front.
    dropped
        Flags that must not stand beside them.
    means
        Whether a value that stands in the file for a flag means the wanted one already.

    Raises
    ------
    InputError
        Where flags stand where they can not be edited safely.
    """
    make = flag_form(where)
    file = make(text, where)
    for name in dropped:
        while name in file.given:
            file = make(file.removed(name), where)
    previous = None
    for name, value in flags.items():
        if name not in file.given:
            file = make(file.added(name, value, previous), where)
        elif not means(file.given[name], name, value):
            file = make(file.replaced(name, value), where)
        previous = name
    given = file.given
    wrong = [
        name for name, value in flags.items() if name not in given or not means(given[name], name, value)
    ]
    wrong += [name for name in dropped if name in given]
    if wrong:
        names = ", ".join(f"--{name}" for name in wrong)
        raise InputError(where, [f"can not be edited safely ({names}); paste the flags by hand"])
    return file.text
