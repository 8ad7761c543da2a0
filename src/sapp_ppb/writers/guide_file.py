"""The YAML to fill in after dry runs: the init YAML of the older SAPP tool, with empty peaks."""

from collections.abc import Sequence

from sapp_ppb.plan import Plan
from sapp_ppb.writers.frameworks.mindformers import Rows, mindformers_lists

_LISTS = ("recompute", "select_recompute", "select_comm_recompute")


def guide_to_yaml(plans: Sequence[Plan]) -> str:
    """
    Text of an init YAML for some runs; ``costs dryrun`` fills it from logs, or a user by hand.

    Parameters
    ----------
    plans
        What to run in each round, one chunk a stage, sayable in MindFormers' lists.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=5, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=3, micro_batches=4)
    >>> text = guide_to_yaml([plan_from_matrices(problem, {"Dec": {"none": [[1, 2, 2]]}})])
    >>> print(text.split("# What")[1], end="")  # 5 div 3 = 1
     each stage held at most, MB: of the first, of the last, and of those between.
    memory_usage:
      head_memory:
      tail_memory:
      body_memories:
        stage_id: [1]
        memories: [null]
    """
    problem = plans[0].problem
    lists = [mindformers_lists(plan) for plan in plans]
    lines = [
        "# To fill in: set offset and recompute lists as given here, run, and note the peaks.",
        "pipeline_config:",
        f"  pipeline_num: {problem.stages}",
        f"  num_layer: {problem.model.body_count}",
        f"  offset: {_rounds([part.offset for part in lists])}",
        "",
        "recompute_config:",
        *(f"  {name}: {_rounds([getattr(part, name) for part in lists])}" for name in _LISTS),
        "",
        "# Forward times of a micro-batch, ms; or leave them out and give --times MODEL.json.",
        "# time_config: {head: , body: , tail: }",
        "",
        *_memory(problem.stages, len(plans)),
    ]
    return "\n".join(lines) + "\n"


def _rounds(rows: Sequence[Rows | None]) -> str:
    """One list for one round, and a list of lists for several."""
    lists = [list(row[0]) for row in rows if row is not None]
    if len(lists) != len(rows):
        raise AssertionError("bug: a round can not be said in MindFormers' lists")
    return str(lists[0] if len(lists) == 1 else lists)


def _memory(stages: int, rounds: int) -> list[str]:
    """Lines for the peaks; those of the first and last stage stand apart in the first round."""
    between = list(range(1, stages - 1))
    names = [between] + [list(range(stages))] * (rounds - 1)
    blanks = ["[" + ", ".join(["null"] * len(part)) + "]" for part in names]
    of_rounds = " in the first round" if rounds > 1 else ""
    return [
        f"# What each stage held at most, MB: of the first, of the last, and of those between{of_rounds}.",
        "memory_usage:",
        "  head_memory:",
        "  tail_memory:",
        "  body_memories:",
        f"    stage_id: {names[0] if rounds == 1 else names}",
        f"    memories: {blanks[0] if rounds == 1 else '[' + ', '.join(blanks) + ']'}",
    ]
