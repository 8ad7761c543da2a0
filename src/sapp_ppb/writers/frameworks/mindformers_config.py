"""A plan as keys to paste into a MindFormers YAML."""

from collections.abc import Iterator

from sapp_ppb.plan import Plan
from sapp_ppb.targets.mindformers.counts import LISTS
from sapp_ppb.writers.frameworks.mindformers_settings import settings_of


def mindformers_text(plan: Plan) -> str:
    """
    Give the keys of a MindFormers YAML that say a plan.

    Raises
    ------
    InputError
        If MindFormers can not express it, with every reason.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> memory = {Recompute.NONE: 600, Recompute.FULL: 40}
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=5, forward_ms=1, activation_mb=memory)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> plan = plan_from_matrices(problem, {"Dec": {"none": [[1, 2]], "full": [[2, 0]]}})
    >>> print(mindformers_text(plan), end="")  # 3 and 2 layers are 5 div 2 = 2 and 1, 0 more
    # Keys of a MindFormers YAML; put them into the sections of yours.
    parallel_config:
      pipeline_stage: 2
      micro_batch_num: 4
    parallel:
      pipeline_config:
        pipeline_interleave: False
        pipeline_scheduler: '1f1b'
    model:
      model_config:
        num_layers: 5
        pp_interleave_num: 1
        offset: [1, 0]
    recompute_config:
      recompute: [2, 0]
      select_recompute: False
      select_comm_recompute: False
    """
    said = settings_of(plan)
    offset = said.offset()
    lines = [
        "# Keys of a MindFormers YAML; put them into the sections of yours.",
        "parallel_config:",
        f"  pipeline_stage: {said.grid.stages}",
        f"  micro_batch_num: {said.micro_batches}",
        *([f"  seq_split_num: {said.sequence_chunks}"] if said.sequence_chunks > 1 else []),
        "parallel:",
        "  pipeline_config:",
        f"    pipeline_interleave: {said.interleaves}",
        f"    pipeline_scheduler: '{said.scheduler}'",
        "model:",
        "  model_config:",
        f"    num_layers: {said.layers - said.mtp_layers}",
        *([f"    mtp_depth: {said.mtp_layers}"] if said.mtp_layers else []),
        f"    pp_interleave_num: {said.grid.chunks}",
        *_rows_lines("    offset", said.written(offset)),
        "recompute_config:",
    ]
    for name in LISTS:
        value = said.written(said.counted(name)) if said.needs(name) else False
        lines += _rows_lines(f"  {name}", value)
    return "\n".join(lines) + "\n"


def _rows_lines(key: str, value: list[object] | bool) -> Iterator[str]:
    """Lines of a key whose list has a row for each chunk."""
    if not isinstance(value, list) or not isinstance(value[0], list):
        yield f"{key}: {value}"
        return
    for number, row in enumerate(value):
        start = f"{key}: [" if number == 0 else " " * (len(key) + 3)
        yield f"{start}{row}{',' if number < len(value) - 1 else ']'}"
