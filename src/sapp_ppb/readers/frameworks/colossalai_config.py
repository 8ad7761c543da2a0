"""A script of Colossal-AI: what its plugin says of the pipeline, and the rules that it breaks."""

from dataclasses import dataclass
from os import PathLike

from sapp_ppb.costs import Recompute
from sapp_ppb.costs.checks import shown
from sapp_ppb.readers.formats.literal_config import LiteralConfig
from sapp_ppb.readers.formats.literal_values import read_literals
from sapp_ppb.schedules import MOST_CELLS, Placement, ScheduleName
from sapp_ppb.targets.colossalai import STYLES, default_layers, micro_batch_fault
from sapp_ppb.targets.config import CellTypes, PipelineConfig

_NAMES = {
    "pp_size",
    "pp_style",
    "num_model_chunks",
    "num_microbatches",
    "microbatch_size",
    "scheduler_nodes",
    "num_layers_per_stage",
    "num_ckpt_layers_per_stage",
    "gradient_checkpointing_ratio",
    "gradient_checkpoint_config",
    "num_hidden_layers",
}
_SCHEDULES = {style: name for name, style in STYLES.items()}
_SPLIT, _COUNTS, _RATIO = "num_layers_per_stage", "num_ckpt_layers_per_stage", "gradient_checkpointing_ratio"


def read_colossalai(path: str | PathLike[str], layers: int | None = None) -> PipelineConfig:
    """
    Read a script of Colossal-AI, which is parsed and never run, or a JSON of the same names.

    Parameters
    ----------
    path
        Python (``.py``) with the keywords of ``HybridParallelPlugin`` and
        ``PipelineGradientCheckpointConfig``, or JSON.
    layers
        Layers of the model; None takes those that the file names.

    Raises
    ------
    InputError
        If the file can not be read as what it is.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> text = "dict(pp_size=2, num_layers_per_stage=[1, 2], num_ckpt_layers_per_stage=[0, 1])"
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "train.py").write_text(text)
    ...     config = read_colossalai(Path(folder, "train.py"))
    >>> config.layers, [[r.label for r in cell] for cell in config.types[0]]
    (3, [['none'], ['full', 'none']])
    """
    return _Judge(given=LiteralConfig(literals=read_literals(path, _NAMES)), layers=layers).config()


@dataclass
class _Judge:
    """Works out a pipeline from named values."""

    given: LiteralConfig
    layers: int | None

    def config(self) -> PipelineConfig:
        """Say the pipeline."""
        given = self.given
        schedule = self._schedule()
        chunks = given.whole("num_model_chunks", 1, most=MOST_CELLS)
        split = given.wholes(_SPLIT)
        stages = self._stages(None if chunks != 1 else split)
        if stages == 1:
            given.notes.append("pp_size is 1: there is no pipeline yet")
            schedule, chunks, split = ScheduleName.ONE_F_ONE_B, 1, None
        micro_batches = 1 if stages == 1 else self._micro_batches()
        if schedule is not None and chunks is not None and stages is not None and stages > 1:
            self._judge_order(schedule, stages, chunks, micro_batches)
        types = self._types(schedule, stages, chunks, split)
        return PipelineConfig(
            target="colossalai",
            where=given.literals.where,
            stages=stages,
            interleave=chunks or 1,
            micro_batches=micro_batches,
            schedule=schedule,
            layers=self.layers,
            types=types,
            broken=tuple(given.broken),
            unknown=tuple(given.unknown),
            notes=tuple(given.notes),
        )

    def _schedule(self) -> ScheduleName | None:
        style = self.given.text("pp_style", STYLES[ScheduleName.ONE_F_ONE_B])
        if style is not None and style not in _SCHEDULES:
            self.given.breaks("pp_style", f"must be one of {', '.join(_SCHEDULES)}", shown(style))
        return _SCHEDULES.get(style or "")

    def _stages(self, split: tuple[int, ...] | None) -> int | None:
        """Devices; those of the list where only running the file would show their number."""
        given = self.given
        if split is not None and (given.is_unread("pp_size") or not given.is_given("pp_size")):
            return len(split)
        stages = given.whole("pp_size", most=MOST_CELLS)
        if stages is None and not given.is_given("pp_size"):
            given.needs("pp_size is not given, which is the number of stages")
        return stages

    def _micro_batches(self) -> int | None:
        number = self.given.whole("num_microbatches")
        if number is None and not self.given.is_given("num_microbatches"):
            why = ", and only microbatch_size is" if self.given.is_given("microbatch_size") else ""
            self.given.needs(f"micro-batches are not known: num_microbatches is not given{why}")
        return number

    def _judge_order(
        self, schedule: ScheduleName, stages: int, chunks: int, micro_batches: int | None
    ) -> None:
        """Rules of the style."""
        given, style = self.given, STYLES[schedule]
        wanted = {"1f1b": chunks == 1, "interleaved": chunks > 1, "zbv": chunks == 2}[style]
        if not wanted:
            words = {"1f1b": "must be 1", "interleaved": "must be above 1", "zbv": "must be 2"}[style]
            given.breaks("num_model_chunks", f"{words} for {style}", str(chunks))
        if schedule is ScheduleName.ZBV:
            if not given.is_given("scheduler_nodes"):
                rule = "must be given for zbv, as PipelineGraph(...).get_v_schedule() makes them"
                given.breaks("scheduler_nodes", rule, "none")
            given.notes.append(
                "zbv runs the order of scheduler_nodes, and is priced in the order of zbv here"
            )
        fault = None if micro_batches is None else micro_batch_fault(style, stages, chunks, micro_batches)
        if fault is not None:
            key, _, rest = fault.partition(" ")
            rule, _, found = rest.removesuffix(")").partition(" (got ")
            given.breaks(key, rule, found)

    def _types(
        self,
        schedule: ScheduleName | None,
        stages: int | None,
        chunks: int | None,
        split: tuple[int, ...] | None,
    ) -> CellTypes | None:
        """Types of the layers of every cell, indexed ``[chunk][stage]``."""
        if stages is None or chunks is None or schedule is None:
            return None
        if stages * chunks > MOST_CELLS:
            self.given.breaks(
                "num_model_chunks", f"times pp_size must be at most {MOST_CELLS}", str(stages * chunks)
            )
            return None
        if schedule is ScheduleName.ZBV and chunks != 2:
            return None
        along = self._split(stages, chunks, split)
        if along is None:
            return None
        place = Placement.V if schedule is ScheduleName.ZBV else Placement.LOOP
        cells = [[place.cell_of(stage, chunk, stages) for stage in range(stages)] for chunk in range(chunks)]
        per_cell = [along[cell] for row in cells for cell in row]
        counts = self._checkpointed(per_cell)
        if counts is None:
            return None
        flat = [
            (Recompute.FULL,) * min(count, number) + (Recompute.NONE,) * max(0, number - count)
            for count, number in zip(counts, per_cell, strict=True)
        ]
        return tuple(tuple(flat[chunk * stages : (chunk + 1) * stages]) for chunk in range(chunks))

    def _split(self, stages: int, chunks: int, split: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """Layers of each cell along the chain."""
        given, cells = self.given, stages * chunks
        if split is None and given.is_given(_SPLIT) and stages > 1:
            return None
        if self.layers is None:
            own = given.whole("num_hidden_layers") if given.is_given("num_hidden_layers") else None
            self.layers = sum(split) if own is None and split is not None else own
        if split is None:
            if self.layers is None:
                given.needs("the layers of the model are not known: num_layers_per_stage is not given")
                return None
            return default_layers(self.layers, cells)
        self._judge_split(stages, chunks, split)
        return split if len(split) == cells else None

    def _judge_split(self, stages: int, chunks: int, split: tuple[int, ...]) -> None:
        given = self.given
        if chunks > 1:
            given.breaks(
                _SPLIT,
                "can not be given with several model chunks: the list must be as long as pp_size, and every "
                "chunk needs a number",
                f"{len(split)} numbers for {stages} stages of {chunks} chunks",
                "leave it out, or use 1f1b",
            )
        elif len(split) != stages:
            given.breaks(_SPLIT, "must have pp_size numbers", f"{len(split)} numbers for pp_size {stages}")
        if self.layers is not None and sum(split) != self.layers:
            given.breaks(_SPLIT, "must sum to the layers of the model", f"{sum(split)} of {self.layers}")
        if 0 in split:
            given.notes.append(f"stage {split.index(0)} has no layers, which was not tried with Colossal-AI")

    def _checkpointed(self, per_cell: list[int]) -> list[int] | None:
        """First layers of each cell that are recomputed, chunk after chunk."""
        given = self.given
        if given.is_given(_COUNTS):
            counts = given.wholes(_COUNTS)
            if counts is None:
                return None
            if len(counts) != len(per_cell):
                rule = "must have a number for every chunk of every stage"
                given.breaks(_COUNTS, rule, f"{len(counts)} numbers for {len(per_cell)}")
                return None
            over = [at for at, number in enumerate(per_cell) if counts[at] > number]
            if over:
                rule = "must be no more than the layers of the chunk"
                given.breaks(_COUNTS, rule, f"{counts[over[0]]} of {per_cell[over[0]]} at place {over[0]}")
            return list(counts)
        if given.is_given(_RATIO):
            return self._share(per_cell)
        if "PipelineGradientCheckpointConfig" in given.literals.calls:
            return [0] * len(per_cell)  # its ratio is 0 unless given
        if given.is_given("gradient_checkpoint_config"):
            given.needs(
                "gradient_checkpoint_config is not known: what it is made of stands in no plain value"
            )
            return None
        if "gradient_checkpointing_enable" in given.literals.calls:
            return per_cell
        return [0] * len(per_cell)

    def _share(self, per_cell: list[int]) -> list[int] | None:
        """Give each cell its share of recomputed layers, rounded down."""
        ratio = self.given.value(_RATIO)
        if isinstance(ratio, int | float) and not isinstance(ratio, bool) and 0 <= ratio <= 1:
            return [int(ratio * number) for number in per_cell]
        if ratio is not None:
            self.given.breaks(_RATIO, "must be from 0 to 1", shown(ratio))
        return None
