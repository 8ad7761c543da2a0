"""Row: one line of a sweep's table, what was chosen and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from sapp_ppb.costs import Recompute
from sapp_ppb.sweep.answer import Answer, RowStatus
from sapp_ppb.sweep.candidate import Candidate
from sapp_ppb.sweep.grid import Skipped
from sapp_ppb.sweep.work import Effort

# Every column, in this order; docs/sweeps.md says what each means.
INPUTS = (
    "model",
    "devices",
    "global_batch",
    "stages",
    "interleave",
    "micro_batches",
    "schedule",
    "micro_batch_size",
    "tensor_parallel",
    "data_parallel",
    "memory_limit_mb",
    "memory_margin",
    "constant_memory_mb",
    "p2p_ms",
    "p2p_mode",
    "stage_speed",
    "step_extra_ms",
    "micro_batch_group",
    "sequence_chunks",
    "overlap_factor",
    "flavour",
    "recompute",
    "max_recompute_types",
    "recompute_working_set",
    "min_layers_per_cell",
    "target",
    "time_limit_s",
    "asked_gap",
    "seed",
)
RESULTS = (
    "status",
    "makespan_ms",
    "step_ms",
    "ms_per_sample",
    "samples_per_s",
    "lower_bound_ms",
    "gap",
    "peak_memory_mb",
    "peak_stage",
    "peaks_mb",
    "recomputed_layers",
    "strategy_layers",
    "bubble",
    "bubble_fill_drain",
    "bubble_imbalance",
    "bubble_recompute",
    "bubble_communication",
    "pareto",
    "stopped_by",
    "seconds",
    "reason",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """
    What was chosen, and what came of it.

    Attributes
    ----------
    candidate
        The problem; None for a combination that is none.
    inputs
        What was given and chosen, by column; a column that is not there is empty.
    answer
        What came of it.
    pareto
        Whether no other row is as fast with as little memory.
    """

    candidate: Candidate | None
    inputs: Mapping[str, object]
    answer: Answer
    pareto: bool = False

    @property
    def peak_memory_mb(self) -> float | None:
        """Highest peak of all stages; None without a plan."""
        return max(self.answer.peak_memory_mb, default=None)

    @property
    def cells(self) -> dict[str, object]:
        """Value of every column; None where it is empty, a list for the peaks and for limits by stage."""
        answer = self.answer
        inputs = {name: self.inputs.get(name) for name in INPUTS}
        return inputs | {
            "status": answer.status.value,
            **self._times(),
            "lower_bound_ms": answer.lower_bound_ms,
            "gap": answer.gap,
            "peak_memory_mb": self.peak_memory_mb,
            "peak_stage": self._peak_stage(),
            "peaks_mb": list(answer.peak_memory_mb) or None,
            "recomputed_layers": self._layers(1, len(Recompute)),
            "strategy_layers": self._layers(len(Recompute), None),
            **self._bubble(),
            "pareto": self.pareto,
            "stopped_by": None if answer.stopped_by is None else answer.stopped_by.value,
            "seconds": answer.seconds,
            "reason": answer.reason or None,
        }

    def _times(self) -> dict[str, object]:
        step_ms, batch = self.answer.step_ms, self.candidate.global_batch if self.candidate else 0
        known = step_ms is not None and batch > 0
        return {
            "makespan_ms": self.answer.makespan_ms,
            "step_ms": step_ms,
            "ms_per_sample": step_ms / batch if known and step_ms is not None else None,
            "samples_per_s": 1000 * batch / step_ms if known and step_ms else None,
        }

    def _peak_stage(self) -> int | None:
        peaks = self.answer.peak_memory_mb
        return peaks.index(max(peaks)) if peaks else None

    def _layers(self, first: int, last: int | None) -> int | None:
        """Layers under the types of some numbers; None without a plan."""
        if not self.answer.counts:
            return None
        return sum(sum(cells) for types in self.answer.counts for cells in types[first:last])

    def _bubble(self) -> dict[str, object]:
        bubble = self.answer.bubble
        parts = ("fill_drain", "imbalance", "recompute", "communication")
        shares = {f"bubble_{part}": None if bubble is None else getattr(bubble, part) for part in parts}
        return {"bubble": None if bubble is None else bubble.total, **shares}


def row_of(candidate: Candidate, answer: Answer, effort: Effort, *, pareto: bool = False) -> Row:
    """Put a candidate and what came of it on one row."""
    return Row(candidate=candidate, inputs=_inputs(candidate, effort), answer=answer, pareto=pareto)


def skipped_row(skipped: Skipped, known: Mapping[str, object]) -> Row:
    """
    Put a combination that is no problem on a row.

    Parameters
    ----------
    known
        What was given for all, by column.
    """
    answer = Answer(status=RowStatus.SKIPPED, reason=skipped.reason)
    return Row(candidate=None, inputs=dict(known) | dict(skipped.chosen), answer=answer)


def _inputs(candidate: Candidate, effort: Effort) -> dict[str, object]:
    problem = candidate.problem
    types = problem.recompute
    return {
        "model": problem.model.name,
        "devices": candidate.devices,
        "global_batch": candidate.global_batch,
        "stages": problem.stages,
        "interleave": problem.interleave,
        "micro_batches": problem.micro_batches,
        "schedule": problem.schedule_name.value,
        "micro_batch_size": candidate.micro_batch_size,
        "tensor_parallel": candidate.tensor_parallel,
        "data_parallel": candidate.data_parallel,
        "memory_limit_mb": problem.memory_limit_mb,
        "memory_margin": problem.memory_margin,
        "constant_memory_mb": problem.constant_memory_mb,
        "p2p_ms": problem.p2p_ms,
        "p2p_mode": problem.p2p_mode.value,
        "stage_speed": problem.stage_speed,
        "step_extra_ms": problem.step_extra_ms,
        "micro_batch_group": problem.micro_batch_group,
        "sequence_chunks": problem.sequence_chunks,
        "overlap_factor": problem.overlap_factor,
        "flavour": None if problem.flavour is None else problem.flavour.value,
        "recompute": None if types is None else [r.label for r in types],
        "max_recompute_types": problem.max_recompute_types,
        "recompute_working_set": problem.recompute_working_set,
        "min_layers_per_cell": problem.min_layers_per_cell,
        "target": problem.target,
        "time_limit_s": float(effort.time_limit_s),
        "asked_gap": float(effort.gap),
        "seed": effort.seed,
    }
