"""A script of PyTorch's pipelining: its cuts, order and wrapped layers, and the rules that they break."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from sapp_ppb.costs import Recompute
from sapp_ppb.costs.checks import printable, shown
from sapp_ppb.errors import InputError, ScheduleError
from sapp_ppb.readers.formats.literal_config import LiteralConfig
from sapp_ppb.readers.formats.literal_values import read_literals
from sapp_ppb.readers.plans.order_file import read_order
from sapp_ppb.schedules import OrderFile, Placement, ScheduleName, build_schedule, parse_csv
from sapp_ppb.targets.config import CellTypes, PipelineConfig
from sapp_ppb.targets.pytorch.stages import (
    CUTS,
    KEY,
    Stage,
    cuts_of,
    layers_of_cuts,
    placement_of,
    stage_rules,
    stages_of,
)
from sapp_ppb.targets.torchtitan.rules import (
    group_of,
    is_single,
    micro_batch_rules,
    part_rules,
    schedule_named,
)
from sapp_ppb.targets.torchtitan.rules import placement_of as placement_of_schedule
from sapp_ppb.targets.torchtitan.target import SCHEDULES

_NAMES = {
    "pipeline_stages",
    "split_spec",
    "n_microbatches",
    "schedule_class",
    "schedule_csv",
    "checkpoint_layers",
}
_MODES = {"none": Recompute.NONE, "selective": Recompute.SELECTIVE, "full": Recompute.FULL}
_POINTS = ("BEGINNING", "END")


def read_pytorch(path: str | PathLike[str], layers: int | None = None) -> PipelineConfig:
    """
    Read a script of ``torch.distributed.pipelining``, parsed and never run, or a JSON of the same names.

    Parameters
    ----------
    path
        Python (``.py``) with ``PIPELINE_STAGES`` or ``split_spec``, or JSON.
    layers
        Layers of the model; None takes those of the stages.

    Raises
    ------
    InputError
        If the file can not be read as what it is.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> text = "PIPELINE_STAGES = [(0, 0, 2), (1, 2, 3)]; CHECKPOINT_LAYERS = {1: 'full'}"
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "job.py").write_text(text)
    ...     config = read_pytorch(Path(folder, "job.py"))
    >>> [[r.label for r in cell] for cell in config.types[0]]
    [['none', 'full'], ['none']]
    """
    given = LiteralConfig(literals=read_literals(path, _NAMES))
    return _Judge(given=given, layers=layers, folder=Path(path).parent).config()


@dataclass
class _Judge:
    """Works out a pipeline from named values."""

    given: LiteralConfig
    layers: int | None
    folder: Path

    def config(self) -> PipelineConfig:
        """Say the pipeline."""
        given = self.given
        name = self._schedule_name()
        schedule = None if name is None else schedule_named(name)
        micro_batches = given.whole("n_microbatches")
        if micro_batches is None and not given.is_given("n_microbatches"):
            given.needs("micro-batches are not known: n_microbatches is not given")
        stages = self._stages(name, schedule)
        ranks, chunks, placement = self._sizes(stages)
        order = self._order(ranks, chunks, micro_batches, placement)
        if order is None and schedule and ranks and chunks and not given.broken:
            self._judge_schedule(schedule, ranks, chunks, placement, micro_batches)
        types = None if not stages or not ranks else self._types(stages, ranks, placement)
        own = None if order is not None else schedule
        return PipelineConfig(
            target="pytorch",
            where=given.literals.where,
            stages=ranks,
            interleave=chunks or 1,
            micro_batches=micro_batches,
            schedule=ScheduleName.CUSTOM if order is not None else schedule,
            micro_batch_group=None if chunks in (None, 1) else group_of(own, ranks or 1, micro_batches),
            order_file=order,
            layers=self.layers,
            types=types,
            broken=tuple(given.broken),
            unknown=tuple(given.unknown),
            notes=tuple(given.notes),
        )

    def _schedule_name(self) -> str | None:
        """PyTorch's name of the schedule: given, or that of a class that is called."""
        given = self.given
        if given.is_given("schedule_class"):
            name = given.text("schedule_class")
            if name is not None and schedule_named(name) is None:
                given.breaks("SCHEDULE_CLASS", f"must be one of {', '.join(SCHEDULES.values())}", shown(name))
            return name
        called = [name for name in SCHEDULES.values() if f"Schedule{name}" in given.literals.calls]
        if len(called) == 1:
            return called[0]
        if not given.is_given("schedule_csv"):
            given.needs("the schedule is not known: neither SCHEDULE_CLASS nor SCHEDULE_CSV is given")
        return None

    def _stages(self, name: str | None, schedule: ScheduleName | None) -> list[Stage] | None:
        """Rank and layers of every stage index; None when they are not known."""
        given = self.given
        cuts = self._cuts() if given.is_given("split_spec") else None
        if given.is_given("pipeline_stages"):
            return self._given_stages(cuts)
        if cuts is None:
            if not given.is_given("split_spec"):
                given.needs(f"the stages are not known: neither {KEY} nor split_spec is given")
            return None
        try:
            counts = layers_of_cuts(cuts, self.layers)
        except ValueError as error:
            rule, _, found = str(error).removesuffix(")").partition(" (got ")
            given.breaks("split_spec", rule, found)
            return None
        if counts is None:
            given.needs(
                "the layers of the model are not known: split_spec does not say where the last stage ends"
            )
            return None
        if name is None or is_single(name) is not True:
            given.needs(f"the ranks of the {len(counts)} stages are not known: give {KEY}, or 1F1B or GPipe")
            return None
        return stages_of(counts, len(counts), placement_of_schedule(schedule))

    def _given_stages(self, cuts: Sequence[tuple[str, str]] | None) -> list[Stage] | None:
        given = self.given
        value = given.value("pipeline_stages")
        if value is None:
            return None
        if not isinstance(value, list) or not value or not all(_is_stage(each) for each in value):
            given.breaks(KEY, "must be a list of (rank, first layer, layer behind the last)", shown(value))
            return None
        stages: list[Stage] = [(each[0], each[1], each[2]) for each in value]
        broken = stage_rules(stages, self.layers)
        given.broken += broken
        if broken and "in order" in broken[0].rule:
            return None
        if self.layers is None:
            self.layers = stages[-1][2]
        if cuts is not None and [cut for cut, _ in cuts] != cuts_of(stages):
            given.breaks(CUTS, f"must cut where {KEY} does", ", ".join(cut for cut, _ in cuts) or "no cut")
        return stages

    def _cuts(self) -> list[tuple[str, str]] | None:
        """Names of the modules at which the model is cut, and at which end."""
        value = self.given.value("split_spec")
        if value is None:
            return None
        if isinstance(value, dict) and all(
            isinstance(name, str) and point in _POINTS for name, point in value.items()
        ):
            return list(value.items())
        self.given.breaks(
            "split_spec", "must be SplitPoint.BEGINNING or END by the name of a module", shown(value)
        )
        return None

    def _sizes(self, stages: Sequence[Stage] | None) -> tuple[int | None, int | None, Placement]:
        """Ranks, stages of each, and how they lie."""
        if stages is None:
            return None, None, Placement.LOOP
        found = placement_of([rank for rank, _, _ in stages])
        if found is None:
            rule = "stage i must lie on rank i mod R, or on a V, equally many on each of R ranks"
            self.given.breaks(KEY, rule, str([rank for rank, _, _ in stages]))
            return None, None, Placement.LOOP
        ranks, placement = found
        return ranks, len(stages) // ranks, placement

    def _judge_schedule(
        self, schedule: ScheduleName, ranks: int, chunks: int, placement: Placement, micro_batches: int | None
    ) -> None:
        """Rules of PyTorch's own schedules."""
        given, name = self.given, SCHEDULES[schedule]
        wanted = placement_of_schedule(schedule)
        broken = [rule for rule in part_rules(ranks * chunks, ranks, schedule)]
        for rule in broken:
            given.breaks("SCHEDULE_CLASS", rule.rule, rule.found, rule.mend)
        if not broken and chunks > 1 and placement is not wanted:
            given.breaks(KEY, f"{name} wants its stages on a {wanted.value}", f"on a {placement.value}")
        elif not broken and micro_batches is not None:
            for rule in micro_batch_rules(schedule, ranks, chunks, micro_batches):
                given.breaks("n_microbatches", rule.rule, rule.found, rule.mend)

    def _order(
        self, ranks: int | None, chunks: int | None, micro_batches: int | None, placement: Placement
    ) -> OrderFile | None:
        """Order of a CSV file, if one is named; the rules that it breaks are kept."""
        given = self.given
        path = given.text("schedule_csv")
        if path is None:
            return None
        try:
            order = read_order(path, beside=self.folder)
        except InputError as error:
            given.needs(f"SCHEDULE_CSV is not known: {printable(error.where)}: {error.faults[0]}")
            return None
        try:
            found = parse_csv(order.text, name=path)
            if chunks == 2 and found.chunks == 2 and found.placement is not placement and ranks != 1:
                given.breaks(
                    KEY, f"the order wants its stages on a {found.placement.value}", f"on a {placement.value}"
                )
            elif ranks and chunks and micro_batches:
                build_schedule("custom", ranks, chunks, micro_batches, order=order)
        except ScheduleError as error:
            given.breaks("SCHEDULE_CSV", "must be an order that can run", str(error))
        return order

    def _types(self, stages: Sequence[Stage], ranks: int, placement: Placement) -> CellTypes | None:
        """Types of the layers of every cell, indexed [chunk][rank]."""
        modes = self._modes(stages[-1][2])
        if modes is None:
            return None
        rows: list[tuple[tuple[Recompute, ...], ...]] = []
        for chunk in range(len(stages) // ranks):
            cells = [stages[placement.cell_of(rank, chunk, ranks)] for rank in range(ranks)]
            rows.append(
                tuple(
                    tuple(modes.get(layer, Recompute.NONE) for layer in range(first, stop))
                    for _, first, stop in cells
                )
            )
        return tuple(rows)

    def _modes(self, layers: int) -> dict[int, Recompute] | None:
        """Types of the layers that are wrapped."""
        given = self.given
        value = given.value("checkpoint_layers")
        if value is None:
            return None if given.is_unread("checkpoint_layers") else {}
        pairs = (
            {_index(key): mode for key, mode in value.items()} if isinstance(value, dict) else {None: None}
        )
        if any(key is None or mode not in tuple(_MODES) for key, mode in pairs.items()):
            given.breaks(
                "CHECKPOINT_LAYERS", 'must be "full" or "selective" by the index of a layer', shown(value)
            )
            return None
        found = {key: _MODES[str(mode)] for key, mode in pairs.items() if key is not None}
        beyond = [key for key in found if key >= layers]
        if beyond:
            rule = "must name layers of the model"
            given.breaks("CHECKPOINT_LAYERS", rule, f"layer {beyond[0]} of {layers}")
        return found


def _is_stage(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 10**6 for each in value)
    )


def _index(key: object) -> int | None:
    """Index of a layer, which JSON has as text."""
    if isinstance(key, int) and not isinstance(key, bool) and key >= 0:
        return key
    return int(key) if isinstance(key, str) and key.isascii() and key.isdigit() and len(key) < 8 else None
