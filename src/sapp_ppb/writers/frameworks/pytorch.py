"""A plan in the words of PyTorch's pipelining: cuts, order and layers to wrap."""

import json
from collections.abc import Iterable, Mapping

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.targets.cell_types import cell_types
from sapp_ppb.targets.pytorch.stages import cuts_of, stages_of
from sapp_ppb.targets.pytorch.target import PYTORCH, class_of
from sapp_ppb.writers.frameworks.python_edit import with_values

CSV_FILE = "schedule.csv"
_WRAPPED = '''

def wrapped(index, layer, policy=None):
    """Give layer ``index`` as it must run; ``policy`` says which ops a selective layer keeps."""
    mode = CHECKPOINT_LAYERS.get(index)
    if mode is None:
        return layer
    if mode == "full":
        return checkpoint_wrapper(layer)
    if policy is None:
        raise ValueError("selective recompute needs a policy for create_selective_checkpoint_contexts")
    return checkpoint_wrapper(layer, context_fn=partial(create_selective_checkpoint_contexts, policy))
'''


def pytorch_text(plan: Plan) -> str:
    """
    Python file for ``torch.distributed.pipelining``.

    Raises
    ------
    InputError
        If PyTorch can not express the plan.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=3, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> text = pytorch_text(plan_from_matrices(problem, {"Dec": {"none": [[2, 1]]}}))
    >>> print("".join(text.splitlines(keepends=True)[7:16]), end="")
    # Rank, first layer and the layer behind the last, of every stage index.
    PIPELINE_STAGES = [
        (0, 0, 2),
        (1, 2, 3),
    ]
    # The same cuts, for pipeline(module, mb_args, split_spec=SPLIT_SPEC).
    SPLIT_SPEC = {
        "layers.2": SplitPoint.BEGINNING,
    }
    """
    values = _values(plan)
    lines = [
        "from functools import partial",
        "",
        "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper",
        "from torch.distributed.pipelining import SplitPoint",
        "from torch.utils.checkpoint import create_selective_checkpoint_contexts",
        "",
        "",
        "# Rank, first layer and the layer behind the last, of every stage index.",
        f"PIPELINE_STAGES = {values['pipeline_stages']}",
        "# The same cuts, for pipeline(module, mb_args, split_spec=SPLIT_SPEC).",
        f"SPLIT_SPEC = {values['split_spec']}",
        f"N_MICROBATCHES = {values['n_microbatches']}",
        f"SCHEDULE_CLASS = {values['schedule_class']}  # of get_schedule_class; None where the CSV rules",
        f"SCHEDULE_CSV = {values['schedule_csv']}  # None where the schedule makes its own order",
        "# Layers that are recomputed: as a whole, or what a policy does not keep.",
        f"CHECKPOINT_LAYERS = {values['checkpoint_layers']}",
    ]
    return "\n".join(lines) + "\n" + _WRAPPED


def pytorch_csv(plan: Plan) -> Mapping[str, str]:
    """
    Order of every rank, in PyTorch's notation (compute only), by the name of its file.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=2)
    >>> print(pytorch_csv(plan_from_matrices(problem, {"Dec": {"none": [[1, 1]]}}))["schedule.csv"], end="")
    0F0,0F1,0B0,0B1
    1F0,1B0,1F1,1B1
    """
    return {CSV_FILE: plan.problem.order.to_csv()}


def _values(plan: Plan) -> dict[str, str]:
    """
    Expressions by name.

    Raises
    ------
    InputError
        If the plan can not be said, with the reasons.
    """
    unsaid = PYTORCH.unsaid(plan)
    if unsaid:
        raise InputError("plan", unsaid)
    problem, own = plan.problem, class_of(plan.problem)
    stages = stages_of(plan.layers_per_cell.tolist(), problem.stages, problem.order.placement)
    order = problem.order_file.path if problem.order_file else CSV_FILE
    cuts = [f"{_quoted(cut)}: SplitPoint.BEGINNING" for cut in cuts_of(stages)]
    return {
        "pipeline_stages": _lines("[", map(str, stages), "]"),
        "split_spec": _lines("{", cuts, "}"),
        "n_microbatches": str(problem.micro_batches),
        "schedule_class": "None" if own is None else _quoted(own),
        "schedule_csv": _quoted(order) if own is None else "None",
        "checkpoint_layers": _lines("{", (f"{index}: {_quoted(mode)}" for index, mode in _modes(plan)), "}"),
    }


def _modes(plan: Plan) -> list[tuple[int, str]]:
    """Index along the chain of every layer that is recomputed, and how."""
    types = cell_types(plan)
    place = {cell: (v, s) for v, row in enumerate(plan.problem.cell_at) for s, cell in enumerate(row)}
    along = [recompute for cell in sorted(place) for recompute in types[place[cell][0]][place[cell][1]]]
    return [(index, kind.label) for index, kind in enumerate(along) if kind is not Recompute.NONE]


def _lines(before: str, entries: Iterable[str], behind: str) -> str:
    """Write entries, a line each."""
    lines = [f"    {entry},\n" for entry in entries]
    return before + ("\n" + "".join(lines) if lines else "") + behind


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def pytorch_into(text: str, plan: Plan, where: str) -> str:
    """
    Text of such a file with the values of a plan, every other byte kept.

    Raises
    ------
    InputError
        If PyTorch can not express the plan, or the text is no Python that gives all of them.
    """
    return with_values(text, where, _values(plan))
