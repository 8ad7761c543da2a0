"""
What ``torch.distributed.pipelining`` can say of a plan.

A model is cut before any of its layers (``split_spec``, or stages built by hand), and
any order of ops runs: by a class of its own, or as a CSV.  PyTorch has no setting for
recompute in a pipeline: layers are wrapped one by one, as a whole, or with a policy
that says which ops are kept.  Nothing recomputes communication alone.  Sources:
PyTorch 2.13, ``torch/distributed/pipelining/_IR.py`` (``pipeline``, ``SplitPoint``),
``stage.py``, ``schedules.py``; ``torch/utils/checkpoint.py``.
"""

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.bare_cells import bare_fault, with_filled_cells
from sapp_ppb.targets.recompute_modes import with_types
from sapp_ppb.targets.strategies import strategy_faults
from sapp_ppb.targets.target import Target, Way
from sapp_ppb.targets.torchtitan import target as torchtitan

TYPES = (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)


def refuses(problem: Problem) -> tuple[str, ...]:
    """Say why PyTorch can run no plan of a problem."""
    if problem.stages == 1:
        return ("PyTorch runs no pipeline on one stage; use at least 2 stages",)
    if problem.sequence_chunks > 1:
        return ("PyTorch does not cut micro-batches along the sequence; use --sequence-chunks 1",)
    return ()


def class_of(problem: Problem) -> str | None:
    """
    PyTorch's own schedule that runs a problem's order; None where the order must be given as a CSV.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> class_of(problem), class_of(problem.changed(micro_batches=1))  # 1F1B wants a micro-batch a stage
    ('1F1B', None)
    """
    if problem.schedule_name is ScheduleName.CUSTOM or torchtitan.refuses(problem):
        return None
    return torchtitan.SCHEDULES[problem.schedule_name]


def ways(problem: Problem) -> tuple[Way, ...]:
    """List the one way: none, full, or selective by ops, layer by layer."""
    try:
        problem = with_filled_cells(problem)
    except InputError:
        return ()
    return with_types(problem, TYPES)


def unsaid(plan: Plan) -> tuple[str, ...]:
    """Say why PyTorch can not express a plan."""
    faults = [*refuses(plan.problem), *strategy_faults(plan, "PyTorch pipelining")]
    others = [r.label for r in Recompute if r not in TYPES and plan.counts[:, r].any()]
    if others:
        faults.append(
            "PyTorch wraps a layer as a whole, or with a policy of ops, and nothing recomputes its "
            f"communication; this plan has {', '.join(others)}"
        )
    bare = bare_fault(plan.problem, plan.layers_per_cell.tolist(), "a stage of PyTorch must hold a module")
    return (*faults, *([bare] if bare else []))


PYTORCH = Target(name="pytorch", title="PyTorch pipelining", refuses=refuses, ways=ways, unsaid=unsaid)
