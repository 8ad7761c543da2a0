"""Plans of which measured and simulated step times are compared."""

from collections.abc import Sequence

import numpy as np

from sapp_ppb import LayerKind, Model, Plan, Problem, Recompute
from sapp_ppb.costs import layer_from_times
from sapp_ppb.schedules import Flavour, P2PMode, ScheduleName

# An op shorter than this drowns in what PyTorch and the system add to it.
SHORTEST_OP_MS = 16.0
# One layer's forward: two layers a cell make the shortest op.
FORWARD_MS = 8.0


def model_of(layers: int, *, head_ms: float = 0.0, tail_ms: float = 0.0) -> Model:
    """
    Chain of equal BODY layers, whose backward takes twice their forward, half of it for weights.

    Parameters
    ----------
    layers
        Number of BODY layers.
    head_ms, tail_ms
        Forward times of a HEAD and a TAIL, milliseconds; 0 leaves it out.
    """
    ends = ((LayerKind.HEAD, head_ms), (LayerKind.TAIL, tail_ms))
    head, tail = ([_layer(kind, 1, time_ms)] if time_ms else [] for kind, time_ms in ends)
    body = _layer(LayerKind.BODY, layers, FORWARD_MS)
    return Model(name="sleeping", layers=(*head, body, *tail))


def _layer(kind, count, forward_ms):
    # Memory decides nothing here, but a type exists only where its activation is given.
    activation = {Recompute.NONE: 2.0, Recompute.FULL: 1.0} if kind is LayerKind.BODY else None
    return layer_from_times(
        name=kind.name.lower(), kind=kind, count=count, forward_ms=forward_ms, activation_mb=activation
    )


def plan_of(
    schedule: ScheduleName,
    stages: int,
    micro_batches: int,
    layers: Sequence[int],
    *,
    fully_recomputed: Sequence[int] | None = None,
    group: int | None = None,
    **model,
) -> Plan:
    """
    Plan with the given BODY layers in each cell along the chain.

    Parameters
    ----------
    layers
        BODY layers of each cell; their number over S is V.
    fully_recomputed
        How many of them are recomputed in full; none unless given.
    model
        As in ``model_of``.
    """
    problem = Problem(
        model=model_of(sum(layers), **model),
        stages=stages,
        interleave=len(layers) // stages,
        micro_batches=micro_batches,
        schedule=schedule,
        micro_batch_group=group,
        flavour=Flavour.TORCH,
        # PyTorch sends what the forward of an overlapped pair made once the pair is done.
        p2p_mode=P2PMode.BLOCKING if schedule is ScheduleName.DUALPIPEV else P2PMode.ASYNC,
    )
    full = np.array(fully_recomputed or [0] * len(layers))
    counts = np.zeros((1, len(Recompute), problem.cells), dtype=np.int64)
    counts[0, Recompute.NONE], counts[0, Recompute.FULL] = np.array(layers) - full, full
    return Plan(problem=problem, counts=counts)


# Those for which the measured step is promised to be 1.00 to 1.15 times the simulated one.
PROMISED = {
    "gpipe, 2 stages": plan_of(ScheduleName.GPIPE, 2, 4, [3, 3]),
    "gpipe, 4 stages": plan_of(ScheduleName.GPIPE, 4, 8, [3, 3, 3, 3]),
    "gpipe, 4 uneven stages": plan_of(ScheduleName.GPIPE, 4, 4, [4, 3, 3, 2], tail_ms=8.0),
    "1f1b, 2 stages": plan_of(ScheduleName.ONE_F_ONE_B, 2, 4, [3, 3]),
    "1f1b, 2 uneven stages": plan_of(ScheduleName.ONE_F_ONE_B, 2, 8, [2, 4]),
    "1f1b, 3 stages": plan_of(ScheduleName.ONE_F_ONE_B, 3, 6, [3, 3, 2], head_ms=4.0, tail_ms=12.0),
    "1f1b, 4 stages, 4 micro-batches": plan_of(ScheduleName.ONE_F_ONE_B, 4, 4, [3, 3, 3, 3]),
    "1f1b, 4 stages, 8 micro-batches": plan_of(ScheduleName.ONE_F_ONE_B, 4, 8, [2, 2, 2, 2]),
    "1f1b, 4 uneven stages": plan_of(ScheduleName.ONE_F_ONE_B, 4, 8, [2, 4, 3, 2], tail_ms=8.0),
    "1f1b, 4 stages, recompute": plan_of(
        ScheduleName.ONE_F_ONE_B, 4, 8, [3, 3, 3, 3], fully_recomputed=[3, 2, 1, 0], tail_ms=8.0
    ),
    "interleaved, 2 stages": plan_of(ScheduleName.INTERLEAVED, 2, 4, [2, 2, 2, 2]),
    "interleaved, 2 stages, 3 chunks": plan_of(ScheduleName.INTERLEAVED, 2, 4, [2] * 6, tail_ms=8.0),
    "interleaved, 3 stages, groups of 5": plan_of(
        ScheduleName.INTERLEAVED, 3, 5, [2, 3, 2, 3, 2, 2], group=5
    ),
    "interleaved, 4 stages": plan_of(ScheduleName.INTERLEAVED, 4, 8, [2] * 8),
    "interleaved, 4 uneven stages": plan_of(
        ScheduleName.INTERLEAVED, 4, 8, [2, 3, 2, 2, 3, 2, 2, 2], head_ms=4.0, tail_ms=8.0
    ),
}
# Others that PyTorch has, for which nothing is promised.
OTHERS = {
    "looped-bfs, 2 stages": plan_of(ScheduleName.LOOPED_BFS, 2, 4, [2, 2, 2, 2]),
    "interleaved-zero-bubble, 4 stages, 1 chunk": plan_of(
        ScheduleName.INTERLEAVED_ZERO_BUBBLE, 4, 8, [2, 2, 2, 2]
    ),
    "interleaved-zero-bubble, 2 stages": plan_of(ScheduleName.INTERLEAVED_ZERO_BUBBLE, 2, 4, [2, 2, 2, 2]),
    "zbv, 2 stages": plan_of(ScheduleName.ZBV, 2, 4, [2, 2, 2, 2]),
    "zbv, 4 stages": plan_of(ScheduleName.ZBV, 4, 8, [2] * 8, tail_ms=8.0),
    "dualpipev, 2 stages": plan_of(ScheduleName.DUALPIPEV, 2, 4, [2, 2, 2, 2]),
    "dualpipev, 4 stages": plan_of(ScheduleName.DUALPIPEV, 4, 8, [2] * 8),
}
