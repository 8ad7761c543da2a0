"""Random plans that torchtitan can say, each checkpointing mode applied by a slow loop of our own."""

from random import Random

import numpy as np
from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import ScheduleError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import OrderFile, ScheduleName, build_schedule
from sapp_ppb.targets.torchtitan.target import SCHEDULES, TORCHTITAN
from tests.strategies import random_plan

ALL_TYPES = {recompute: 100.0 - recompute for recompute in Recompute}
ORDER = "order.csv"


def model_of(*counts, head=True, tail=True):
    """Model with a BODY entry for each count, all recompute types given."""
    bodies = [
        layer_from_times(
            name=f"body{k}", kind=LayerKind.BODY, count=count, forward_ms=1, activation_mb=ALL_TYPES
        )
        for k, count in enumerate(counts)
    ]
    ends = [
        layer_from_times(name=kind.value.lower(), kind=kind, forward_ms=1)
        for kind, given in ((LayerKind.HEAD, head), (LayerKind.TAIL, tail))
        if given
    ]
    return Model(name="titan", layers=(*ends, *bodies))


def problem_of(counts, *, stages=2, interleave=1, micro_batches=8, schedule=None, order=None, **ends):
    """Problem of such a model, in the micro-batch groups that torchtitan takes."""
    group = None
    if schedule is ScheduleName.INTERLEAVED:
        group = micro_batches // max(1, micro_batches // stages)
    return Problem(
        model=model_of(*counts, **ends),
        stages=stages,
        interleave=interleave,
        micro_batches=micro_batches,
        schedule=schedule,
        micro_batch_group=group,
        order_file=order,
    )


def with_mode(plan: Plan, mode: str, every: int = 1) -> Plan:
    """Recompute the layers of a plan's split as a mode says; every n-th is counted over a rank's chunks."""
    problem = plan.problem
    split = plan.counts.sum(axis=1)
    counts = np.zeros_like(plan.counts)
    for stage in range(problem.stages):
        built = 0
        for cell in problem.cells_of(stage):
            for entry, number in enumerate(split[:, cell].tolist()):
                for _ in range(number):
                    built += 1
                    full = mode == "full" or (mode == "every" and built % every == 0)
                    kind = Recompute.SELECTIVE if mode == "selective" else Recompute(4 * full)
                    counts[entry, kind, cell] += 1
    return Plan(problem=problem, counts=counts)


@st.composite
def torchtitan_plans(draw) -> Plan:
    """Draw a plan that torchtitan can say, of any of its schedules, or under an order of its own."""
    rng = Random(draw(st.integers(0, 2**32 - 1)))
    name = draw(st.sampled_from([*SCHEDULES, ScheduleName.CUSTOM]))
    stages, micro_batches = draw(st.integers(2, 5)), draw(st.integers(1, 16))
    copied = rng.choice(list(SCHEDULES)) if name is ScheduleName.CUSTOM else name
    single = (ScheduleName.ONE_F_ONE_B, ScheduleName.GPIPE)
    on_a_v = (ScheduleName.ZBV, ScheduleName.DUALPIPEV)
    chunks = 1 if copied in single else 2 if copied in on_a_v else rng.randint(2, 3)
    counts = [rng.randint(0, stages * chunks) + stages * chunks] + [2] * rng.randint(0, 2)
    while True:
        try:
            text = build_schedule(
                copied, stages, chunks, micro_batches, group_of(copied, stages, micro_batches)
            )
        except ScheduleError:
            micro_batches += 1
            continue
        break
    order = OrderFile(path=ORDER, text=text.to_csv()) if name is ScheduleName.CUSTOM else None
    ends = {"head": rng.random() < 0.8, "tail": rng.random() < 0.8}
    sizes = {"stages": stages, "interleave": chunks, "micro_batches": micro_batches}
    while True:
        problem = problem_of(counts, schedule=name, order=order, **sizes, **ends)
        if not TORCHTITAN.refuses(problem):
            break
        sizes["micro_batches"] += 1  # some number of them makes equal rounds
    plan = random_plan(rng, problem)
    return with_mode(plan, rng.choice(["none", "full", "selective", "every"]), rng.randint(2, 4))


def group_of(name, stages, micro_batches):
    """Micro-batches that torchtitan takes together."""
    if name is not ScheduleName.INTERLEAVED:
        return None
    return micro_batches // max(1, micro_batches // stages)
