"""A plan in Colossal-AI's words: keywords of its plugin, or a script that is edited."""

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.colossalai import COLOSSALAI, STYLES
from sapp_ppb.writers.frameworks.python_edit import with_values

_PLUGIN, _CHECKPOINT = "HybridParallelPlugin", "PipelineGradientCheckpointConfig"
_CONFIG = "gradient_checkpoint_config"


def colossalai_text(plan: Plan) -> str:
    """
    Python to paste into a script of Colossal-AI.

    Raises
    ------
    InputError
        If Colossal-AI can not express the plan.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> memory = {Recompute.NONE: 60, Recompute.FULL: 4}
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=3, forward_ms=1, activation_mb=memory)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> plan = plan_from_matrices(problem, {"Dec": {"none": [[1, 0]], "full": [[1, 1]]}})
    >>> print(colossalai_text(plan), end="")
    plugin = HybridParallelPlugin(
        tp_size=1,  # yours
        pp_size=2,
        pp_style="1f1b",
        num_model_chunks=1,
        num_microbatches=4,
        num_layers_per_stage=[2, 1],
        gradient_checkpoint_config=PipelineGradientCheckpointConfig(num_ckpt_layers_per_stage=[1, 1]),
    )
    model.gradient_checkpointing_enable()
    """
    values = _values(plan)
    counts = _counts(plan)
    zbv = plan.problem.schedule_name is ScheduleName.ZBV
    reentrant = "gradient_checkpointing_kwargs={'use_reentrant': False}" if zbv else ""
    lines = [
        f"plugin = {_PLUGIN}(",
        "    tp_size=1,  # yours",
        *(f"    {name}={value}," for name, value in values.items() if value != "None"),
        *(["    scheduler_nodes=scheduler_nodes,  # of PipelineGraph(...).get_v_schedule()"] if zbv else []),
        f"    {_CONFIG}={_CHECKPOINT}(num_ckpt_layers_per_stage={counts}),",
        ")",
        *([f"model.gradient_checkpointing_enable({reentrant})"] if any(counts) else []),
    ]
    return "\n".join(lines) + "\n"


def _values(plan: Plan) -> dict[str, str]:
    """
    Keywords of the plugin, but for checkpointing.

    Raises
    ------
    InputError
        If the plan can not be said, with the reasons.
    """
    unsaid = COLOSSALAI.unsaid(plan)
    if unsaid:
        raise InputError("plan", unsaid)
    problem = plan.problem
    return {
        "pp_size": str(problem.stages),
        "pp_style": f'"{STYLES[problem.schedule_name]}"',
        "num_model_chunks": str(problem.interleave),
        "num_microbatches": str(problem.micro_batches),
        "num_layers_per_stage": str(plan.layers_per_cell.tolist()) if problem.interleave == 1 else "None",
    }


def _counts(plan: Plan) -> list[int]:
    """Recomputed layers of every cell, chunk after chunk, and in a chunk stage after stage."""
    full = plan.counts[:, Recompute.FULL].sum(axis=0).tolist()
    return [full[cell] for row in plan.problem.cell_at for cell in row]


def colossalai_into(text: str, plan: Plan, where: str) -> str:
    """
    Text of a script with the keywords of a plan, every other byte kept.

    What the plugin lacks is added before its other keywords.

    Raises
    ------
    InputError
        If Colossal-AI can not express the plan, or the text is no Python with one plugin.
    """
    values, counts = _values(plan), str(_counts(plan))
    if "num_ckpt_layers_per_stage" in text:
        return with_values(text, where, values | {"num_ckpt_layers_per_stage": counts}, call=_PLUGIN)
    return with_values(
        text, where, values | {_CONFIG: f"{_CHECKPOINT}(num_ckpt_layers_per_stage={counts})"}, call=_PLUGIN
    )
