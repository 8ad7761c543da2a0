"""
Laws that every answer of the planner keeps, whatever the problem.

A law asks what it needs and raises ``Broken`` where it does not hold; it returns whether
there was anything to hold for.
"""

import hashlib
import math
import tempfile
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sapp_ppb.costs import LayerKind
from sapp_ppb.errors import PlannerNote
from sapp_ppb.plan import Outcome, Plan, Status
from sapp_ppb.planner import baselines
from sapp_ppb.planner.allowed import may_be
from sapp_ppb.planner.ways import as_plan_of
from sapp_ppb.readers.plans.plan_file import read_plan
from sapp_ppb.simulator import simulate
from sapp_ppb.targets import target_named
from sapp_ppb.writers.plan_file import plan_to_json
from tests.laws.asked import Asked, changed_by, is_repeatable
from tests.laws.drawing import drawn
from tests.laws.every_plan import fits, keeps, least_ms
from tests.laws.units import with_times
from tests.reference import reference

# Times that are equal but for the order of their sums, and what counts as proven.
_SAME, _PROVEN = 1e-9, 1e-6


class Broken(Exception):
    """A law does not hold; says how."""


def require(holds: bool, words: str) -> None:
    """Say that a law is broken unless it holds."""
    if not holds:
        raise Broken(words)


def _plan(outcome: Outcome | None) -> Plan | None:
    return None if outcome is None else outcome.plan


def _step_ms(outcome: Outcome) -> float:
    require(outcome.step_ms is not None, "a plan without a step")
    return outcome.step_ms or 0.0


def _bound_ms(outcome: Outcome) -> float:
    require(outcome.lower_bound_ms is not None, "a plan without a bound")
    return outcome.lower_bound_ms or 0.0


def within_limits(asked: Asked) -> bool:
    """No stage is over its limit during any op, by the slow reference."""
    plan = _plan(asked.outcome)
    if plan is None:
        return False
    require(fits(plan), f"holds {reference(plan).peak_mb} of {plan.problem.limit_per_stage_mb} MB")
    return True


def complete(asked: Asked) -> bool:
    """Every layer is there once, under a type that it may have, and no cell is too empty."""
    plan = _plan(asked.outcome)
    if plan is None:
        return False
    problem, counts = plan.problem, plan.counts.tolist()
    require(problem == asked.problem or asked.drawn.reorders, "the answer to another problem")
    for layer, by_type in zip(problem.model.bodies, counts, strict=True):
        require(min(map(min, by_type)) >= 0, f"{layer.name} has negative counts")
        require(sum(map(sum, by_type)) == layer.count, f"{layer.name} has not {layer.count} layers")
        for recompute, per_cell in zip(problem.model.types, by_type, strict=True):
            require(
                not sum(per_cell) or recompute in problem.considered(layer),
                f"{layer.name} may not be {recompute.label}",
            )
    kinds = [layer.kind for layer in problem.model.layers]
    for cell in range(problem.cells):
        here = sum(per_cell[cell] for by_type in counts for per_cell in by_type)
        beside = cell == 0 and LayerKind.HEAD in kinds
        beside = beside or (cell == problem.cells - 1 and LayerKind.TAIL in kinds)
        require(beside or here >= problem.min_layers_per_cell, f"cell {cell} holds {here} layers")
    return True


def in_order(asked: Asked) -> bool:
    """No layer stands in a cell before one that comes earlier in the chain."""
    plan = _plan(asked.outcome)
    if plan is None:
        return False
    by_layer = [[sum(cell) for cell in zip(*by_type, strict=True)] for by_type in plan.counts.tolist()]
    reached = 0
    for layer, cells in zip(plan.problem.model.bodies, by_layer, strict=True):
        held = [cell for cell, number in enumerate(cells) if number]
        require(held[0] >= reached, f"{layer.name} stands in cell {held[0]}, before cell {reached}")
        reached = held[-1]
    return True


def keeps_what_is_asked(asked: Asked) -> bool:
    """Parts that are fixed stay, types mixed are no more than may be, and the target has words for them."""
    plan = _plan(asked.outcome)
    if plan is None:
        return False
    target = plan.problem.target
    require(keeps(plan), "does not keep what is fixed, or mixes too many types")
    require(target is None or not target_named(target).unsaid(plan), f"{target} can not say it")
    return plan.problem.fix is not None or plan.problem.max_recompute_types is not None or target is not None


def told_as_simulated(asked: Asked) -> bool:
    """Step, makespan and peaks are those of the slow reference."""
    outcome = asked.outcome
    if outcome is None or outcome.plan is None:
        return False
    slowly = reference(outcome.plan)
    told = (_step_ms(outcome), outcome.makespan_ms or 0.0, *outcome.peak_memory_mb)
    found = (slowly.step_ms, slowly.makespan_ms, *slowly.peak_mb)
    same = (math.isclose(a, b, rel_tol=_SAME) for a, b in zip(told, found, strict=True))
    require(all(same), f"told {told}, found {found}")
    return True


def bound_below_step(asked: Asked) -> bool:
    """Bounds are no more than the step, and optimal is what has no gap."""
    outcome = asked.outcome
    if outcome is None or outcome.plan is None:
        require(outcome is None or outcome.status is Status.INFEASIBLE, "no plan, and not infeasible")
        require(outcome is None or outcome.shortage is not None, "infeasible, and no shortage")
        return outcome is not None
    bound_ms, step_ms = _bound_ms(outcome), _step_ms(outcome)
    require(0.0 < bound_ms <= step_ms, f"bound {bound_ms!r}, step {step_ms!r}")
    proven = step_ms - bound_ms <= _PROVEN * step_ms
    require(proven is (outcome.status is Status.OPTIMAL), f"{outcome.status}, {bound_ms!r} to {step_ms!r}")
    return True


def agrees_with_all_plans(asked: Asked) -> bool:
    """Of all plans of a small problem none is faster than an optimal one, and the bound is below each."""
    if asked.drawn.size != "small" or asked.outcome is None:
        return False
    best_ms = least_ms(asked.problem, reorder_stages=asked.drawn.reorders)
    outcome = asked.outcome
    if outcome.plan is None:
        require(math.isinf(best_ms), f"infeasible, and there is a plan of {best_ms!r} ms")
        return True
    step_ms, bound_ms = _step_ms(outcome), _bound_ms(outcome)
    require(step_ms >= best_ms * (1 - _SAME), f"{step_ms!r} ms, below the best of all, {best_ms!r}")
    require(bound_ms <= best_ms * (1 + _SAME), f"bound {bound_ms!r} above the best of all, {best_ms!r}")
    slow = outcome.status is Status.OPTIMAL and step_ms > best_ms * (1 + _PROVEN)
    require(not slow, f"optimal at {step_ms!r} ms, and there is a plan of {best_ms!r}")
    return True


def same_seed_same_bytes(asked: Asked) -> bool:
    """One problem, seed and time limit give one plan file, the seconds in it apart."""
    first = asked.outcome
    if first is None or not is_repeatable(first):
        return False
    again = asked.answer(asked.problem)
    if again is not None and not is_repeatable(again):
        return False
    require(again is not None, "no plan the second time")
    require(_text(first) == _text(again), f"other bytes: {_differing(_text(first), _text(again))}")
    return True


def _text(outcome: Outcome | None) -> str:
    """Plan file of an answer, the seconds that it took left out."""
    return "" if outcome is None else plan_to_json(replace(outcome, seconds=0.0))


def _differing(one: str, other: str) -> list[tuple[str, str]]:
    pairs = zip(one.splitlines(), other.splitlines(), strict=False)
    return [(a.strip(), b.strip()) for a, b in pairs if a != b][:4]


def read_back(asked: Asked) -> bool:
    """Plan files are read as the outcome that they were written from."""
    outcome = asked.outcome
    if outcome is None or asked.problem.order_file is not None:  # a plan file only names that one
        return False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        path.write_text(plan_to_json(outcome), encoding="utf-8")
        again = read_plan(path, outcome.problem.model)
    require(again == outcome, "is read back as another outcome")
    return True


def doubled_times_double_the_answer(asked: Asked) -> bool:
    """Twice the times, or another power of two, give the same plan, and its step and bound as many times."""
    first = asked.outcome
    if first is None or not is_repeatable(first):
        return False
    factor = asked.rng("factor").choice([2.0, 2.0, 0.5, 1024.0, 1 / 1024])
    again = asked.answer(with_times(asked.problem, factor))
    if again is not None and not is_repeatable(again):
        return False
    require(again is not None, f"no plan when times are {factor:g} times as long")
    assert again is not None
    require(again.status is first.status, f"{first.status}, and {again.status} of {factor:g} times the times")
    if first.plan is None or again.plan is None:
        return True
    ratios = (_step_ms(again) / _step_ms(first), _bound_ms(again) / _bound_ms(first))
    require(ratios == (factor, factor), f"step and bound times {ratios}, and not {factor:g}")
    require((first.plan.counts == again.plan.counts).all(), f"another plan of {factor:g} times the times")
    return True


def easier_is_no_slower(asked: Asked) -> bool:
    """
    Higher limits and more types make no optimum slower.

    Where the easier problem is not solved to the end, its bound is no more than the step of the harder.
    """
    pair = asked.neighbours
    if pair is None or pair.of_harder is None or pair.of_harder.plan is None:
        return False
    harder_ms = _step_ms(pair.of_harder)
    if pair.of_easier is None:
        return False
    require(pair.of_easier.plan is not None, f"{pair.what}: {harder_ms!r} ms, and the easier is infeasible")
    bound_ms, step_ms = _bound_ms(pair.of_easier), _step_ms(pair.of_easier)
    require(
        bound_ms <= harder_ms * (1 + _SAME),
        f"{pair.what}: bound {bound_ms!r} of the easier, step {harder_ms!r} of the harder",
    )
    slower = pair.of_easier.status is Status.OPTIMAL and step_ms > harder_ms * (1 + _PROVEN)
    require(not slower, f"{pair.what}: optimal at {step_ms!r} ms, and the harder took {harder_ms!r}")
    return True


def warm_start_is_no_slower(asked: Asked) -> bool:
    """From the plan of a harder problem an easier one gets no slower."""
    pair = asked.neighbours
    plan = None if pair is None else _plan(pair.of_harder)
    if pair is None or pair.of_harder is None or plan is None:
        return False
    if asked.drawn.reorders and pair.of_harder.stage_order != tuple(range(asked.problem.stages)):
        return False  # a plan for devices in another order
    warm = asked.answer(pair.easier, plan)
    harder_ms = _step_ms(pair.of_harder)
    require(warm is not None and warm.plan is not None, f"{pair.what}: the plan to begin with is lost")
    assert warm is not None
    require(
        _step_ms(warm) <= harder_ms * (1 + 1e-12),
        f"{pair.what}: {_step_ms(warm)!r} ms from a plan of {harder_ms!r}",
    )
    return True


def no_baseline_is_faster(asked: Asked) -> bool:
    """No even split or bottleneck partition that fits, and that is one to be planned, is faster."""
    outcome = asked.outcome
    tried = False
    for baseline in baselines(asked.problem):
        timeline = simulate(baseline.plan)
        if not (timeline.fits_memory and may_be(baseline.plan) and _is_planned(baseline.plan)):
            continue
        tried = True
        require(outcome is not None and outcome.plan is not None, f"no plan, and {baseline.name} fits")
        assert outcome is not None
        slower = _step_ms(outcome) > timeline.step_ms * (1 + _SAME)
        require(not slower, f"{_step_ms(outcome)!r} ms, {baseline.name} {timeline.step_ms!r}")
    return tried


def _is_planned(plan: Plan) -> bool:
    """Whether a plan is one of those that are planned for its target, such as with layers in every cell."""
    problem = plan.problem
    ways = (
        [problem]
        if problem.target is None
        else [w.problem for w in target_named(problem.target).ways(problem)]
    )
    return any(as_plan_of(way, plan) is not None for way in ways)


def every_change_said_to_do_does(asked: Asked) -> bool:
    """Where nothing fits, a plan fits with each of the single changes that are said to be enough."""
    outcome, problem = asked.outcome, asked.problem
    shortage = None if outcome is None else outcome.shortage
    if shortage is None:
        return False
    if asked.drawn.reorders and isinstance(problem.stage_speed, tuple):
        return False  # with one limit for all, the order may be another
    tried = False
    for change, value in shortage.remedies:
        answer = asked.answer(changed_by(problem, change, value))
        require(answer is None or answer.plan is not None, f"{change} {value!r} does not do")
        tried = tried or answer is not None
    return tried


LAWS: dict[str, Callable[[Asked], bool]] = {
    "within the limits at every op": within_limits,
    "every layer once": complete,
    "order of the chain kept": in_order,
    "what is asked is kept": keeps_what_is_asked,
    "told as the reference simulates": told_as_simulated,
    "bound, step and status agree": bound_below_step,
    "agrees with all plans": agrees_with_all_plans,
    "no baseline is faster": no_baseline_is_faster,
    "plan file read back": read_back,
    "same seed, same bytes": same_seed_same_bytes,
    "doubled times": doubled_times_double_the_answer,
    "easier is no slower": easier_is_no_slower,
    "warm start is no slower": warm_start_is_no_slower,
    "changes said to do do": every_change_said_to_do_does,
}


# What is broken where asking the planner raises, and no law can be tried.
AN_ANSWER = "an answer"


@dataclass(frozen=True, kw_only=True)
class Tried:
    """
    What came of a problem.

    Attributes
    ----------
    size, schedule, status
        Of the problem and of its answer; ``no plan in time`` is a status here.
    held
        Laws that there was something to hold for, and that held.
    broken
        Words of the others, by law; what was raised is a broken law too.
    digest
        Of the bytes that the same seed gives again; None where the clock had a part in them.
    late_s
        Seconds that the answer took above its time limit.
    """

    number: int
    size: str
    schedule: str
    status: str
    held: tuple[str, ...]
    broken: Mapping[str, str]
    digest: str | None
    late_s: float


def try_laws(number: int) -> Tried:
    """Ask the problem of a number whether every law holds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlannerNote)  # a solver that gave up leaves the laws as they are
        asked = Asked(drawn=drawn(number))
        results = {AN_ANSWER: _result(lambda asked: asked.outcome is not None, asked)}
        outcome = vars(asked).get("outcome")  # absent where asking raised
        if not results[AN_ANSWER] or outcome is not None:
            results |= {name: _result(law, asked) for name, law in LAWS.items()}
    return Tried(
        number=number,
        size=asked.drawn.size,
        schedule=asked.problem.schedule_name.value,
        status="no plan in time" if outcome is None else outcome.status.value,
        held=tuple(name for name, result in results.items() if result is True and name in LAWS),
        broken={name: result for name, result in results.items() if isinstance(result, str)},
        digest=digest_of(outcome) if is_repeatable(outcome) else None,
        late_s=0.0 if outcome is None else outcome.seconds - asked.drawn.seconds,
    )


def _result(law: Callable[[Asked], bool], asked: Asked) -> bool | str:
    """Whether there was something to hold for, or how the law does not hold."""
    try:
        return law(asked)
    except Broken as broken:
        return str(broken)
    except Exception:
        return traceback.format_exc(limit=-5)


def digest_of(outcome: Outcome | None) -> str:
    """Short for the bytes of an answer."""
    return hashlib.sha256(_text(outcome).encode()).hexdigest()
