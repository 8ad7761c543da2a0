"""Grid: what may be chosen, and the problems that come of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from sapp_ppb.costs import Model, at_micro_batch_size
from sapp_ppb.costs.checks import LARGEST_COUNT, listed, shown
from sapp_ppb.costs.per_stage import PerStage
from sapp_ppb.errors import InputError, ScheduleError
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName, default_name
from sapp_ppb.sweep.candidate import Candidate
from sapp_ppb.targets import target_named

# Problems of one grid; a typo in a range is likelier than a wish for more.
MOST_PROBLEMS = 20_000
_COUNTS = (
    "devices",
    "global_batch",
    "stages",
    "interleave",
    "micro_batch_sizes",
    "model_micro_batch_size",
    "tensor_parallel",
)
_LISTS = ("interleave", "memory_limits_mb", "micro_batch_sizes", "tensor_parallel")
# Fields of a problem that mean something to one schedule only.
_OF_ONE_SCHEDULE = {
    "sequence_chunks": (1, ScheduleName.SEQ1F1B),
    "overlap_factor": (0.0, ScheduleName.DUALPIPEV),
}


@dataclass(frozen=True, kw_only=True)
class Grid:
    """
    Values to choose from.

    Attributes
    ----------
    devices, global_batch
        Devices, and samples of one step.
    stages
        S; empty for every number that divides the devices, up to the model's layers.
    interleave
        V.
    schedules
        Names; empty for the usual one of V.
    every_schedule
        Every schedule that takes the sizes, instead.
    memory_limits_mb
        Limits: a number, one a stage, or None for no limit.
    micro_batch_sizes
        Samples of a micro-batch; empty for the model's.
    model_micro_batch_size
        Samples that the model's times and activations are of.
    tensor_parallel
        Devices of a stage.  The model's costs are those of one device at that number.
    p2p_ms
        Time per hop at the model's micro-batch size.
    micro_batch_group, sequence_chunks, overlap_factor
        As of ``Problem``, for the candidates that they mean something to: V > 1,
        ``seq1f1b`` and ``dualpipev``.
    given
        Other fields of every problem.

    Raises
    ------
    InputError
        With all faults at once.

    Examples
    --------
    >>> Grid(devices=128, global_batch=512, stages=(4, 8, 16), interleave=(1, 2, 3)).combinations
    9
    """

    devices: int
    global_batch: int
    stages: tuple[int, ...] = ()
    interleave: tuple[int, ...] = (1, 2)
    schedules: tuple[ScheduleName, ...] = ()
    every_schedule: bool = False
    memory_limits_mb: tuple[PerStage | None, ...] = (None,)
    micro_batch_sizes: tuple[int, ...] = ()
    model_micro_batch_size: int = 1
    tensor_parallel: tuple[int, ...] = (1,)
    p2p_ms: float = 0.0
    micro_batch_group: Any = None
    sequence_chunks: int = 1
    overlap_factor: float = 0.0
    given: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what no problem can come of."""
        faults = [fault for name in _COUNTS for fault in _count_faults(name, getattr(self, name))]
        faults += [f"{_spelt(name)} must hold at least one value" for name in _LISTS if not self._list(name)]
        if not faults:
            faults = self._schedule_faults() + self._number_faults()
        if faults:
            raise InputError("grid", faults)

    def _list(self, name: str) -> tuple[object, ...]:
        sizes = self.micro_batch_sizes or (self.model_micro_batch_size,)
        return sizes if name == "micro_batch_sizes" else tuple(getattr(self, name))

    def _schedule_faults(self) -> list[str]:
        """Faults of an option whose schedule is not among those to choose from."""
        return [
            f"{_spelt(name)} is for the schedule {schedule}, which the sweep does not try; leave it out, "
            f"or name {schedule} or auto"
            for name, (unused, schedule) in _OF_ONE_SCHEDULE.items()
            if getattr(self, name) != unused and not self.every_schedule and schedule not in self.schedules
        ] + ["schedule custom has one size; plan it alone" for name in self.schedules if name == "custom"]

    def _number_faults(self) -> list[str]:
        if self.combinations <= MOST_PROBLEMS:
            return []
        return [
            f"has {self.combinations:,} combinations of {MOST_PROBLEMS:,} at most; choose from fewer values"
        ]

    @property
    def combinations(self) -> int:
        """Combinations to look at, before any rule; stages that are left open count as one."""
        number = max(len(self.stages), 1) * max(len(self.micro_batch_sizes), 1) * max(len(self.schedules), 1)
        return number * len(self.interleave) * len(self.memory_limits_mb) * len(self.tensor_parallel)


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """
    A combination that is no problem.

    Attributes
    ----------
    reason
        Why.
    chosen
        What had been chosen by then, by the name of its column.
    """

    reason: str
    chosen: Mapping[str, object]


def list_candidates(model: Model, grid: Grid) -> tuple[list[Candidate], list[Skipped]]:
    """
    List the problems of a grid, and what is none.

    Data parallel is devices / (S x tensor parallel), and M is the global batch / (data
    parallel x micro-batch size); both must be whole.

    Raises
    ------
    InputError
        When no problem is left, with every reason; when the target is unknown.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1)
    >>> model = Model(name="tiny", layers=(body,))
    >>> found, skipped = list_candidates(model, Grid(devices=8, global_batch=64, stages=(2, 3, 4)))
    >>> [(each.problem.stages, each.problem.interleave, each.problem.micro_batches) for each in found]
    [(2, 1, 16), (2, 2, 16), (4, 1, 32), (4, 2, 32)]
    >>> [each.reason for each in skipped]
    ['8 devices do not divide into pipelines of 3 stages']
    """
    if grid.given.get("target") is not None:
        target_named(grid.given["target"])
    found: list[Candidate] = []
    skipped: list[Skipped] = []
    for each in _listed(model, grid):
        if isinstance(each, Skipped):
            skipped.append(each)
        else:
            found.append(each)
    if not found:
        raise InputError("grid", ["no problem is left: " + listed(dict.fromkeys(s.reason for s in skipped))])
    return found, skipped


def _listed(model: Model, grid: Grid) -> Iterator[Candidate | Skipped]:
    for tensor in grid.tensor_parallel:
        for stages in grid.stages or _divisors(grid.devices, tensor, model.body_count):
            chosen = {"stages": stages, "tensor_parallel": tensor}
            pipelines, rest = divmod(grid.devices, stages * tensor)
            if rest or not pipelines:
                of = f" x {tensor} devices" if tensor > 1 else ""
                reason = f"{grid.devices} devices do not divide into pipelines of {stages} stages{of}"
                yield Skipped(reason=reason, chosen=chosen)
                continue
            for size in grid.micro_batch_sizes or (grid.model_micro_batch_size,):
                chosen = {"stages": stages, "micro_batch_size": size, "tensor_parallel": tensor}
                chosen["data_parallel"] = pipelines
                micro_batches, rest = divmod(grid.global_batch, pipelines * size)
                if rest or not micro_batches:
                    reason = (
                        f"a global batch of {grid.global_batch} does not divide into micro-batches of {size} "
                        f"on {pipelines} pipelines"
                    )
                    yield Skipped(reason=reason, chosen=chosen)
                    continue
                yield from _pipelines(model, grid, chosen, micro_batches)


def _pipelines(
    model: Model, grid: Grid, chosen: Mapping[str, int], micro_batches: int
) -> Iterator[Candidate | Skipped]:
    """Problems of a number of stages and micro-batches."""
    sizes = {key: chosen[key] for key in ("micro_batch_size", "tensor_parallel", "data_parallel")}
    ratio = chosen["micro_batch_size"] / grid.model_micro_batch_size
    given = dict(grid.given) | {
        "model": _scaled(model, ratio),
        "stages": chosen["stages"],
        "micro_batches": micro_batches,
        "p2p_ms": grid.p2p_ms * ratio,
    }
    for interleave in grid.interleave:
        orders: list[tuple[ScheduleName, object]] = []
        for name in _names(grid, interleave):
            fields = (
                given | {"interleave": interleave, "schedule": name} | _own_fields(grid, name, interleave)
            )
            for limit in grid.memory_limits_mb:
                problem = _problem(fields | {"memory_limit_mb": limit})
                if isinstance(problem, Problem):
                    rows = problem.order.rows
                    if grid.every_schedule and any(
                        name is not other and rows == known for other, known in orders
                    ):
                        break  # two schedules may have one order for such sizes
                    orders.append((name, rows))
                    yield Candidate(problem=problem, base=model if ratio != 1 else None, **sizes).light
                elif not grid.every_schedule:
                    tried = {"interleave": interleave, "schedule": name.value, "memory_limit_mb": limit}
                    yield Skipped(reason=problem, chosen={**chosen, "micro_batches": micro_batches, **tried})


def _problem(fields: Mapping[str, Any]) -> Problem | str:
    """Make the problem, or say why there is none."""
    try:
        problem = Problem(**fields)
    except InputError as error:
        return "; ".join(error.faults)
    except ScheduleError as error:
        return str(error)
    refused = () if problem.target is None else target_named(problem.target).refuses(problem)
    return "; ".join(refused) if refused else problem


def _names(grid: Grid, interleave: int) -> tuple[ScheduleName, ...]:
    if not grid.every_schedule:
        return grid.schedules or (default_name(interleave),)
    pieces = grid.sequence_chunks > 1
    left_out = {ScheduleName.CUSTOM} | (set() if pieces else {ScheduleName.SEQ1F1B})
    return tuple(name for name in ScheduleName if name not in left_out)


def _own_fields(grid: Grid, name: ScheduleName, interleave: int) -> dict[str, object]:
    """Give a schedule what means something to it."""
    fields: dict[str, object] = {
        field: getattr(grid, field) for field, (_, taker) in _OF_ONE_SCHEDULE.items() if name is taker
    }
    return fields | ({"micro_batch_group": grid.micro_batch_group} if interleave > 1 else {})


def _divisors(devices: int, tensor: int, most: int) -> list[int]:
    """Numbers of stages, up to the number of layers, that leave a whole number of pipelines."""
    return [stages for stages in range(1, most + 1) if devices % (stages * tensor) == 0]


@lru_cache(maxsize=64)
def _scaled(model: Model, ratio: float) -> Model:
    """One model a ratio, so that problems share it."""
    if ratio == 1:
        return model
    return replace(model, layers=tuple(at_micro_batch_size(layer, ratio) for layer in model.layers))


def _count_faults(name: str, value: object) -> list[str]:
    return [
        f"{_spelt(name)} must be a whole number from 1 to {LARGEST_COUNT:,} (got {shown(number)})"
        for number in (value if isinstance(value, tuple) else (value,))
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= LARGEST_COUNT
    ]


def _spelt(name: str) -> str:
    """Name of an option."""
    return {"micro_batch_sizes": "micro-batch-size", "memory_limits_mb": "memory-limit"}.get(
        name, name.replace("_", "-")
    )
