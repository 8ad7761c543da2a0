"""Cells without anything in them, which some frameworks do not run."""

from collections.abc import Sequence

from sapp_ppb.problem import Problem

_SHOWN = 4


def with_filled_cells(problem: Problem) -> Problem:
    """
    Give a problem a layer in every cell that holds no HEAD or TAIL.

    Raises
    ------
    InputError
        If there are not layers enough for that.
    """
    return problem if problem.min_layers_per_cell else problem.changed(min_layers_per_cell=1)


def bare_fault(problem: Problem, layers_per_cell: Sequence[int], rule: str) -> str | None:
    """
    Say which cells hold nothing, neither layers nor a HEAD or TAIL; None when all hold something.

    Parameters
    ----------
    layers_per_cell
        BODY layers of each cell along the chain.
    rule
        What the framework wants, the beginning of the sentence.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> layers = (layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=1),
    ...           layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=1))
    >>> problem = Problem(model=Model(name="tiny", layers=layers), stages=3, micro_batches=4)
    >>> bare_fault(problem, [0, 4, 0], "a stage must hold a module")
    'a stage must hold a module (got none in cell 2 of the chain); plan with --min-layers 1'
    """
    holds_other = {0: bool(problem.model.heads), problem.cells - 1: bool(problem.model.tails)}
    if problem.cells == 1:
        return None
    bare = [cell for cell, number in enumerate(layers_per_cell) if not number and not holds_other.get(cell)]
    if not bare:
        return None
    cells = ", ".join(map(str, bare[:_SHOWN])) + (", ..." if len(bare) > _SHOWN else "")
    word = "cell" if len(bare) == 1 else "cells"
    return f"{rule} (got none in {word} {cells} of the chain); plan with --min-layers 1"
