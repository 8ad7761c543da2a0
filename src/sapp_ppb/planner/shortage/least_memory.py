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
    (M6)  a cell's layers take their types from one menu, where there are several

A menu (``menus.py``) has a type for every entry and the working set that its types
bring with them, which the rows of a backward hold besides.  Where recompute is fixed
there is one menu, NONE for the layers that are left to spread, and (M2) holds what the
recomputed ones differ by.

With one chunk a stage the answer comes by dynamic programming, in ``least_memory_chain``.
"""

import itertools
import math
import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import PlannerNote, SolverError
from sapp_ppb.plan import Plan
from sapp_ppb.planner.allowed import may_be
from sapp_ppb.planner.proof.highs import LinearProgram
from sapp_ppb.planner.proof.menus import menus
from sapp_ppb.planner.shortage.least_memory_chain import Variant, kept_memory, least_memory_chain, with_kept
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.memory import problem_rows
from sapp_ppb.simulator.price import LayerTables, layer_tables
from sapp_ppb.targets import can_say_cell, is_nested

# Sequences of types that are looked at for a target that wants them nested.
_MOST_SEQUENCES = 5_000
# What is over by this share of a limit is over by rounding alone.
_ROUNDING = 1e-6
# Layers beyond which tables of all runs of a chain take gigabytes.
_MOST_LAYERS = 3_000
# Column of a variant of types, a BODY entry and a cell.
Number = dict[tuple[int, int, int], int]
# Column that says whether a cell uses a variant; none where there is but one.
Choice = dict[tuple[int, int], int]


@dataclass(frozen=True, kw_only=True)
class LeastMemory:
    """
    Answer of the program.

    Attributes
    ----------
    plan
        A plan with the smallest excess found; None when none was found in time, or when what the
        program leaves out does not hold for it, such as a rule of the target.
    over_mb
        Proven: no plan needs less than this above its limits; negative when there is room, and infinite
        when there is no plan at all, such as one whose types the target can say.
    """

    plan: Plan | None
    over_mb: float

    def rules_out(self, limit_mb: float) -> bool:
        """
        Whether no plan fits, by more than rounding, the least of the limits being this.

        Examples
        --------
        >>> [LeastMemory(plan=None, over_mb=over).rules_out(1000.0) for over in (-5.0, 0.0005, 0.5)]
        [False, False, True]
        >>> LeastMemory(plan=None, over_mb=math.inf).rules_out(math.inf)
        True
        """
        return self.over_mb == math.inf or self.over_mb > _ROUNDING * limit_mb


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
        answer = LeastMemory(plan=plan, over_mb=over_mb)
    else:
        answer = _by_program(problem, tables, variants, one_limit, any_that_fits, time_limit_s)
    return answer if answer.plan is None or may_be(answer.plan) else replace(answer, plan=None)


def least_memory_if_known(
    problem: Problem, *, any_that_fits: bool = False, time_limit_s: float
) -> LeastMemory:
    """Do as ``least_memory``; where the solver fails no plan is known, and nothing is proven."""
    try:
        return least_memory(problem, any_that_fits=any_that_fits, time_limit_s=time_limit_s)
    except SolverError as error:
        warnings.warn(f"whether any plan fits is not proven: {error}", PlannerNote, stacklevel=3)
        return LeastMemory(plan=None, over_mb=-math.inf)


def _by_program(
    problem: Problem,
    tables: LayerTables,
    variants: list[Variant],
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
        for v, variant in enumerate(variants)
        for k, layer in enumerate(entries)
        for cell in cells
        if variant.types[k] is not None
    }
    choice = _add_choice_rows(program, problem, number, len(variants))
    _add_memory_rows(program, problem, tables, variants, (number, choice), over, one_limit=one_limit)
    for k, layer in enumerate(entries):
        terms = {column: 1.0 for key, column in number.items() if key[1] == k}
        program.add_row(terms, lower=layer.count, upper=layer.count)
    for cell in cells:
        terms = {column: 1.0 for key, column in number.items() if key[2] == cell}
        least, most = problem.least_layers(cell), math.inf
        if problem.fix is not None and problem.fix.layers is not None:
            least = most = problem.fix.layers[cell]
        program.add_row(terms, lower=least, upper=most)
    _add_kept_rows(program, problem, number)
    _add_order_rows(program, problem, number)
    solution = program.solve(time_limit_s)
    if solution.values is None:
        return LeastMemory(plan=None, over_mb=solution.bound)
    counts = np.zeros((len(entries), len(problem.model.types), problem.cells), dtype=np.int64)
    for (v, k, cell), column in number.items():
        counts[k, variants[v].types[k], cell] += round(solution.values[column])
    return LeastMemory(plan=Plan(problem=problem, counts=with_kept(problem, counts)), over_mb=solution.bound)


def _variants(problem: Problem, tables: LayerTables) -> list[Variant]:
    """Type with the least activation memory of every entry, for every menu that makes a difference."""
    if problem.fix is not None and problem.fix.recompute is not None:
        return [Variant(types=(int(Recompute.NONE),) * len(tables.considered), again_mb=0.0)]
    nested = is_nested(problem.target)
    if nested and len(tables.considered) > 1:
        nested_variants = _nested_variants(tables)
        if nested_variants:
            return nested_variants
    variants: dict[tuple[int | None, ...], float] = {}
    for menu in menus(tables, nested=nested):
        memory = np.where(menu.usable, tables.activation_mb, np.inf)
        types = tuple(
            int(row.argmin()) if any(use) else None for row, use in zip(memory, menu.usable, strict=True)
        )
        variants[types] = min(menu.again_mb, variants.get(types, math.inf))
    return _without_needless(tables, [Variant(types=types, again_mb=mb) for types, mb in variants.items()])


def _nested_variants(tables: LayerTables) -> list[Variant]:
    """
    Every sequence of types in which each runs a part of what the one before runs.

    An entry may have none, for cells without it.  Empty where there are too many sequences to list.
    """
    choices = [[None, *np.flatnonzero(row).tolist()] for row in tables.considered]
    if math.prod(map(len, choices)) > _MOST_SEQUENCES:
        return []
    found = []
    for types in itertools.product(*choices):
        used = [(k, r) for k, r in enumerate(types) if r is not None]
        counts = np.zeros((len(types), tables.considered.shape[1]), dtype=np.int64)
        for k, r in used:
            counts[k, r] = 1
        if used and can_say_cell(counts):
            again = max(float(tables.again_mb[k, r]) for k, r in used)
            found.append(Variant(types=types, again_mb=again))
    return _without_needless(tables, found)


def _without_needless(tables: LayerTables, variants: list[Variant]) -> list[Variant]:
    """Drop variants that hold as much as another one, or more, in every entry and besides."""

    def held(variant: Variant) -> NDArray[np.float64]:
        memory = [np.inf if r is None else tables.activation_mb[k, r] for k, r in enumerate(variant.types)]
        return np.array([*memory, variant.again_mb])

    kept: list[Variant] = []
    for variant in sorted(variants, key=lambda variant: tuple(held(variant))):
        if not any((held(other) <= held(variant)).all() for other in kept):
            kept.append(variant)
    return kept


def _add_memory_rows(
    program: LinearProgram,
    problem: Problem,
    tables: LayerTables,
    variants: list[Variant],
    columns: tuple[Number, Choice],
    over: int,
    *,
    one_limit: bool,
) -> None:
    """Add (M2)."""
    (number, choice), fixed = columns, tables.fixed
    kept_mb, kept_again_mb = kept_memory(problem, tables)
    for stage, live in enumerate(problem_rows(problem)):
        limit = 0.0 if one_limit else problem.limit_per_stage_mb[stage]
        cells = problem.cells_of(stage)
        held = problem.constant_per_stage_mb[stage] + fixed.parameter_mb[cells].sum()
        totals = held + live.totals((fixed.activation_mb + kept_mb)[cells], kept_again_mb[cells])
        for row, again, total in zip(live.rows, live.again, totals, strict=True):
            lives = dict(zip(cells, row.tolist(), strict=True))
            terms = {over: -1.0}
            for (v, k, cell), column in number.items():
                if cell in lives:
                    activation = tables.activation_mb[k, variants[v].types[k]]
                    terms[column] = float(tables.parameter_mb[k] + lives[cell] * activation)
            if again >= 0:
                total += variants[0].again_mb if len(variants) == 1 else 0.0
                terms |= {
                    column: variants[v].again_mb
                    for (v, cell), column in choice.items()
                    if cell == cells[again]
                }
            program.add_row(terms, upper=float(limit - total))


def _add_kept_rows(program: LinearProgram, problem: Problem, number: Number) -> None:
    """Let every cell have the layers that it is to recompute."""
    if problem.fix is None or problem.fix.recompute is None:
        return
    kept = problem.fix.recomputed.sum(axis=1)
    for (_, k, cell), column in number.items():
        if kept[k, cell]:
            program.add_row({column: 1.0}, lower=float(kept[k, cell]))


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


def _add_choice_rows(program: LinearProgram, problem: Problem, number: Number, variants: int) -> Choice:
    """Let a cell use one variant only: (M6)."""
    if variants == 1:
        return {}
    choice = {
        (v, cell): program.add_column(0.0, 0.0, 1.0, integer=True)
        for v in range(variants)
        for cell in range(problem.cells)
    }
    for cell in range(problem.cells):
        program.add_row({choice[v, cell]: 1.0 for v in range(variants)}, 1.0, 1.0)
    for (v, k, cell), column in number.items():
        most = float(problem.model.bodies[k].count)
        program.add_row({column: 1.0, choice[v, cell]: -most}, upper=0.0)
    return choice
