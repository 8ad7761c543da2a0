"""
What MindSpeed can say of a plan.

Everything that Megatron-LM can, and besides the V of DualPipeV, on which empty places
make an even split uneven, and full recompute of N layers of every stage, dealt over its
chunks.  Source: that of ``mindspeed_split.py``, and for recompute
``transformer_block_checkpointed_forward`` in ``mindspeed/core/memory/common.py`` of
MindSpeed.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.fix import PlaceRule
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.megatron import target as megatron
from sapp_ppb.targets.mindspeed.flags import PER_RANK
from sapp_ppb.targets.recompute_modes import most_in_a_cell, with_rule
from sapp_ppb.targets.strategies import strategy_faults
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
    decoders = [k for k, layer in enumerate(problem.model.bodies) if not layer.is_mtp]
    most = problem.interleave * int(by_entry[decoders].sum(axis=0).max())
    for layers in range(1, most + 1):
        yield _dealt_words(layers), _dealt_rule(problem, layers).counts(by_entry, len(problem.model.types))


def _dealt_rule(problem: Problem, layers: int) -> PlaceRule:
    return replace(megatron.block_rule(problem, layers), chunks=problem.interleave)


def _dealt_words(layers: int) -> str:
    return f"{megatron.FULL_WORDS} --recompute-method block --recompute-num-layers {layers} --{PER_RANK}"


def ways(problem: Problem) -> tuple[Way, ...]:
    """
    List the settings of recompute, each with the problem that it leaves.

    They are Megatron-LM's and, with several chunks, N layers of a stage dealt over them; where
    V divides N that is Megatron-LM's N / V of every chunk.
    """
    found = megatron.ways(problem)
    if not _deals(problem):
        return found
    chunks = problem.interleave
    dealt = (
        way
        for layers in range(1, chunks * most_in_a_cell(problem))
        if layers % chunks
        for way in with_rule(problem, _dealt_rule(problem, layers), _dealt_words(layers))
    )
    return (*found, *dealt)


def unsaid(plan: Plan) -> tuple[str, ...]:
    """Say why MindSpeed can not express a plan."""
    faults = [*refuses(plan.problem), *strategy_faults(plan, "MindSpeed")]
    if not plan.strategies and recompute_words(plan) is None:
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
