"""Random plans that Megatron-LM can say, and the models that they are for."""

import numpy as np
from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules.groups import accepted_sizes
from sapp_ppb.targets.cell_types import cell_types, plan_from_types
from sapp_ppb.targets.megatron.layout import parse_layout
from sapp_ppb.targets.megatron.recompute import RecomputeFlags, types_of

MEMORY = {Recompute.NONE: 100.0, Recompute.SELECTIVE: 60.0, Recompute.FULL: 10.0}
SETTINGS = ("none", "selective", "uniform", "block")


def model_of(*decoders, mtp=0):
    """Model of one BODY entry for each number of decoders, and one for layers of multi-token prediction."""
    entries = [(f"dec{index}", count, False) for index, count in enumerate(decoders)]
    entries += [("mtp", mtp, True)] * (mtp > 0)
    return Model(
        name="megatron",
        layers=tuple(
            layer_from_times(
                name=name,
                kind=LayerKind.BODY,
                count=count,
                forward_ms=1,
                activation_mb=MEMORY,
                is_mtp=is_mtp,
            )
            for name, count, is_mtp in entries
        ),
    )


def plan_of_layout(text, stages, *, micro_batches=32, flags=None, model=None, **options):
    """Plan of a layout string and flags of recompute."""
    cells = parse_layout(text)
    chain = "".join(cells)
    model = model or model_of(chain.count("t"), mtp=chain.count("m"))
    problem = Problem(
        model=model,
        stages=stages,
        interleave=len(cells) // stages,
        micro_batches=micro_batches,
        min_layers_per_cell=0,
        **options,
    )
    types = types_of(cells, stages, flags or RecomputeFlags())
    assert types is not None
    plan = plan_from_types(problem, types)
    assert cell_types(plan) == types
    return plan


@st.composite
def megatron_plans(draw):
    """Draw a plan of any split and any setting of recompute that Megatron-LM has."""
    chunks = draw(st.integers(1, 4))
    stages = draw(st.integers(1 if chunks == 1 else 2, 6))
    micro_batches = draw(st.integers(1, 4)) * stages
    group = None
    if chunks > 1:
        group = draw(st.sampled_from([None, "remainder-first", *accepted_sizes(stages, micro_batches)]))
    cells = stages * chunks
    counts = draw(st.lists(st.sampled_from([0, 1, 2, 2, 2, 3, 11]), min_size=cells, max_size=cells))
    counts[draw(st.integers(0, cells - 1))] += 1
    mtp = draw(st.integers(0, 2))
    # No decoder stands behind a layer of multi-token prediction, which is in the last chunk.
    holder = draw(st.integers(cells - stages, cells - 1))
    if mtp:
        counts[holder] += sum(counts[holder + 1 :])
        counts[holder + 1 :] = [0] * (cells - holder - 1)
    total = sum(counts)
    first = draw(st.integers(1, total))
    kinds = [first] if first == total else [first, total - first]
    problem = Problem(
        model=model_of(*kinds, mtp=mtp),
        stages=stages,
        interleave=chunks,
        micro_batches=micro_batches,
        micro_batch_group=group,
        min_layers_per_cell=0,
    )
    return Plan(problem=problem, counts=_counts(draw, problem, kinds, counts, mtp, holder))


def _counts(draw, problem, kinds, counts, mtp, holder):
    """Count what a setting of recompute makes of the layers, one by one."""
    setting, size = draw(st.sampled_from(SETTINGS)), draw(st.integers(1, 12))
    everywhere = {"none": Recompute.NONE, "selective": Recompute.SELECTIVE, "uniform": Recompute.FULL}
    found = np.zeros((len(problem.model.bodies), len(Recompute), problem.cells), dtype=int)
    kind_of = [kind for kind, count in enumerate(kinds) for _ in range(count)]
    chain = iter(kind_of)
    for cell, count in enumerate(counts):
        for place in range(count):
            full = Recompute.FULL if place < size else Recompute.NONE
            found[next(chain), everywhere.get(setting, full), cell] += 1
    if mtp:
        found[-1, everywhere.get(setting, Recompute.NONE), holder] += mtp
    return found
