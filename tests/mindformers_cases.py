"""Real configurations of MindFormers, their plans, and random plans that it can express."""

from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import MicroBatchGroup, ScheduleName
from sapp_ppb.targets import plan_from_types

CONFIGS = Path(__file__).parent / "data" / "configs" / "mindformers"
LLAMA, QWEN = CONFIGS / "finetune_llama3_1_70b.yaml", CONFIGS / "finetune_qwen2_5_32b_8k.yaml"
TELECHAT, DEEPSEEK = CONFIGS / "finetune_telechat_115b.yaml", CONFIGS / "pretrain_deepseek3_671b.yaml"
ALL_CONFIGS = [LLAMA, QWEN, TELECHAT, DEEPSEEK]
ALL_TYPES = {recompute: 100.0 - recompute for recompute in Recompute}
NONE, SELECTIVE, COMM, BOTH, FULL = Recompute


def model_of(*counts, mtp=0, ends=True):
    """Model of BODY kinds, the last ``mtp`` layers for multi-token prediction, between a HEAD and a TAIL."""
    bodies = [
        layer_from_times(
            name=f"kind{index}", kind=LayerKind.BODY, count=count, forward_ms=1, activation_mb=ALL_TYPES
        )
        for index, count in enumerate(counts)
    ]
    if mtp:
        bodies.append(replace(bodies[0], name="Mtp", count=mtp, is_mtp=True))
    head, tail = (
        layer_from_times(name=kind.value, kind=kind, forward_ms=1)
        for kind in (LayerKind.HEAD, LayerKind.TAIL)
    )
    return Model(name="m", layers=(head, *bodies, tail) if ends else tuple(bodies))


def types_of(config):
    """Types that a configuration gives, which must be known."""
    assert config.types is not None
    return config.types


def problem_of(config, **changes):
    """Problem that a configuration stands for, with layers of one kind and MTP."""
    fields = {
        "stages": config.stages,
        "interleave": config.interleave,
        "micro_batches": config.micro_batches,
        "schedule": config.schedule,
        "micro_batch_group": config.micro_batch_group,
    } | changes
    return Problem(model=model_of(config.layers - config.mtp_layers, mtp=config.mtp_layers), **fields)


# Schedules that MindFormers has, with the chunks that they take.
_SCHEDULES = [
    (ScheduleName.ONE_F_ONE_B, 1),
    (ScheduleName.GPIPE, 1),
    (ScheduleName.LOOPED_BFS, 2),
    (ScheduleName.INTERLEAVED, 2),
    (ScheduleName.INTERLEAVED, 3),
    (ScheduleName.INTERLEAVED_LESS_MEMORY, 2),
    (ScheduleName.SEQ1F1B, 1),
    (ScheduleName.SEQ1F1B, 2),
    (ScheduleName.ZBV, 2),
]


@st.composite
def sayable_plans(draw):
    """
    Draw a plan that MindFormers can express.

    Types fall along each cell, one to three kinds of layers, MTP or none, the first and
    the last cell empty or not.
    """
    name, chunks = draw(st.sampled_from(_SCHEDULES))
    stages = draw(st.integers(1 if chunks == 1 else 2, 4))
    micro_batches = stages * draw(st.integers(2, 3))
    # With chunks of pieces the default group does not go round every number of stages.
    group: MicroBatchGroup = stages if name is ScheduleName.SEQ1F1B and chunks > 1 else None
    if name is ScheduleName.INTERLEAVED and draw(st.booleans()):
        micro_batches += draw(st.integers(0, stages - 1))
        group = "remainder-first"
    cells = stages * chunks
    ends = draw(st.booleans())
    # Under V the last cell of the chain is on stage 0, and MindFormers wants a layer there.
    may_be_empty = [0, cells - 1] if ends and name is not ScheduleName.ZBV else []
    sizes = [draw(st.integers(0 if cell in may_be_empty and cells > 1 else 1, 4)) for cell in range(cells)]
    sizes[0] += sum(sizes) == 0
    mtp = draw(st.sampled_from([0, 0, 1, 2]))
    sizes[-1] += mtp
    ordinary = sum(sizes) - mtp
    if ordinary == 0:
        sizes[0], ordinary = sizes[0] + 1, 1
    cuts = sorted({draw(st.integers(1, ordinary)) for _ in range(draw(st.integers(0, 2)))} | {ordinary})
    counts = [high - low for low, high in zip([0, *cuts], cuts, strict=False)]
    problem = Problem(
        model=model_of(*counts, mtp=mtp, ends=ends),
        stages=stages,
        interleave=chunks,
        micro_batches=micro_batches,
        schedule=name,
        micro_batch_group=group,
        sequence_chunks=draw(st.integers(2, 3)) if name is ScheduleName.SEQ1F1B else 1,
    )
    nested = st.sampled_from([(FULL, BOTH, SELECTIVE, NONE), (FULL, BOTH, COMM, NONE)])
    by_cell = []
    for size in sizes:
        falling = draw(nested)
        by_cell.append(
            sorted(draw(st.lists(st.sampled_from(falling), min_size=size, max_size=size)), reverse=True)
        )
    _let_mtp_run_as_the_layer_before(by_cell, mtp)
    return plan_from_types(
        problem, tuple(tuple(tuple(by_cell[cell]) for cell in row) for row in problem.cell_at)
    )


def _let_mtp_run_as_the_layer_before(by_cell, mtp):
    if mtp:
        chain = [recompute for cell in by_cell for recompute in cell]
        by_cell[-1][-mtp:] = [chain[-mtp - 1]] * mtp
