"""
The plan that holds least, and by how much the limits must grow before any plan fits.

Every layer takes its type with the least activation memory, since no other choice
lowers any row of live counts; what is left is where layers go:

    (M1)  minimise e
    (M2)  held_s + sum of cells of s (parameters + live x activation) <= limit_s + e   every row of s
    (M3)  sum over cells of n[k, c] = count of k
    (M4)  sum over k of n[k, c] >= least layers of c
    (M5)  done[k, c] = 1 only if all of entry k stands in cells <= c;
          entry k + 1 stands in cells <= c only if done[k, c] = 1
    (M6)  a cell's layers are all without COMM or all without SELECTIVE, where the
          target can not say both

With one chunk a stage the answer comes by dynamic programming, in ``least_memory_chain``.
"""

from dataclasses import dataclass

import numpy as np

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.planner.highs import LinearProgram
from sapp_ppb.planner.least_memory_chain import least_memory_chain
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.memory import live_rows
from sapp_ppb.simulator.price import LayerTables, layer_tables
from sapp_ppb.targets import may_mix_selective_and_comm

# Layers beyond which tables of all runs of a chain take gigabytes.
_MOST_LAYERS = 3_000
# Column of a variant of types, a BODY entry and a cell.
Number = dict[tuple[int, int, int], int]


@dataclass(frozen=True, kw_only=True)
class LeastMemory:
    """
    Answer of the program.

    Attributes
    ----------
    plan
        A plan with the smallest excess found; None when none was found in time.
    over_mb
        Proven: no plan needs less than this above its limits; negative when there is room.
    """

    plan: Plan | None
    over_mb: float


def least_memory(
    problem: Problem, *, one_limit: bool = False, any_that_fits: bool = False, time_limit_s: float = 60.0
) -> LeastMemory:
    """
    Find the plan whose worst stage exceeds its limit least.

    Parameters
    ----------
    one_limit
        Measure excess from 0 MB on every stage: the answer is then the smallest
        single limit that some plan meets, before any margin.
    any_that_fits
        Be content with any plan within the limits, which is found sooner.

    Returns
    -------
    LeastMemory
        The plan and the proven excess, MB.

    Raises
    ------
    SolverError
        When the solver fails.
    """
    tables = layer_tables(problem)
    variants = _variants(problem, tables)
    if problem.interleave == 1 and problem.model.body_count <= _MOST_LAYERS:
        limits = (0.0,) * problem.stages if one_limit else problem.limit_per_stage_mb
        plan, over_mb = least_memory_chain(problem, tables, variants, limits)
        return LeastMemory(plan=plan, over_mb=over_mb)
    return _by_program(problem, tables, variants, one_limit, any_that_fits, time_limit_s)


def _by_program(
    problem: Problem,
    tables: LayerTables,
    variants: list[list[int | None]],
    one_limit: bool,
    any_that_fits: bool,
    time_limit_s: float,
) -> LeastMemory:
    """Solve (M1) to (M6)."""
    program = LinearProgram()
    over = program.add_column(float(not any_that_fits), -np.inf, 0.0 if any_that_fits else np.inf)
    entries, cells = problem.model.bodies, range(problem.cells)
    number = {
        (v, k, cell): program.add_column(0.0, 0.0, layer.count, integer=True)
        for v, types in enumerate(variants)
        for k, layer in enumerate(entries)
        for cell in cells
        if types[k] is not None
    }
    _add_memory_rows(program, problem, tables, variants, number, over, one_limit=one_limit)
    for k, layer in enumerate(entries):
        terms = {column: 1.0 for key, column in number.items() if key[1] == k}
        program.add_row(terms, lower=layer.count, upper=layer.count)
    for cell in cells:
        terms = {column: 1.0 for key, column in number.items() if key[2] == cell}
        program.add_row(terms, lower=problem.least_layers(cell))
    _add_order_rows(program, problem, number)
    if len(variants) > 1:
        _add_choice_rows(program, problem, number)
    solution = program.solve(time_limit_s)
    if solution.values is None:
        return LeastMemory(plan=None, over_mb=solution.bound)
    counts = np.zeros((len(entries), len(Recompute), problem.cells), dtype=np.int64)
    for (v, k, cell), column in number.items():
        counts[k, variants[v][k], cell] += round(solution.values[column])
    return LeastMemory(plan=Plan(problem=problem, counts=counts), over_mb=solution.bound)


def _variants(problem: Problem, tables: LayerTables) -> list[list[int | None]]:
    """
    Type with the least activation memory of every entry, None where it has none.

    Two variants, without COMM and without SELECTIVE, when the target can not say
    both in one cell and that matters; one otherwise.
    """

    def least(banned: Recompute | None) -> list[int | None]:
        usable = tables.considered.copy()
        if banned is not None:
            usable[:, banned] = False
        memory = np.where(usable, tables.activation_mb, np.inf)
        return [int(row.argmin()) if any(use) else None for row, use in zip(memory, usable, strict=True)]

    free = least(None)
    if may_mix_selective_and_comm(problem.target) or not {Recompute.SELECTIVE, Recompute.COMM} <= set(free):
        return [free]
    return [least(Recompute.COMM), least(Recompute.SELECTIVE)]


def _add_memory_rows(
    program: LinearProgram,
    problem: Problem,
    tables: LayerTables,
    variants: list[list[int | None]],
    number: Number,
    over: int,
    *,
    one_limit: bool,
) -> None:
    placement, fixed = problem.order.placement, tables.fixed
    for stage, live in enumerate(live_rows(problem.order)):
        limit = 0.0 if one_limit else problem.limit_per_stage_mb[stage]
        cells = [placement.cell_of(stage, chunk, problem.stages) for chunk in range(problem.interleave)]
        for row in live.rows:
            held = problem.constant_per_stage_mb[stage] + fixed.parameter_mb[cells].sum()
            held += row @ fixed.activation_mb[cells]
            lives = dict(zip(cells, row.tolist(), strict=True))
            terms = {over: -1.0}
            for (v, k, cell), column in number.items():
                if cell in lives:
                    activation = tables.activation_mb[k, variants[v][k]]
                    terms[column] = float(tables.parameter_mb[k] + lives[cell] * activation)
            program.add_row(terms, upper=float(limit - held))


def _add_order_rows(program: LinearProgram, problem: Problem, number: Number) -> None:
    """Add (M5)."""
    of_entry: dict[int, list[tuple[int, int]]] = {}
    for (_, k, cell), column in number.items():
        of_entry.setdefault(k, []).append((cell, column))

    def upto(entry: int, last: int) -> dict[int, float]:
        return {column: 1.0 for cell, column in of_entry[entry] if cell <= last}

    for k, layer in enumerate(problem.model.bodies[:-1]):
        after = problem.model.bodies[k + 1].count
        for cell in range(problem.cells):
            done = program.add_column(0.0, 0.0, 1.0, integer=True)
            program.add_row({**upto(k, cell), done: -float(layer.count)}, lower=0.0)
            program.add_row({**upto(k + 1, cell), done: -float(after)}, upper=0.0)


def _add_choice_rows(program: LinearProgram, problem: Problem, number: Number) -> None:
    """Let a cell use one variant only: (M6)."""
    for cell in range(problem.cells):
        choice = program.add_column(0.0, 0.0, 1.0, integer=True)
        for (v, k, where), column in number.items():
            if where == cell:
                most = float(problem.model.bodies[k].count)
                program.add_row({column: 1.0, choice: most if v else -most}, upper=most if v else 0.0)
