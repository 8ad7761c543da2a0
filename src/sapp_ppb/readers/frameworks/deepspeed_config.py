"""A script of DeepSpeed: the boundaries of its ``PipelineModule``, and the rules that they break."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike

from sapp_ppb.costs import Recompute
from sapp_ppb.costs.checks import shown
from sapp_ppb.readers.formats.literal_config import LiteralConfig
from sapp_ppb.readers.formats.literal_values import read_literals
from sapp_ppb.schedules import MOST_CELLS, ScheduleName
from sapp_ppb.targets.config import CellTypes, PipelineConfig

_NAMES = {
    "parts",
    "entries_before",
    "entries_behind",
    "num_stages",
    "partition_method",
    "activation_checkpoint_interval",
    "micro_batches",
    "gradient_accumulation_steps",
}
_INTERVAL = "activation_checkpoint_interval"


def read_deepspeed(path: str | PathLike[str], layers: int | None = None) -> PipelineConfig:
    r"""
    Read a script of DeepSpeed, which is parsed and never run, or a JSON of the same names.

    Parameters
    ----------
    path
        Python (``.py``) with ``PARTS`` and the keywords of ``PipelineModule``, or JSON.
    layers
        BODY layers of the model; None takes what the boundaries leave.

    Raises
    ------
    InputError
        If the file can not be read as what it is.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> text = "PARTS = [0, 3, 7]\nACTIVATION_CHECKPOINT_INTERVAL = 1\nMICRO_BATCHES = 4"
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "model.py").write_text(text)
    ...     config = read_deepspeed(Path(folder, "model.py"))
    >>> config.layers, [len(cell) for cell in config.types[0]]  # 7 less one entry before and one behind
    (5, [2, 3])
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
        before = given.whole("entries_before", 1, least=0)
        behind = given.whole("entries_behind", 1, least=0)
        parts = None if before is None or behind is None else self._parts(before + behind)
        stages = self._stages(parts)
        types = None
        if (
            parts is not None
            and before is not None
            and behind is not None
            and self._judge(parts, before, behind)
        ):
            types = self._types(parts, before, parts[-1] - behind)
        return PipelineConfig(
            target="deepspeed",
            where=given.literals.where,
            stages=stages,
            micro_batches=self._micro_batches(),
            schedule=ScheduleName.ONE_F_ONE_B,
            layers=self.layers,
            types=types,
            broken=tuple(given.broken),
            unknown=tuple(given.unknown),
            notes=tuple(given.notes),
        )

    def _parts(self, beside: int) -> tuple[int, ...] | None:
        """Boundaries, as they are given or as ``uniform`` makes them."""
        given = self.given
        if given.is_given("parts"):
            return given.wholes("parts")
        method = given.text("partition_method", "parameters")
        if method is not None and method.lower() == "uniform":
            stages = given.whole("num_stages", most=MOST_CELLS)
            if stages is not None and self.layers is not None:
                return uniform_parts(self.layers + beside, stages)
        given.needs(
            f"the boundaries are not known: PARTS is not given, and partition_method {shown(method)} cuts by "
            "what the model holds"
        )
        return None

    def _stages(self, parts: Sequence[int] | None) -> int | None:
        given = self.given
        if parts is None:
            return given.whole("num_stages", most=MOST_CELLS)
        number = len(parts) - 1
        if given.is_given("num_stages") and not given.is_unread("num_stages"):
            stages = given.whole("num_stages", most=MOST_CELLS)
            if stages is not None and stages != number:
                given.breaks(
                    "parts", "must have num_stages + 1 boundaries", f"{len(parts)} for {stages} stages"
                )
        return number or None

    def _judge(self, parts: Sequence[int], before: int, behind: int) -> bool:
        """Rules of the boundaries; whether they say which layers stand where."""
        given = self.given
        if len(parts) < 2 or parts[0] != 0:
            given.breaks("parts", "must be boundaries from 0 on, one more than stages", str(list(parts)))
            return False
        falling = [stage for stage, (low, high) in enumerate(pairwise(parts)) if high < low]
        bare = [stage for stage, (low, high) in enumerate(pairwise(parts)) if high == low]
        if falling:
            given.breaks("parts", "must rise", f"stage {falling[0]} ends before it begins")
            return False
        if bare:
            rule = "every stage must hold a layer, since its optimizer takes no empty list of parameters"
            given.breaks("parts", rule, f"none in stage {bare[0]}")
        held = parts[-1] - before - behind
        if held < 1:
            given.breaks(
                "parts",
                f"must leave layers beside {before} entries before and {behind} behind them",
                f"{parts[-1]} entries",
            )
            return False
        if self.layers is not None and held != self.layers:
            rule = "the last boundary must be the number of entries"
            found = f"{parts[-1]} for {self.layers} layers, {before} before and {behind} behind"
            given.breaks("parts", rule, found, "set ENTRIES_BEFORE and ENTRIES_BEHIND to those of your list")
        elif self.layers is None:
            self.layers = held
        if parts[1] < before or parts[-2] > parts[-1] - behind:
            given.notes.append(
                "entries before or behind the layers stand on several stages, and are priced on one"
            )
        return True

    def _types(self, parts: Sequence[int], first: int, stop: int) -> CellTypes | None:
        """Types of the layers of every stage."""
        given = self.given
        interval = given.whole(_INTERVAL, 0, least=0)
        if interval is None:
            return None
        if interval > 1:
            given.notes.append(
                f"{_INTERVAL} {interval} keeps one input for {interval} layers and recomputes them together; "
                "priced as 1, which keeps more inputs and recomputes one layer at a time"
            )
        if interval and "checkpointable_layers" not in given.literals.keywords:
            given.notes.append(
                "without checkpointable_layers embedding and head are recomputed too; not priced"
            )
        kind = Recompute.FULL if interval else Recompute.NONE
        held = [max(0, min(high, stop) - max(low, first)) for low, high in pairwise(parts)]
        return (tuple((kind,) * number for number in held),)

    def _micro_batches(self) -> int | None:
        given = self.given
        for name in ("micro_batches", "gradient_accumulation_steps"):
            if given.is_given(name):
                return given.whole(name)
        given.needs("micro-batches are not known: gradient_accumulation_steps stands in DeepSpeed's own JSON")
        return None


def uniform_parts(entries: int, stages: int) -> tuple[int, ...]:
    """
    Boundaries of ``partition_method="uniform"``: equal shares, the first stages one more.

    Source: ``partition_uniform`` of ``deepspeed/runtime/utils.py``.

    Examples
    --------
    >>> uniform_parts(10, 4)  # 3 + 3 + 2 + 2
    (0, 3, 6, 8, 10)
    """
    share, rest = divmod(entries, stages)
    return tuple(stage * share + min(stage, rest) for stage in range(stages + 1))
