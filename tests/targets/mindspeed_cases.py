"""Random plans of MindSpeed: those of Megatron-LM, plans on a V, and recompute dealt over chunks."""

import numpy as np
from hypothesis import strategies as st

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from tests.targets.megatron_cases import megatron_plans, model_of


def counts_of(problem, cells, mtp, full):
    """Layers of one kind by cell, the first ``full[cell]`` of each recomputed, and MTP in the last cell."""
    counts = np.zeros((len(problem.model.bodies), len(Recompute), problem.cells), dtype=int)
    for cell, (layers, first) in enumerate(zip(cells, full, strict=True)):
        counts[0, Recompute.FULL, cell] = min(layers, first)
        counts[0, Recompute.NONE, cell] = layers - min(layers, first)
    if mtp:
        counts[-1, Recompute.NONE, -1] += mtp
    return counts


@st.composite
def plans_on_a_v(draw):
    """Draw a plan of DualPipeV of any split, with the same first layers of every cell recomputed."""
    stages = draw(st.integers(2, 5))
    cells = draw(st.lists(st.integers(0, 4), min_size=2 * stages, max_size=2 * stages).filter(sum))
    mtp = draw(st.integers(0, 2))
    problem = Problem(
        model=model_of(sum(cells), mtp=mtp),
        stages=stages,
        micro_batches=2 * stages + draw(st.integers(0, 3)),
        schedule=ScheduleName.DUALPIPEV,
        min_layers_per_cell=0,
    )
    first = draw(st.integers(0, 5))
    return Plan(problem=problem, counts=counts_of(problem, cells, mtp, [first] * len(cells)))


@st.composite
def dealt_plans(draw):
    """Draw a plan of several chunks, N layers of every stage recomputed, one chunk's after another's."""
    stages, chunks = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    number = stages * chunks
    cells = draw(st.lists(st.integers(0, 5), min_size=number, max_size=number).filter(sum))
    mtp = draw(st.integers(0, 1))
    problem = Problem(
        model=model_of(sum(cells), mtp=mtp),
        stages=stages,
        interleave=chunks,
        micro_batches=2 * stages,
        min_layers_per_cell=0,
    )
    layers = draw(st.integers(1, 12))
    # Layer l of chunk v is the (l V + v)-th that is dealt.
    full = [sum(place * chunks + cell // stages < layers for place in range(12)) for cell in range(number)]
    return Plan(problem=problem, counts=counts_of(problem, cells, mtp, full))


def mindspeed_plans():
    """Draw a plan that MindSpeed can say."""
    return st.one_of(megatron_plans(), plans_on_a_v(), dealt_plans())
