"""Edits of files of flags that leave every other byte as it is, whatever form the file has."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from sapp_ppb.costs.checks import printable
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.targets.megatron.flags import SPLIT
from sapp_ppb.targets.megatron.layout import cells_of_names, parse_layout

_LAYERS, _MTP = SPLIT[2:4]


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


def flags_to_drop(flags: Mapping[str, str], replaced: Iterable[str]) -> tuple[str, ...]:
    """
    Name those of some flags that must not stand beside the flags of a plan.

    What selective recompute recomputes is the user's.

    Examples
    --------
    >>> flags_to_drop({"a": "1"}, ["a", "b", "recompute-modules"])
    ('b', 'recompute-modules')
    >>> flags_to_drop({"recompute-granularity": "selective"}, ["b", "recompute-modules"])
    ('b',)
    """
    kept = set(flags)
    if flags.get("recompute-granularity") == "selective":
        kept.add("recompute-modules")
    return tuple(name for name in replaced if name not in kept)


def refuse_other_model(
    file: FlagFile, plan: Plan, where: str, unread: Iterable[str], *, empty_places: int = 0
) -> None:
    """
    Refuse a file whose model has other layers, or that says the split in words that are not read.

    Parameters
    ----------
    unread
        Flags that decide split or recompute and are not read.
    empty_places
        Places without a layer that the file counts among its layers.

    Raises
    ------
    InputError
        With a sentence for every such flag.
    """
    given, model = file.given, plan.problem.model
    wanted = {_LAYERS: model.body_count - model.mtp_count + empty_places, _MTP: model.mtp_count}
    beside = f" with {empty_places} empty places" if empty_places else ""
    found = {_MTP: "0"} | given if _LAYERS in given else given
    faults = [
        f"--{name} is {printable(str(found[name]))}, "
        f"and the plan's model{beside if name == _LAYERS else ''} has {number}; "
        "give the configuration of that model"
        for name, number in wanted.items()
        if found.get(name) is not None and str(found[name]) != str(number)
    ]
    faults += [
        f"--{name} decides the split or recompute in another way; take it out"
        for name in unread
        if name in given
    ]
    if faults:
        raise InputError(where, faults)


def same_layout(found: object, value: str) -> bool:
    """
    Whether a layout that stands in a file, as text or as a list of names, means a layout.

    Raises
    ------
    InputError
        When what stands there is none.

    Examples
    --------
    >>> same_layout("Ettt|ttL", "Et*3|ttL")
    True
    """
    cells = cells_of_names(found) if isinstance(found, list) else parse_layout(str(found))
    return cells == parse_layout(value)
