"""The problem that a command line gives, for every verb that plans."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from sapp_ppb.cli.guard import say
from sapp_ppb.cli.options.memory import (
    ConstantMemory,
    MaxRecomputeTypes,
    MemoryLimit,
    MemoryMargin,
    RecomputeTypes,
    WorkingSet,
    memory_margin,
    recompute_types,
)
from sapp_ppb.cli.options.order import (
    AUTO,
    FlavourOption,
    GroupOption,
    OrderPath,
    OverlapFactor,
    P2PModeOption,
    ScheduleOption,
    SequenceChunks,
    flavour,
    micro_batch_group,
    order_file,
    p2p_mode,
    schedule_name,
)
from sapp_ppb.cli.options.problem import (
    HopTime,
    Interleave,
    MicroBatches,
    MinLayers,
    ModelPath,
    Stages,
    StageSpeed,
    StepExtra,
    Target,
)
from sapp_ppb.cli.options.values import numbers
from sapp_ppb.costs.checks import shown
from sapp_ppb.errors import InputError

if TYPE_CHECKING:
    from sapp_ppb.problem import Problem


def given_problem(
    model: ModelPath,
    stages: Stages,
    micro_batches: MicroBatches,
    interleave: Interleave = None,
    memory_limit: MemoryLimit = None,
    memory_margin_: MemoryMargin = "0",
    constant_memory: ConstantMemory = None,
    p2p: HopTime = "0",
    p2p_mode_: P2PModeOption = "async",
    schedule: ScheduleOption = None,
    micro_batch_group_: GroupOption = None,
    sequence_chunks: SequenceChunks = 1,
    order: OrderPath = None,
    overlap_factor: OverlapFactor = 0.0,
    flavour_: FlavourOption = None,
    recompute: RecomputeTypes = None,
    max_recompute_types: MaxRecomputeTypes = None,
    recompute_working_set: WorkingSet = False,
    min_layers: MinLayers = 1,
    target: Target = None,
    stage_speed: StageSpeed = None,
    step_extra: StepExtra = "0",
) -> "Problem":
    """
    Read the model file and put the options, as they were typed, beside it.

    Raises
    ------
    InputError
        If the file or an option is not what it must be.
    """
    from sapp_ppb.problem import Problem
    from sapp_ppb.readers import read_model
    from sapp_ppb.schedules import ScheduleName, usual_chunks

    name = schedule_name(schedule)
    if schedule == AUTO:  # any sizes have this order; which are possible is asked for later
        name = ScheduleName.SEQ1F1B if sequence_chunks > 1 else ScheduleName.LOOPED_BFS
    read = read_model(model)
    return Problem(
        model=read,
        stages=stages,
        micro_batches=micro_batches,
        interleave=usual_chunks(name) if interleave is None else interleave,
        schedule=name,
        micro_batch_group=micro_batch_group(micro_batch_group_),
        sequence_chunks=sequence_chunks,
        order_file=order_file(order),
        p2p_mode=p2p_mode(p2p_mode_),
        overlap_factor=overlap_factor,
        flavour=flavour(flavour_),
        memory_limit_mb=None if memory_limit is None else numbers("--memory-limit", memory_limit, "MB"),
        constant_memory_mb=None
        if constant_memory is None
        else numbers("--constant-memory", constant_memory, "MB"),
        memory_margin=memory_margin(memory_margin_),
        recompute=recompute_types(recompute, read.types),
        max_recompute_types=max_recompute_types,
        recompute_working_set=recompute_working_set,
        p2p_ms=numbers("--p2p", p2p, "ms"),
        min_layers_per_cell=min_layers,
        target=_known(target),
        stage_speed=None
        if stage_speed is None
        else numbers("--stage-speed", stage_speed, "times the measured speed"),
        step_extra_ms=numbers("--step-extra", step_extra, "ms"),
    )


def _known(target: str | None) -> str | None:
    from sapp_ppb.targets import TARGETS

    if target is not None and target not in TARGETS:
        raise InputError("--target", [f"{shown(target)} is unknown; one of {', '.join(TARGETS)}"])
    return target


def note_what_is_odd(problem: "Problem") -> None:
    """Say on stderr what is not asked for, or asked for by mistake."""
    note_missing_memory(problem)
    if problem.micro_batches < problem.stages:
        say(
            f"note: {problem.stages} stages wait most of the time with no more than {problem.micro_batches} "
            "micro-batches to work on; --stages and --micro-batches may stand the wrong way round"
        )


def note_missing_memory(problem: "Problem") -> None:
    """Say on stderr that memory decides nothing, where the limit or what layers hold is not given."""
    if problem.memory_limit_mb is None:
        say("note: no memory limit is given, so nothing needs to be recomputed; -mem MB gives one")
    elif not any(layer.parameter_mb or any(layer.activation_mb) for layer in problem.model.bodies):
        where = f"no BODY layer of {problem.model.name} has memory in the model file"
        say(f"note: {where}, so the limit does not bind them")


def _candidates(problem: "Problem", given: dict[str, Any]) -> "list[Problem] | None":
    """List the problem under every schedule where that is asked for."""
    from sapp_ppb.planner import schedule_problems

    return schedule_problems(problem, given["interleave"]) if given["schedule"] == AUTO else None


def takes_problem(verb: Callable[..., int]) -> Callable[..., int]:
    """
    Give a verb whose first parameter is a problem the options of ``given_problem`` in its place.

    The command line then has one set of them for all verbs that plan.  A verb with a second
    parameter named ``candidates`` is given the problem under every schedule there for
    ``--schedule auto``, and None otherwise; others refuse it.
    """
    asked = inspect.signature(given_problem).parameters
    own = dict(inspect.signature(verb).parameters)
    del own["problem"]
    takes_several = own.pop("candidates", None) is not None
    # Parameters without a default come first, as Python asks.
    parameters = sorted([*asked.values(), *own.values()], key=lambda each: each.default is not each.empty)

    @wraps(verb)
    def command(**options: Any) -> int:
        given = {name: options.pop(name) for name in asked}
        if given["schedule"] == AUTO and not takes_several:
            raise InputError("--schedule", [f"{AUTO} goes with sapp-ppb plan; name one schedule here"])
        problem = given_problem(**given)
        if not takes_several:
            return verb(problem, **options)
        return verb(problem, _candidates(problem, given), **options)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command
