"""A plan in torchtitan's words: a snippet of TOML or Python, or a TOML file that is edited."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sapp_ppb.costs.checks import shown
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.schedules import Placement, ScheduleName
from sapp_ppb.targets.torchtitan.parts import EMBEDDING, HEADS, NORM, layer_of, modules_of
from sapp_ppb.targets.torchtitan.target import SCHEDULES, TORCHTITAN, checkpoint_mode

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_PARTS = ("module_fqns_per_model_part", "pipeline_parallel_module_fqns_per_model_part")  # newest last
_OTHER_SPLITS = "pipeline_parallel_layers_per_stage"
_CSV = "pipeline_parallel_schedule_csv"
_SIZE = "pipeline_parallel_microbatch_size"
_OLD = "pipeline_parallel_split_points"
_MARK = "\ufeff"


@dataclass(frozen=True, kw_only=True)
class _Words:
    """
    A plan's settings.

    Attributes
    ----------
    stages, schedule, order, layers_per_part, micro_batches
        S, PyTorch's name, path of an order or "", layers of each part, M.
    mode, option
        Of activation checkpointing; None for an option that does not matter.
    """

    stages: int
    schedule: str
    order: str
    layers_per_part: list[int]
    micro_batches: int
    mode: str
    option: str | None


def _words(plan: Plan) -> _Words:
    """
    Say a plan in torchtitan's words.

    Raises
    ------
    InputError
        If it can not be said, with the reasons.
    """
    unsaid, checkpoint = TORCHTITAN.unsaid(plan), checkpoint_mode(plan)
    if unsaid or checkpoint is None:
        raise InputError("plan", unsaid)
    problem = plan.problem
    on_a_v = problem.order.placement is Placement.V
    # What is named beside an order still decides where the parts go.
    family = SCHEDULES[ScheduleName.ZBV] if on_a_v else "PipelineScheduleMulti"
    return _Words(
        stages=problem.stages,
        schedule=SCHEDULES.get(problem.schedule_name, family),
        order=problem.order_file.path if problem.order_file else "",
        layers_per_part=plan.layers_per_cell.tolist(),
        micro_batches=problem.micro_batches,
        mode=checkpoint[0],
        option=checkpoint[1],
    )


def torchtitan_text(plan: Plan, *, python: bool = False) -> str:
    """
    Text to paste into a configuration of torchtitan.

    Parameters
    ----------
    plan
        What it says.
    python
        Write statements for a function that makes a configuration called ``config``,
        for the releases that are configured in Python.

    Raises
    ------
    InputError
        If torchtitan can not express the plan.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=3, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> print(torchtitan_text(plan_from_matrices(problem, {"Dec": {"none": [[2, 1]]}})), end="")
    [parallelism]
    pipeline_parallel_degree = 2
    pipeline_parallel_schedule = "1F1B"
    module_fqns_per_model_part = [
        ["tok_embeddings", "layers.0", "layers.1"],
        ["layers.2", "norm", "output"],
    ]
    pipeline_parallel_microbatch_size = 1
    <BLANKLINE>
    [training]
    local_batch_size = 4  # micro-batches x pipeline_parallel_microbatch_size
    <BLANKLINE>
    [activation_checkpoint]
    mode = "none"
    """
    words = _words(plan)
    return _python(words) if python else _toml(words)


def _toml(words: _Words) -> str:
    lines = [
        "[parallelism]",
        f"pipeline_parallel_degree = {words.stages}",
        f"pipeline_parallel_schedule = {_quoted(words.schedule)}",
        *([f"{_CSV} = {_quoted(words.order)}"] if words.order else []),
        f"{_PARTS[0]} = {_lists(modules_of(words.layers_per_part))}",
        f"{_SIZE} = 1",
        "",
        "[training]",
        f"local_batch_size = {words.micro_batches}  # micro-batches x {_SIZE}",
        "",
        "[activation_checkpoint]",
        f"mode = {_quoted(words.mode)}",
        *([f"selective_ac_option = {_quoted(words.option)}"] if words.option else []),
    ]
    return "\n".join(lines) + "\n"


def _python(words: _Words) -> str:
    parallelism, checkpoint = "config.parallelism", "config.activation_checkpoint"
    if words.option not in (None, "op"):  # only releases without these classes can say it
        checkpointing = [
            f"{checkpoint}.mode = {_quoted(words.mode)}",
            f"{checkpoint}.selective_ac_option = {_quoted(words.option or '')}",
        ]
    else:
        made = {"none": "None", "full": "FullAC.Config()", "selective": "SelectiveAC.Config()"}
        checkpointing = [f"{checkpoint} = {made[words.mode]}"]
    lines = [
        f"{parallelism}.pipeline_parallel_degree = {words.stages}",
        f"{parallelism}.pipeline_parallel_schedule = {_quoted(words.schedule)}",
        *([f"{parallelism}.{_CSV} = {_quoted(words.order)}"] if words.order else []),
        f"{parallelism}.{_PARTS[0]} = {_lists(modules_of(words.layers_per_part))}",
        f"{parallelism}.{_SIZE} = 1",
        f"config.training.local_batch_size = {words.micro_batches}  # micro-batches x {_SIZE}",
        *checkpointing,
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Text in double quotes, as TOML and Python read it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lists(parts: Sequence[Sequence[str]]) -> str:
    """Write lists of names, a line a part, as TOML and Python read them."""
    lines = ["    [" + ", ".join(map(_quoted, part)) + "],\n" for part in parts]
    return "[\n" + "".join(lines) + "]"


def torchtitan_into(text: str, plan: Plan, where: str) -> str:
    """
    Text of a TOML configuration with the settings of a plan.

    Everything else stays as it is, byte for byte.  The micro-batch keeps its size, so
    that ``local_batch_size`` follows from the number of micro-batches; modules besides
    layers stay in the first and the last part.

    Parameters
    ----------
    text
        What the file holds.
    plan
        What it is to say.
    where
        The file, for errors.

    Raises
    ------
    InputError
        If torchtitan can not express the plan, the text is no TOML, is Python, or is of
        a release without lists of modules.
    """
    words = _words(plan)
    if re.search(r"\.py(::|$)", where.lower()):
        fault = "Python is not edited, since only running it shows what it says"
        raise InputError(where, [f"{fault}; leave it out, and paste the snippet into the function"])
    whole = text.removeprefix(_MARK)
    windows = "\r\n" in whole and "\n" not in whole.replace("\r\n", "")
    document = _parsed(whole.replace("\r\n", "\n") if windows else whole, where)
    wanted = deepcopy(document.unwrap())
    for name, settings in _changes(document.unwrap(), words, whole, where).items():
        _change(document, name, settings)
        wanted[name] = {k: v for k, v in {**wanted.get(name, {}), **settings}.items() if v is not None}
    edited = document.as_string()
    if tomllib.loads(edited) != wanted:
        fault = "can not be edited so that nothing else changes"
        raise InputError(where, [f"{fault}; leave it out, and paste the snippet"])
    edited = edited.replace("\n", "\r\n") if windows else edited
    return _MARK * text.startswith(_MARK) + edited


def _parsed(text: str, where: str) -> "TOMLDocument":
    import tomlkit
    from tomlkit.exceptions import ParseError, TOMLKitError

    try:
        return tomlkit.parse(text)
    except ParseError as error:
        fault = f"the TOML is broken at line {error.line}, column {error.col}"
    except RecursionError:
        fault = "the TOML is nested too deep"
    except (TOMLKitError, ValueError) as error:
        fault = f"the TOML is broken: {error}"
    raise InputError(where, [fault])


def _changes(tables: Mapping[str, Any], words: _Words, text: str, where: str) -> dict[str, dict[str, object]]:
    """Give settings by table; None for one that must go."""
    names = ("parallelism", "training", "activation_checkpoint")
    faults = [
        f"{name} must be a table (got {shown(tables[name])})"
        for name in names
        if not isinstance(tables.get(name, {}), Mapping)
    ]
    if faults:
        raise InputError(where, faults)
    parallelism = tables.get("parallelism", {})
    if _OLD in parallelism or "pipeline_parallel_degree" in tables.get("experimental", {}):
        fault = f"is of a release of torchtitan that has no {_PARTS[0]}"
        raise InputError(where, [f"{fault}; move to a newer one, and paste the snippet"])
    key = next((key for key in _PARTS[::-1] if key in parallelism), _PARTS[0])
    settings: dict[str, object] = {
        "pipeline_parallel_degree": words.stages,
        "pipeline_parallel_schedule": words.schedule,
        key: _modules(parallelism.get(key), words, text, where),
    }
    if _OTHER_SPLITS in parallelism:
        settings[_OTHER_SPLITS] = None
    if words.order or parallelism.get(_CSV):
        settings[_CSV] = words.order
    option = {"selective_ac_option": words.option} if words.option else {}
    return {
        "parallelism": settings,
        "training": {"local_batch_size": words.micro_batches * _micro_batch_size(parallelism, where)},
        "activation_checkpoint": {"mode": words.mode, **option},
    }


def _micro_batch_size(parallelism: Mapping[str, Any], where: str) -> int:
    size = parallelism.get(_SIZE, 1)
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InputError(where, [f"parallelism.{_SIZE} must be at least 1 (got {shown(size)})"])
    return size


def _modules(given: object, words: _Words, text: str, where: str) -> list[list[str]]:
    """Name the modules of each part, those that are no layers where the file has them."""
    head = HEADS[1] if HEADS[1] in text else HEADS[0]
    lists = given if isinstance(given, list) and all(isinstance(part, list) for part in given) else []
    others = [[str(module) for module in part if layer_of(str(module)) is None] for part in lists]
    if not any(others):
        return modules_of(words.layers_per_part, head)
    stray = [part for part in range(1, len(others) - 1) if set(others[part]) - {NORM}]
    if stray:
        fault = (
            f"part {stray[0]} holds {shown(others[stray[0]][0])}, and the plan does not say where that goes"
        )
        raise InputError(where, [f"{fault}; leave the file out, and paste the snippet"])
    ends = {NORM, *HEADS}
    first = [module for module in others[0] if module not in ends and module != EMBEDDING]
    last = [module for module in others[-1] if module not in ends] if len(others) > 1 else []
    last = [module for module in last if module != EMBEDDING]
    head = HEADS[1] if any(HEADS[1] in part for part in others) else HEADS[0]
    return modules_of(
        words.layers_per_part,
        first=_in_order(others[0], [*first, EMBEDDING]),
        last=_in_order(others[-1], [NORM, head, *last]),
    )


def _in_order(given: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Wanted names in the order of the file, those that it lacks at their place."""
    known = [module for module in dict.fromkeys(given) if module in wanted]
    return known if len(known) == len(wanted) else list(wanted)


def _change(document: "TOMLDocument", name: str, settings: Mapping[str, object]) -> None:
    """Change a table where it has other settings."""
    import tomlkit

    if name not in document:
        if document.as_string() and not document.as_string().endswith("\n"):
            document.add(tomlkit.nl())
        document.add(name, tomlkit.table())
    table: Any = document[name]
    for key, value in settings.items():
        if value is None:
            del table[key]
        elif key not in table or table[key] != value:
            table[key] = tomlkit.value(_lists(value)) if isinstance(value, list) else value
