"""
A configuration of torchtitan: its parts, schedule and checkpointing, and the rules that it breaks.

The file does not say how many layers the model has, unless its lists of modules do.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from os import PathLike
from pathlib import Path

from sapp_ppb.costs.checks import printable, shown
from sapp_ppb.errors import InputError, ScheduleError
from sapp_ppb.readers.frameworks.torchtitan_settings import TorchtitanSettings, torchtitan_settings
from sapp_ppb.readers.plans.order_file import read_order
from sapp_ppb.schedules import OrderFile, Placement, Schedule, ScheduleName, build_schedule, parse_csv
from sapp_ppb.targets import BrokenRule, CellTypes, PipelineConfig
from sapp_ppb.targets.torchtitan.parts import default_layers, default_parts, layer_of, layers_of
from sapp_ppb.targets.torchtitan.rules import (
    FAMILIES,
    PARTS_KEY,
    SCHEDULE_KEY,
    checkpoint_rules,
    checkpoint_types,
    group_of,
    is_single,
    micro_batch_rules,
    module_notes,
    module_rules,
    part_rules,
    placement_of,
    schedule_named,
)
from sapp_ppb.targets.torchtitan.target import SCHEDULES

_UNKNOWN_LAYERS = (
    "the layers of the model are not known: model.flavor does not say them, and no lists of modules name them"
)
_CSV_KEY = "pipeline_parallel_schedule_csv"
_PER_PART_KEY = "pipeline_parallel_layers_per_stage"


def read_torchtitan(path: str | PathLike[str], layers: int | None = None) -> PipelineConfig:
    """
    Read a configuration of torchtitan.

    Parameters
    ----------
    path
        TOML, or Python (``.py``), which is parsed and never run; ``FILE.py::FUNCTION``
        names one of several configurations.
    layers
        Layers of the model; None takes those that the lists of modules name.

    Raises
    ------
    InputError
        If the file can not be read as what it is.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> text = '''[parallelism]
    ... pipeline_parallel_degree = 2
    ... module_fqns_per_model_part = [["tok_embeddings", "layers.0"], ["layers.1", "norm", "output"]]
    ... [activation_checkpoint]
    ... mode = "full"
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "job.toml").write_text(text)
    ...     config = read_torchtitan(Path(folder, "job.toml"))
    >>> config.stages, config.layers, config.types[0], config.broken
    (2, 2, ((<Recompute.FULL: 4>,), (<Recompute.FULL: 4>,)), ())
    """
    file, _, function = str(path).partition(".py::")
    place = Path(f"{file}.py" if function else path)
    settings = torchtitan_settings(place, function or None)
    return _Judge(settings=settings, folder=place.parent, given_layers=layers).config(str(path))


@dataclass
class _Judge:
    """Works out a pipeline from settings, and gathers rules that are broken on the way."""

    settings: TorchtitanSettings
    folder: Path
    given_layers: int | None
    broken: list[BrokenRule] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def config(self, where: str) -> PipelineConfig:
        """Say the pipeline."""
        given = self.settings
        self.unknown += given.unknown
        self.notes += given.notes
        self._judge_checkpoint()
        if given.stages == 1:
            return self._no_pipeline(where)
        schedule, stages = self._schedule(), given.stages
        micro_batches = self._micro_batches()
        parts = None if stages is None else self._layers_per_part(stages)
        chunks = None if stages is None or parts is None else self._chunks(len(parts), stages, schedule)
        order = self._order(stages, chunks, micro_batches, placement_of(schedule))
        if not given.schedule_csv and schedule and stages and chunks and micro_batches and not self.broken:
            self.broken += micro_batch_rules(schedule, stages, chunks, micro_batches)
        if stages and chunks and micro_batches and micro_batches < stages * chunks:
            self.notes.append(
                f"{micro_batches} micro-batches are fewer than the {stages * chunks} parts, so stages wait"
            )
        types = None
        if stages is not None and parts is not None and chunks is not None:
            types = self._types(parts, stages, placement_of(schedule))
        own = None if given.schedule_csv else schedule
        return PipelineConfig(
            target="torchtitan",
            where=where,
            stages=stages,
            interleave=chunks or 1,
            micro_batches=micro_batches,
            schedule=ScheduleName.CUSTOM if order else own,
            micro_batch_group=None if chunks in (None, 1) else group_of(own, stages or 1, micro_batches),
            order_file=order,
            layers=self._layers(),
            types=types,
            broken=tuple(self.broken),
            unknown=tuple(self.unknown),
            notes=tuple(self.notes),
        )

    def _no_pipeline(self, where: str) -> PipelineConfig:
        """Say a model that is not cut: one rank runs the whole batch at once."""
        if self.settings.parts is not None or self.settings.schedule_csv:
            self.notes.append("pipeline_parallel_degree is 1, so lists of modules and orders are ignored")
        layers = self._layers()
        if layers is None:
            self.unknown.append(_UNKNOWN_LAYERS)
        return PipelineConfig(
            target="torchtitan",
            where=where,
            stages=1,
            micro_batches=1,
            schedule=ScheduleName.ONE_F_ONE_B,
            layers=layers,
            types=None if layers is None else self._types([layers], 1, Placement.LOOP),
            broken=tuple(self.broken),
            unknown=tuple(self.unknown),
            notes=("pipeline_parallel_degree is 1: there is no pipeline yet", *self.notes),
        )

    def _judge_checkpoint(self) -> None:
        mode, option, unread = self.settings.mode, self.settings.option, self.settings.unread
        if mode is not None and option is not None:
            self.broken += checkpoint_rules(mode, option)
        elif not {"mode", "selective_ac_option"} & unread:
            self.unknown.append("activation_checkpoint is not given, and releases differ in what they take")
        if mode == "memory_budget":
            self.unknown.append("mode memory_budget leaves to the compiler what is recomputed")

    def _chunks(self, parts: int, stages: int, schedule: ScheduleName | None) -> int | None:
        """Parts of each rank; None where they are not equally many, or can not be placed."""
        csv = bool(self.settings.schedule_csv)
        on_a_v = placement_of(schedule) is Placement.V
        self.broken += part_rules(parts, stages, schedule if on_a_v or not csv else None)
        return None if parts % stages or (on_a_v and parts != 2 * stages) else parts // stages

    def _schedule(self) -> ScheduleName | None:
        text = self.settings.schedule
        if text is None:
            return None
        if self.settings.is_old and text.lower() == "interleaved_1f1b":
            return ScheduleName.INTERLEAVED
        found = schedule_named(text)
        if found is None and not (self.settings.schedule_csv and is_single(text) is not None):
            names = ", ".join([*SCHEDULES.values(), *(FAMILIES if self.settings.schedule_csv else ())])
            self.broken.append(
                BrokenRule(key=SCHEDULE_KEY, rule=f"must be one of {names}", found=shown(text))
            )
        return found

    def _micro_batches(self) -> int | None:
        given = self.settings
        if given.micro_batches is not None:
            return given.micro_batches
        if given.batch_size is None:
            if not {"local_batch_size", "batch_size", "num_pp_microbatches"} & given.unread:
                self.unknown.append(
                    "micro-batches are not known: neither num_pp_microbatches nor local_batch_size is given"
                )
            return None
        if given.micro_batch_size is None:
            return None
        if given.batch_size % given.micro_batch_size:
            self.broken.append(
                BrokenRule(
                    key="training.local_batch_size",
                    rule="must be a multiple of pipeline_parallel_microbatch_size",
                    found=f"{given.batch_size} and {given.micro_batch_size}",
                )
            )
            return None
        return given.batch_size // given.micro_batch_size

    def _layers(self) -> int | None:
        """Layers of the model, as far as anything says them."""
        if self.given_layers is not None:
            return self.given_layers
        if self.settings.parts is None:
            return None
        named = [index for part in self.settings.parts for index in layers_of(part)]
        return max(named) + 1 if named else None

    def _layers_per_part(self, stages: int) -> list[int] | None:
        """Layers of each part; None when they are not known."""
        parts = self.settings.parts
        if parts is not None:
            if self.settings.per_part is not None:
                self.notes.append(f"newer releases refuse {_PER_PART_KEY} beside lists of modules")
            self.broken += module_rules(parts, self.given_layers)
            self.notes += module_notes(parts)
            most = self._layers() or 0
            return [sum(index < most for index in layers_of(part)) for part in parts]
        unread = [key for key in self.settings.unread if key.endswith(PARTS_KEY) or key == _PER_PART_KEY]
        if unread:
            return None
        if self.given_layers is None:
            self.unknown.append(_UNKNOWN_LAYERS)
            return None
        if self.settings.split_points is not None:
            return self._split(self.settings.split_points, self.given_layers)
        if self.settings.is_old:
            self.unknown.append("the parts are not known: no split points are given, and releases differ")
            return None
        return self._default_layers(stages, self.given_layers)

    def _split(self, points: tuple[str, ...], layers: int) -> list[int] | None:
        """Layers of parts that begin at the points, as older releases have it."""
        starts = [layer_of(point) for point in points]
        whole = [0, *(start for start in starts if start is not None), layers]
        if None in starts or any(after <= before for before, after in pairwise(whole[1:])):
            self.broken.append(
                BrokenRule(
                    key="pipeline_parallel_split_points",
                    rule=f"must name layers below {layers} in rising order",
                    found=shown(", ".join(points)),
                )
            )
            return None
        return [stop - start for start, stop in pairwise(whole)]

    def _default_layers(self, stages: int, layers: int) -> list[int] | None:
        first, last, text = self.settings.first_less, self.settings.last_less, self.settings.schedule
        single = None if text is None else is_single(text)
        if first is None or last is None or single is None:
            return None
        key = _PER_PART_KEY
        try:
            parts = default_parts(
                layers=layers,
                stages=stages,
                single=single,
                per_part=self.settings.per_part,
                less=first + last,
            )
            key = PARTS_KEY if self.settings.per_part is None else key
            counts = default_layers(layers=layers, parts=parts, first_less=first, last_less=last)
        except ValueError as error:
            rule, _, found = str(error).removesuffix(")").partition(" (got ")
            self.broken.append(BrokenRule(key=key, rule=rule, found=found))
            return None
        return list(counts)

    def _order(
        self, stages: int | None, chunks: int | None, micro_batches: int | None, placement: Placement
    ) -> OrderFile | None:
        """Order of a CSV file, if one is named; the rules that it breaks are kept."""
        path = self.settings.schedule_csv
        if not path:
            return None
        try:
            order = read_order(path, beside=self.folder)
        except InputError as error:
            self.unknown.append(f"{_CSV_KEY} is not known: {printable(error.where)}: {error.faults[0]}")
            return None
        try:
            found = parse_csv(order.text, name=path)
            self._judge_order(found, stages, placement)
            if not self.broken and stages and chunks and micro_batches:
                build_schedule("custom", stages, chunks, micro_batches, order=order)
        except ScheduleError as error:
            self.broken.append(
                BrokenRule(key=_CSV_KEY, rule="must be an order that can run", found=str(error))
            )
        return order

    def _judge_order(self, found: Schedule, stages: int | None, placement: Placement) -> None:
        if found.placement is not placement and found.chunks == 2 and stages != 1:
            wanted = "ZBVZeroBubble or DualPipeV" if found.placement is Placement.V else "Interleaved1F1B"
            self.broken.append(
                BrokenRule(
                    key=SCHEDULE_KEY,
                    rule="decides where the parts go also when an order is given, and must go with it",
                    found=f"{shown(self.settings.schedule)} for parts on a {found.placement.value}",
                    mend=f"use {wanted}",
                )
            )

    def _types(self, layers_per_part: list[int], stages: int, placement: Placement) -> CellTypes | None:
        mode, option = self.settings.mode, self.settings.option
        if mode is None or option is None:
            return None
        return checkpoint_types(mode, option, layers_per_part, stages, placement)
