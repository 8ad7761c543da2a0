"""
Values of Megatron-LM's flags in a file, whatever its form.

``model_config.yaml`` with dashed keys under MODEL_ARGS, the same as JSON, a list of
arguments, or the text of a shell script.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from os import PathLike

from sapp_ppb.costs.checks import LARGEST_COUNT, shown
from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.json_file import read_json
from sapp_ppb.readers.formats.text_file import read_text
from sapp_ppb.readers.formats.yaml_file import read_yaml
from sapp_ppb.syntax.shell_arguments import Argument, expand, shell_arguments
from sapp_ppb.targets.config import BrokenRule
from sapp_ppb.targets.megatron.flags import GROUP_SIZE, RECOMPUTE, SPLIT, SWITCHES, flag_name, is_module
from sapp_ppb.targets.mindspeed.flags import OWN_SPLITS

LARGEST_FILE_MB = 1
SECTION = "MODEL_ARGS"
BATCH = (
    "global-batch-size",
    "micro-batch-size",
    "tensor-model-parallel-size",
    "context-parallel-size",
    "nnodes",
    "nproc-per-node",
)
_TEXTS = frozenset(
    {
        "pipeline-model-parallel-layout",
        "recompute-granularity",
        "recompute-method",
        "recompute-modules",
        *OWN_SPLITS,
    }
)
_KNOWN = frozenset(
    {*SPLIT, *RECOMPUTE, *OWN_SPLITS, *BATCH, *SWITCHES, GROUP_SIZE, "cpu-offloading-num-layers"}
)


@dataclass(kw_only=True)
class Values:
    """
    What a file gives.

    Attributes
    ----------
    numbers, texts
        Values by flag, without dashes in front.
    lists
        Lists that stand in the file as such: rows of a layout, modules.
    present
        Every flag that the file gives, read or not; a switch that is false is not given.
    unknown
        Flags that are given and whose value is not known, with the reason.
    broken
        Values that are no numbers where numbers must be.
    notes
        What else is worth saying.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[object]] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    unknown: dict[str, str] = field(default_factory=dict)
    broken: list[BrokenRule] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def give(self, name: str, value: object) -> None:
        """Take in one flag with its value; text may name variables that nothing sets."""
        self.present.add(name)
        if name in SWITCHES or name not in _KNOWN:
            return
        if isinstance(value, list) and name in _TEXTS:
            self.lists[name] = value
        elif name in _TEXTS:
            self.texts[name] = str(value)
        elif (number := _whole(value)) is None:
            self.doubt(name, f"is {shown(value)}")
            self.broken.append(BrokenRule(key=f"--{name}", rule="must be a whole number", found=shown(value)))
        else:
            self.numbers[name] = number

    def doubt(self, name: str, reason: str) -> None:
        """Take in one flag whose value is not known."""
        self.present.add(name)
        if name in _KNOWN:
            self.unknown[name] = reason


def _whole(value: object) -> int | None:
    """Whole number of a value; None where it is none, or absurd."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,9}", value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > LARGEST_COUNT:
        return None
    return value


def read_values(path: str | PathLike[str]) -> Values:
    """
    Read the values of flags from a file.

    Raises
    ------
    InputError
        If the file can not be read as what its name says, or gives no flag at all.
    """
    name = str(path).lower()
    if name.endswith((".yaml", ".yml")):
        values = _of_tree(str(path), read_yaml(path))
    elif name.endswith(".json"):
        values = _of_tree(str(path), read_json(path, LARGEST_FILE_MB))
    else:
        text = read_text(path, largest_mb=LARGEST_FILE_MB, format_name="arguments of Megatron-LM")
        values = _of_script(text, str(path))
    if not values.present & _KNOWN:
        fault = "gives none of Megatron-LM's flags for pipelines, such as --pipeline-model-parallel-size"
        raise InputError(str(path), [f"{fault}; is it the right file?"])
    return values


def _of_tree(where: str, tree: object) -> Values:
    if isinstance(tree, dict):
        tree = tree.get(SECTION, tree)
    if isinstance(tree, dict):
        return _of_mapping(tree)
    if isinstance(tree, list) and all(isinstance(item, str | int | float) for item in tree):
        return _of_script(" ".join(map(_quoted, tree)), where)
    fault = f"must hold a mapping {SECTION} of flags, or a list of arguments"
    raise InputError(where, [f"{fault} (got {shown(tree)})"])


def _quoted(item: object) -> str:
    """Word of a shell that means an item, whose variables stay variables."""
    return '"' + re.sub(r'(["\\`])', r"\\\1", str(item)) + '"'


def _of_mapping(mapping: dict[str, object]) -> Values:
    values = Values()
    for key, value in mapping.items():
        name = flag_name(key)
        if value is False or value is None:
            if value is None and name in _KNOWN:
                values.doubt(name, "has no value")
            continue
        if not isinstance(value, str):
            values.give(name, value)
            continue
        text, reason = expand(value, {})
        values.doubt(name, reason) if text is None else values.give(name, text)
    return values


def _of_script(text: str, where: str) -> Values:
    arguments = shell_arguments(text, where)
    values = Values()
    by_name: dict[str, list[Argument]] = {}
    for argument in arguments.found:
        by_name.setdefault(argument.name, []).append(argument)
    for name, given in by_name.items():
        _take(values, name, given)
    if arguments.unread:
        held = ", ".join(arguments.unread[:8])
        values.notes.append(f"arguments that {held} may hold are set elsewhere and not read")
    return values


def _take(values: Values, name: str, given: list[Argument]) -> None:
    """Take in a flag that a script gives once or several times."""
    reasons = [argument.unknown for argument in given if argument.unknown]
    found = {argument.value for argument in given}
    if name in SWITCHES:
        values.doubt(name, reasons[0]) if len(reasons) == len(given) else values.give(name, True)
    elif reasons:
        values.doubt(name, reasons[0])
    elif len(found) > 1:
        places = ", ".join(f"{argument.value} on line {argument.line}" for argument in given[:4])
        values.doubt(name, f"is given more than once ({places})")
    elif given[0].value is None and name in _KNOWN:
        values.doubt(name, "has no value")
    elif name == "recompute-modules":
        more = takewhile(is_module, (word.text for word in given[0].more))
        values.give(name, [given[0].value, *more])
    else:
        values.give(name, given[0].value)


def given_flags(values: Values, names: Iterable[str]) -> list[str]:
    """Give those of some flags that a file gives, in their order."""
    return [name for name in names if name in values.present]
