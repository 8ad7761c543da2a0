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
"""

from dataclasses import dataclass

import numpy as np

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.planner.highs import LinearProgram
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.memory import live_rows
from sapp_ppb.simulator.price import LayerTables, layer_tables


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


def least_memory(problem: Problem, *, one_limit: bool = False, time_limit_s: float = 60.0) -> LeastMemory:
    """
    Find the plan whose worst stage exceeds its limit least.

    Parameters
    ----------
    one_limit
        Measure excess from 0 MB on every stage: the answer is then the smallest
        single limit that some plan meets.

    Raises
    ------
    SolverError
        When the solver fails.
    """
    program = LinearProgram()
    tables = layer_tables(problem)
    types = np.where(tables.considered, tables.activation_mb, np.inf).argmin(axis=1)
    over = program.add_column(1.0, -np.inf, np.inf)
    counts = [layer.count for layer in problem.model.bodies]
    number = [
        [program.add_column(0.0, 0.0, count, integer=True) for _ in range(problem.cells)] for count in counts
    ]
    _add_memory_rows(program, problem, tables, types.tolist(), number, over, one_limit=one_limit)
    for k, count in enumerate(counts):
        program.add_row(dict.fromkeys(number[k], 1.0), lower=count, upper=count)
    for cell in range(problem.cells):
        program.add_row({row[cell]: 1.0 for row in number}, lower=problem.least_layers(cell))
    _add_order_rows(program, problem, number)
    solution = program.solve(time_limit_s)
    if solution.values is None:
        return LeastMemory(plan=None, over_mb=solution.bound)
    plan_counts = np.zeros((len(counts), len(Recompute), problem.cells), dtype=np.int64)
    for k, columns in enumerate(number):
        plan_counts[k, types[k]] = np.rint(solution.values[columns])
    return LeastMemory(plan=Plan(problem=problem, counts=plan_counts), over_mb=solution.bound)


def _add_memory_rows(
    program: LinearProgram,
    problem: Problem,
    tables: LayerTables,
    types: list[int],
    number: list[list[int]],
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
            terms = {over: -1.0}
            for k, columns in enumerate(number):
                for cell, lives in zip(cells, row, strict=True):
                    each = tables.parameter_mb[k] + lives * tables.activation_mb[k, types[k]]
                    terms[columns[cell]] = float(each)
            program.add_row(terms, upper=float(limit - held))


def _add_order_rows(program: LinearProgram, problem: Problem, number: list[list[int]]) -> None:
    for k, layer in enumerate(problem.model.bodies[:-1]):
        after = problem.model.bodies[k + 1].count
        for cell in range(problem.cells):
            done = program.add_column(0.0, 0.0, 1.0, integer=True)
            here = dict.fromkeys(number[k][: cell + 1], 1.0)
            program.add_row({**here, done: -float(layer.count)}, lower=0.0)
            there = dict.fromkeys(number[k + 1][: cell + 1], 1.0)
            program.add_row({**there, done: -float(after)}, upper=0.0)
