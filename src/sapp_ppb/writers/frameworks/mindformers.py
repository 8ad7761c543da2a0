"""The lists of a MindFormers YAML: offset, and for each list of recomputed layers a count a cell."""

from dataclasses import dataclass

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.targets import mixed_cells, silent_cells

Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class MindformersLists:
    """
    What MindFormers is told, each list with the shape (V, S), or why it can not be told.

    Attributes
    ----------
    offset
        Layers of the cell minus N div (S x V).
    recompute, select_recompute, select_comm_recompute
        How many layers each list counts from the start of a chunk; None when some
        cell can not be said, because the lists would then mean another plan.
    silent
        Chunk and stage of the cells that can not be said.
    mixed
        Those of them that hold SELECTIVE beside COMM.
    strategies
        Names of the strategies in use, for which there is no list.
    """

    offset: Rows
    recompute: Rows | None
    select_recompute: Rows | None
    select_comm_recompute: Rows | None
    silent: tuple[tuple[int, int], ...] = ()
    mixed: tuple[tuple[int, int], ...] = ()
    strategies: tuple[str, ...] = ()


def mindformers_lists(plan: Plan) -> MindformersLists:
    """
    Say a plan in MindFormers' words.

    ``recompute`` counts FULL, ``select_recompute`` SELECTIVE, BOTH and FULL,
    ``select_comm_recompute`` COMM, BOTH and FULL.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> memory = {Recompute.NONE: 600, Recompute.FULL: 40}
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=5, forward_ms=1, activation_mb=memory)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> lists = mindformers_lists(plan_from_matrices(problem, {"Dec": {"none": [[1, 2]], "full": [[2, 0]]}}))
    >>> lists.offset, lists.recompute  # 3 - 5 div 2 and 2 - 5 div 2, which add up to 5 mod 2
    (((1, 0),), ((2, 0),))
    """
    silent, mixed = tuple(silent_cells(plan)), tuple(mixed_cells(plan))
    counted = {name: None if silent else _counted(plan, name) for name in _LISTS}
    strategies = tuple(strategy.label for strategy in plan.strategies)
    return MindformersLists(
        offset=_offset(plan), silent=silent, mixed=mixed, strategies=strategies, **counted
    )


_LISTS = Recompute.FULL.mindformers_lists  # FULL is counted in every list


def _offset(plan: Plan) -> Rows:
    """Offset of every cell, checked as MindFormers checks it."""
    offset = plan.offset
    rest = plan.problem.model.body_count % plan.problem.cells
    if offset.sum() != rest:
        raise AssertionError(f"bug: the offsets add up to {offset.sum()} and not to {rest}")
    return _rows(offset.tolist())


def _counted(plan: Plan, name: str) -> Rows:
    """Layers of each cell that one list counts."""
    types = [recompute for recompute in Recompute if name in recompute.mindformers_lists]
    return _rows(plan.per_chunk_and_stage(plan.counts[:, types].sum(axis=(0, 1))).tolist())


def _rows(lists: list[list[int]]) -> Rows:
    return tuple(tuple(row) for row in lists)


def mindformers_lists_text(lists: MindformersLists) -> str:
    """
    Text to paste into a MindFormers YAML, or the reason why there is none, as its comments.

    Examples
    --------
    >>> print(mindformers_lists_text(MindformersLists(offset=((1, 0), (0, 0)), recompute=((2, 0), (0, 0)),
    ...     select_recompute=((2, 1), (0, 0)), select_comm_recompute=((2, 0), (0, 0)))), end="")
    offset: [[1, 0],
             [0, 0]]
    recompute: [[2, 0],
                [0, 0]]
    select_recompute: [[2, 1],
                       [0, 0]]
    select_comm_recompute: [[2, 0],
                            [0, 0]]
    """
    text = _yaml("offset", lists.offset)
    for name in _LISTS:
        rows: Rows | None = getattr(lists, name)
        text += "" if rows is None else _yaml(name, rows)
    return text + "".join(f"# {line}\n" for line in _why_not(lists))


def _yaml(name: str, rows: Rows) -> str:
    indent = ",\n" + " " * (len(name) + 3)
    return f"{name}: [{indent.join(str(list(row)) for row in rows)}]\n"


def _why_not(lists: MindformersLists) -> list[str]:
    """Say which cells can not be said, why, and what to do about it."""
    if not lists.silent:
        return []
    if lists.strategies:
        return [
            f"no recompute lists: MindFormers has none for {', '.join(lists.strategies)}",
            "plan with --target mindformers, which leaves it out",
        ]
    others = [cell for cell in lists.silent if cell not in lists.mixed]
    lines = ["no recompute lists: they count the first layers of a chunk and would mean another plan"]
    if lists.mixed:
        lines.append(f"SELECTIVE beside COMM in {_cells(lists.mixed)}")
        lines.append("plan with --target mindformers, which does not mix the two in one cell")
    if others:
        lines.append(f"a layer recomputed more than one of another kind before it in {_cells(tuple(others))}")
    return lines


def _cells(cells: tuple[tuple[int, int], ...], shown: int = 3) -> str:
    words = [f"stage {stage} chunk {chunk}" for chunk, stage in cells[:shown]]
    more = len(cells) - shown
    return ", ".join(words) + (f" and {more} more cells" if more > 0 else "")
