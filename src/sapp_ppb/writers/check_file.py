"""What a check of a configuration found, and the same as JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sapp_ppb.plan import Outcome, Plan
from sapp_ppb.targets import BrokenRule, CellTypes, PipelineConfig
from sapp_ppb.writers.frameworks.exports import EXPORTS
from sapp_ppb.writers.frameworks.torchtitan import torchtitan_text
from sapp_ppb.writers.plan_file import bubble_object, json_text, plan_to_json

if TYPE_CHECKING:
    from sapp_ppb.simulator import Timeline

CHECK_FORMAT = "sapp-ppb-check"
CHECK_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Checked:
    """
    A configuration, what is wrong with it, what it takes, and what the planner would do.

    Attributes
    ----------
    config
        What the file says.
    broken, unknown
        Rules that it breaks and values that are needed and not known, under the options given.
    timeline
        Its step; None when it was not priced.
    unpriced
        Why not; None when it was, or when nobody asked.
    better
        The planner's answer for the same framework; None when there is none.
    unplanned
        Why not; None when there is one, or when nobody asked.
    """

    config: PipelineConfig
    broken: tuple[BrokenRule, ...]
    unknown: tuple[str, ...]
    timeline: "Timeline | None" = None
    unpriced: str | None = None
    better: Outcome | None = None
    unplanned: str | None = None

    @property
    def is_fine(self) -> bool:
        """Whether no rule is broken, nothing is unknown, and no stage is over its limit."""
        return not self.broken and not self.unknown and (self.timeline is None or self.timeline.fits_memory)

    @property
    def moved_layers(self) -> int:
        """BODY layers that the planner's answer has in another cell."""
        return int((_cell_of_layers(self._now) != _cell_of_layers(self._then)).sum())

    @property
    def more_recomputed(self) -> int:
        """Layers that the planner's answer recomputes more; below 0 for fewer."""
        return self._then.recomputed_layers - self._now.recomputed_layers

    @property
    def shorter(self) -> float:
        """Share of the step that the planner's answer saves; below 0 where it takes longer."""
        assert self.timeline is not None, "a step to compare with"  # noqa: S101
        assert self.better is not None, "an answer"  # noqa: S101
        return 1.0 - (self.better.step_ms or 0.0) / self.timeline.step_ms

    @property
    def is_better(self) -> bool:
        """Whether the planner's answer is worth taking: shorter, or within a limit that is exceeded."""
        if self.better is None or self.timeline is None or self.better.plan is None:
            return False
        return self.shorter > 1e-9 or not self.timeline.fits_memory

    @property
    def text_to_paste(self) -> str | None:
        """The planner's plan in the words of the file that was checked; None where there is none."""
        form = EXPORTS.get(self.config.target)
        if form is None or self.better is None or self.better.plan is None:
            return None
        if self.config.target == "torchtitan" and ".py" in Path(self.config.where).name:
            return torchtitan_text(self.better.plan, python=True)
        return form.text(self.better.plan)

    @property
    def _now(self) -> Plan:
        assert self.timeline is not None, "a step to compare with"  # noqa: S101
        return self.timeline.plan

    @property
    def _then(self) -> Plan:
        assert self.better is not None, "an answer"  # noqa: S101
        assert self.better.plan is not None, "an answer with a plan"  # noqa: S101
        return self.better.plan


def _cell_of_layers(plan: Plan) -> np.ndarray:
    """Cell of every BODY layer along the chain; shape (N,)."""
    return np.repeat(np.arange(plan.problem.cells), plan.layers_per_cell)


def check_to_json(checked: Checked) -> str:
    """
    Text of a check, with a line end at its end.

    What is not known is null: ``price`` without a model file, ``planner`` where it was
    not asked or has no plan.
    """
    document = {
        "format": CHECK_FORMAT,
        "version": CHECK_VERSION,
        "ok": checked.is_fine,
        "config": _config(checked.config),
        "broken": [
            {"key": rule.key, "rule": rule.rule, "found": rule.found, "mend": rule.mend}
            for rule in checked.broken
        ],
        "unknown": list(checked.unknown),
        "notes": list(checked.config.notes),
        "price": None if checked.timeline is None else _price(checked.timeline),
        "not_priced": checked.unpriced,
        "planner": None if checked.better is None else _planner(checked),
        "not_planned": checked.unplanned,
    }
    return json_text(document) + "\n"


def _config(config: PipelineConfig) -> dict[str, object]:
    return {
        "path": config.where,
        "framework": config.target,
        "stages": config.stages,
        "interleave": config.interleave,
        "micro_batches": config.micro_batches,
        "schedule": None if config.schedule is None else config.schedule.value,
        "micro_batch_group": config.micro_batch_group,
        "sequence_chunks": config.sequence_chunks,
        "layers": config.layers,
        "mtp_layers": config.mtp_layers,
        "memory_limit_mb": config.memory_limit_mb,
        "counts": None if config.types is None else _counts(config.types),
    }


def _counts(types: CellTypes) -> dict[str, object]:
    """Layers of each type as matrices indexed ``[chunk][stage]``, as plan files have them."""
    return {
        recompute.label: matrix
        for recompute in sorted({r for row in types for cell in row for r in cell})
        if any(map(any, matrix := [[cell.count(recompute) for cell in row] for row in types]))
    }


def _price(timeline: "Timeline") -> dict[str, object]:
    problem = timeline.plan.problem
    limited = problem.memory_limit_mb is not None
    return {
        "makespan_ms": float(timeline.makespan_ms),
        **({"step_ms": float(timeline.step_ms)} if problem.has_extra else {}),
        "bubble": bubble_object(timeline.bubble),
        "peak_memory_mb": [float(mb) for mb in timeline.peak_memory_mb],
        "limit_mb": [float(mb) for mb in problem.limit_per_stage_mb] if limited else None,
        "fits": timeline.fits_memory,
        "recomputed_layers": timeline.plan.recomputed_layers,
        "estimate": bool(problem.model.estimated),
    }


def _planner(checked: Checked) -> dict[str, object]:
    outcome = checked.better
    assert outcome is not None, "an answer"  # noqa: S101
    has_plan = outcome.plan is not None
    return {
        "shorter": checked.shorter if has_plan else None,
        "moved_layers": checked.moved_layers if has_plan else None,
        "more_recomputed": checked.more_recomputed if has_plan else None,
        "text": checked.text_to_paste,
        "plan": json.loads(plan_to_json(outcome)),
    }
