"""
What MindSpeed can say of a plan.

Everything that Megatron-LM can, and besides the V of DualPipeV, on which empty places
make an even split uneven, and full recompute of N layers of every stage, dealt over its
chunks.  Source: that of ``mindspeed_split.py``, and for recompute
``transformer_block_checkpointed_forward`` in ``mindspeed/core/memory/common.py`` of
MindSpeed.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets import megatron
from sapp_ppb.targets.megatron_recompute import dealt
from sapp_ppb.targets.mindspeed_flags import PER_RANK
from sapp_ppb.targets.target import Target, Way

SCHEDULES = (*megatron.SCHEDULES, ScheduleName.DUALPIPEV)
Ints = NDArray[np.int64]


def refuses(problem: Problem) -> tuple[str, ...]:
    """Say why MindSpeed can run no plan of a problem."""
    name = problem.schedule_name
    if name not in SCHEDULES:
        names = ", ".join(known.value for known in SCHEDULES)
        return (f"MindSpeed has no schedule {name.value}; use one of {names}",)
    if name is ScheduleName.DUALPIPEV and problem.stages == 1:
        return ("MindSpeed's dualpipev needs at least 2 stages (got 1)",)
    return megatron.refuses(problem) if name is not ScheduleName.DUALPIPEV else ()


def recompute_words(plan: Plan) -> str | None:
    """
    Say the recompute of a plan in flags; empty for none, and None when there are no such flags.

    Megatron-LM's come first; of several N that mean the same the smallest is named.
    """
    words = megatron.recompute_words(plan)
    if words is not None or not _deals(plan.problem):
        return words
    by_entry = plan.counts.sum(axis=1)
    found = (
        words for words, counts in dealt_settings(plan.problem, by_entry) if (counts == plan.counts).all()
    )
    return next(found, None)


def _deals(problem: Problem) -> bool:
    """Whether N may be counted by stage: where Megatron-LM knows of several chunks."""
    return problem.schedule_name is ScheduleName.INTERLEAVED and problem.interleave > 1


def dealt_settings(problem: Problem, by_entry: Ints) -> Iterator[tuple[str, Ints]]:
    """
    Give flags and counts of full recompute of N layers of every stage, for every N.

    Parameters
    ----------
    by_entry
        Layers of each BODY entry in each cell; shape (BODY layers, cells).
    """
    if not _deals(problem):
        return
    chunks, stages = problem.interleave, problem.stages
    decoders = [k for k, layer in enumerate(problem.model.bodies) if not layer.is_mtp]
    for layers in range(1, chunks * int(by_entry[decoders].sum(axis=0).max()) + 1):
        left = np.array([dealt(layers, cell // stages, chunks) for cell in range(problem.cells)])
        counts = np.zeros((len(by_entry), len(Recompute), problem.cells), dtype=np.int64)
        counts[:, Recompute.NONE] = by_entry
        for entry in decoders:
            full = np.minimum(left, by_entry[entry])
            counts[entry, Recompute.FULL] = full
            counts[entry, Recompute.NONE] -= full
            left -= full
        yield (
            f"{megatron.FULL_WORDS} --recompute-method block --recompute-num-layers {layers} --{PER_RANK}",
            counts,
        )


def ways(problem: Problem) -> tuple[Way, ...]:
    """
    List the settings of recompute that are planned for, each with the problem that it leaves.

    They are Megatron-LM's.  N layers of a stage dealt over its chunks is read, written and
    found as the nearest setting of a plan; the planner knows rules of a cell alone.
    """
    return megatron.ways(problem)


def unsaid(plan: Plan) -> tuple[str, ...]:
    """Say why MindSpeed can not express a plan."""
    faults = list(refuses(plan.problem))
    if recompute_words(plan) is None:
        faults.append(
            "one recompute setting holds for the whole model: full for the first N layers of every chunk, "
            "the same N everywhere, or for N layers of every stage, dealt over its chunks; full or "
            "selective for every layer; or none; this plan needs more"
        )
    if plan.problem.schedule_name is ScheduleName.DUALPIPEV:
        return (*faults, *_mtp_faults_on_a_v(plan))
    return (*faults, *megatron.mtp_faults(plan))


def _mtp_faults_on_a_v(plan: Plan) -> list[str]:
    """On a V layers of multi-token prediction stand where the loss does."""
    entries = [k for k, layer in enumerate(plan.problem.model.bodies) if layer.is_mtp]
    if plan.counts[entries][:, :, :-1].any():
        return ["all MTP layers must stand in the last cell, beside the loss"]
    return []


MINDSPEED = Target(name="mindspeed", title="MindSpeed", refuses=refuses, ways=ways, unsaid=unsaid)
