"""Random plans that Colossal-AI, DeepSpeed and PyTorch's pipelining can say, made layer by layer."""

from random import Random

import numpy as np
from hypothesis import strategies as st

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import OrderFile, ScheduleName, build_schedule
from tests.torchtitan_plans import model_of

NONE, SELECTIVE, FULL = Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL


def plan_along(
    kinds, cells, *, stages, schedule=None, micro_batches=8, order=None, head=True, tail=True
) -> Plan:
    """
    Plan of BODY entries of so many layers, from the types of each cell along the chain.

    The layers of an entry in a cell may stand in any order: a plan counts them.
    """
    problem = Problem(
        model=model_of(*kinds, head=head, tail=tail),
        stages=stages,
        interleave=len(cells) // stages,
        micro_batches=micro_batches,
        schedule=schedule,
        order_file=order,
        min_layers_per_cell=0,
    )
    entry = iter(np.repeat(np.arange(len(kinds)), kinds).tolist())
    counts = np.zeros((len(kinds), len(Recompute), len(cells)), dtype=np.int64)
    for cell, types in enumerate(cells):
        for recompute in types:
            counts[next(entry), recompute, cell] += 1
    return Plan(problem=problem, counts=counts)


def kinds_of(rng, layers):
    """Cut a number of layers into one entry or two."""
    first = rng.randint(1, layers)
    return [first] if first == layers else [first, layers - first]


def own_split(layers, cells):
    """Split of Colossal-AI, by giving the rest to the middle one by one, as its loop does."""
    counts = [layers // cells] * cells
    rest = layers % cells
    start = cells // 2 - rest // 2
    for at in range(start, start + rest):
        counts[at] += 1
    return counts


@st.composite
def colossalai_plans(draw) -> Plan:
    """Draw a plan of any style; in every cell the first layers are recomputed."""
    rng = Random(draw(st.integers(0, 2**32 - 1)))
    schedule = draw(st.sampled_from([ScheduleName.ONE_F_ONE_B, ScheduleName.INTERLEAVED, ScheduleName.ZBV]))
    stages = draw(st.integers(2, 5))
    if schedule is ScheduleName.ONE_F_ONE_B:
        sizes, micro_batches = [rng.randint(1, 5) for _ in range(stages)], rng.randint(1, 12)
    else:
        chunks = 2 if schedule is ScheduleName.ZBV else rng.randint(2, 3)
        cells = stages * chunks
        sizes = own_split(rng.randint(cells, 3 * cells), cells)
        micro_batches = stages * chunks * rng.randint(1, 2)
    cells = []
    for size in sizes:
        full = rng.randint(0, size)
        cells.append([FULL] * full + [NONE] * (size - full))
    kinds = kinds_of(rng, sum(sizes))
    return plan_along(kinds, cells, stages=stages, schedule=schedule, micro_batches=micro_batches)


@st.composite
def deepspeed_plans(draw) -> Plan:
    """Draw a plan of one type, with and without a HEAD and a TAIL, whose stages may then have no layers."""
    rng = Random(draw(st.integers(0, 2**32 - 1)))
    stages = draw(st.integers(1, 6))
    head, tail, kind = rng.random() < 0.7, rng.random() < 0.7, rng.choice([NONE, FULL])
    sizes = [rng.randint(1, 5) for _ in range(stages)]
    if stages > 2:
        sizes[0] -= sizes[0] * (head and rng.random() < 0.3)
        sizes[-1] -= sizes[-1] * (tail and rng.random() < 0.3)
    cells = [[kind] * size for size in sizes]
    ends = {"head": head, "tail": tail}
    return plan_along(
        kinds_of(rng, sum(sizes)), cells, stages=stages, micro_batches=rng.randint(1, 12), **ends
    )


@st.composite
def pytorch_plans(draw) -> Plan:
    """Draw a plan of any schedule, or an order of its own, with any types that PyTorch has."""
    rng = Random(draw(st.integers(0, 2**32 - 1)))
    names = [name for name in ScheduleName if name is not ScheduleName.SEQ1F1B]
    schedule, stages = draw(st.sampled_from(names)), draw(st.integers(2, 4))
    copied = rng.choice(["zbv", "interleaved", "1f1b"]) if schedule is ScheduleName.CUSTOM else schedule.value
    single = copied in ("1f1b", "gpipe", "zb-auto")
    chunks = 1 if single else 2 if copied in ("zbv", "dualpipev") else rng.randint(2, 3)
    micro_batches = 2 * stages * rng.randint(1, 2)
    order = None
    if schedule is ScheduleName.CUSTOM:
        text = build_schedule(copied, stages, chunks, micro_batches).to_csv()
        order = OrderFile(path="order.csv", text=text)
    sizes = [rng.randint(1, 3) for _ in range(stages * chunks)]
    sizes[0] -= sizes[0] * (rng.random() < 0.2)
    sizes[-1] -= sizes[-1] * (rng.random() < 0.2)
    cells = [[rng.choice([NONE, SELECTIVE, FULL]) for _ in range(size)] for size in sizes]
    kinds = kinds_of(rng, sum(sizes))
    return plan_along(
        kinds, cells, stages=stages, schedule=schedule, micro_batches=micro_batches, order=order
    )
