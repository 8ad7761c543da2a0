"""``sapp-ppb plan``: the fastest plan within the memory limit, and how good it is."""

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapp_ppb.cli.guard import FITS, NO_PLAN_IN_TIME, NOTHING_FITS, say
from sapp_ppb.cli.options.output import (
    AsJson,
    Force,
    Output,
    ShowTimeline,
    Tokens,
    refuse_with_json,
    tokens_per_micro_batch,
)
from sapp_ppb.cli.options.planning import (
    FixPlan,
    Gap,
    Keep,
    ReorderStages,
    Seed,
    TimeLimit,
    WarmStart,
    kept_part,
)
from sapp_ppb.cli.options.values import share
from sapp_ppb.cli.output import write_document, write_result
from sapp_ppb.cli.output_files import SECOND_PLAN_FILE, free_folder, write_folder
from sapp_ppb.cli.problem import note_what_is_odd, takes_problem
from sapp_ppb.cli.progress import ProgressLine
from sapp_ppb.interrupts import held_interrupts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sapp_ppb.plan import Outcome, Plan
    from sapp_ppb.planner import ScheduleChoice
    from sapp_ppb.problem import Problem
    from sapp_ppb.simulator import Timeline

# Share of the time limit for the plan that the target can say; the rest says what that costs.
_FOR_TARGET = 0.7
_SMALL_LIMIT_MB, _FAR_TOO_SMALL = 1024.0, 10  # devices of a thousand GB are not made yet
_NOTHING_YET = "interrupted before any plan was found"
SHORT_HELP = "Find the shortest step that fits the memory."
HELP = """
Find the plan with the shortest training step within the memory limit: the layers of every
stage and chunk, and how they are recomputed.  Says how far it can be from the best plan.

\b
Examples:
  sapp-ppb plan llama2_70b.json -s 16 -i 2 -mb 32 -mem 56000
  sapp-ppb plan llama2_70b.json -s 8 -mb 64 -mem 50000 -t 30 -o out
  sapp-ppb plan llama2_70b.json -s 8 -mb 64 -mem 50000 --fix out/plan.json --keep split
  sapp-ppb plan llama2_70b.json -s 8 -mb 32 -mem 60000 --schedule auto
  sapp-ppb plan llama2_70b.json -s 8 -mb 64 -mem 50000 --noise 5%
  sapp-ppb plan llama2_70b.json -s 8 -mb 64 -mem 50000 --stage-speed 1,1,1,1,1,1,0.8,0.8 --reorder-stages
  sapp-ppb plan llama2_70b.json -s 8 -mb 64 -mem 50000 --step-extra 900
  sapp-ppb plan demo.json -s 16 -mb 16 -mem 56000 --target mindformers --json > plan.json
"""


@takes_problem
def plan(
    problem: "Problem",
    candidates: "list[Problem] | None" = None,
    time_limit: TimeLimit = 10.0,
    gap: Gap = "0",
    seed: Seed = 0,
    threads: Annotated[
        int, typer.Option("--threads", metavar="N", help="Searches side by side; the proof takes one core.")
    ] = 1,
    warm_start: WarmStart = None,
    fix: FixPlan = None,
    keep: Keep = None,
    reorder_stages: ReorderStages = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what limits the plan; takes the time again.")
    ] = False,
    noise: Annotated[
        str | None,
        typer.Option(
            "--noise", metavar="SHARE", help="Say how the plan holds when layer times vary: 0.05 or 5%."
        ),
    ] = None,
    tokens: Tokens = None,
    timeline_: ShowTimeline = False,
    output: Output = None,
    force: Force = False,
    json_: AsJson = False,
) -> int:
    """Plan, print and write."""
    from sapp_ppb.simulator import simulate
    from sapp_ppb.writers import plan_to_json

    tokens = tokens_per_micro_batch(tokens)
    refuse_with_json(json_, **{"--explain": explain, "--timeline": timeline_, "--noise": noise is not None})
    varied = None if noise is None else _noise(noise)
    folder = None
    if output is not None:
        folder = free_folder(output, force=force, more=() if noise is None else (SECOND_PLAN_FILE,))
    part = kept_part(fix, keep)
    options = {"time_limit_s": time_limit, "gap": share("--gap", gap), "seed": seed, "threads": threads}
    choices = None
    if candidates is not None:
        _refuse_one_plan(warm_start, fix, reorder_stages=reorder_stages)
        choices = _planned_all(candidates, **options)
        outcome = _best(choices)
    else:
        if fix is not None:
            problem = _fixed(problem, fix, part)
        known = None if warm_start is None else _plan_in(warm_start, problem)
        outcome = planned(problem, **options, warm_start=known, reorder_stages=reorder_stages)
    note_what_is_odd(problem)
    _note_gigabytes(outcome)
    with held_interrupts():  # the plan is there: it is written and printed before a Ctrl-C comes through
        timeline = None if outcome.plan is None else simulate(outcome.plan)
        try:
            if folder is not None:
                write_folder(folder, outcome, timeline, force=force, tokens=tokens)
        finally:  # a full disk does not take the plan from the screen, nor a full pipe from the disk
            if json_:
                write_document(plan_to_json(outcome))
            else:
                write_result(_text(outcome, timeline, tokens, drawn=timeline_))
                if choices is not None:
                    write_result("\n" + _schedules_text(choices))
    if varied is not None and exit_code(outcome) == FITS:
        _try_noise(outcome, varied, folder, force=force)
    if explain and exit_code(outcome) == FITS:
        write_result(_explanation(outcome, time_limit))
    return exit_code(outcome)


def _note_gigabytes(outcome: "Outcome") -> None:
    """Ask whether gigabytes are meant, where limits are far too small for any plan."""
    limit_mb = max(outcome.problem.limit_per_stage_mb)
    needed_mb = None if outcome.shortage is None else outcome.shortage.smallest_limit_mb
    if needed_mb is not None and 0 < limit_mb <= _SMALL_LIMIT_MB and needed_mb > _FAR_TOO_SMALL * limit_mb:
        said = f"{limit_mb:.10g} GB are {1024 * limit_mb:.10g}"
        say(f"note: memory limits are in MB; {said} (--memory-limit {1024 * limit_mb:.10g})")


def _plan_in(path: Path, problem: "Problem") -> "Plan":
    """Read a plan file for the problem's model and cells; refuse one that has no plan."""
    from sapp_ppb.errors import InputError
    from sapp_ppb.plan import refuse_other_cells
    from sapp_ppb.readers import read_plan

    plan = read_plan(path, problem.model).plan
    if plan is None:
        raise InputError(str(path), ["holds no plan: it says that nothing fits; give one with a plan"])
    try:
        refuse_other_cells(problem, plan)
    except InputError as error:
        raise InputError(str(path), error.faults) from None
    return plan


def _fixed(problem: "Problem", path: Path, part: str) -> "Problem":
    """Keep a part of the plan in a file."""
    plan = _plan_in(path, problem)
    return replace(problem, fix=plan.split if part == "split" else plan.recompute)


def _refuse_one_plan(warm_start: Path | None, fix: Path | None, *, reorder_stages: bool) -> None:
    from sapp_ppb.errors import InputError

    options = {"--warm-start": warm_start is not None, "--fix": fix is not None}
    for option, given in (options | {"--reorder-stages": reorder_stages}).items():
        if given:
            raise InputError(option, ["goes with one schedule; name it instead of --schedule auto"])


def planned(problem: "Problem", **options: Any) -> "Outcome":
    """Plan, and where there is a target without its limits too; show the progress."""
    found: list[Outcome] = []
    try:
        with _getting_ready(problem) as line:
            for outcome in _planned_step_by_step(problem, line, **options):
                found.append(outcome)  # kept when the next step is interrupted
    except KeyboardInterrupt:
        return _interrupted(found)
    return found[-1]


def _planned_step_by_step(problem: "Problem", line: ProgressLine, **options: Any) -> "Iterator[Outcome]":
    """Give the plan, and then the same with what is known of plans without the target."""
    from sapp_ppb.planner import plan_pipeline, target_restricts, with_cost_of_target

    # In another order other plans compete, so what the target costs is not told there.
    if options.get("reorder_stages"):
        yield plan_pipeline(problem, **options, watch=line)
        return
    if not target_restricts(problem):
        yield with_cost_of_target(plan_pipeline(problem, **options, watch=line), time_limit_s=0.0)
        return
    seconds = options.pop("time_limit_s")
    for_target, free = _FOR_TARGET * seconds, (1 - _FOR_TARGET) * seconds
    outcome = plan_pipeline(problem, **options, time_limit_s=for_target, watch=line)
    yield outcome
    again = {name: options[name] for name in ("seed", "threads") if name in options}
    yield with_cost_of_target(outcome, time_limit_s=free, **again, watch=line)


def _interrupted(found: "list[Outcome]") -> "Outcome":
    """Take the last answer that was found before an interrupt."""
    from sapp_ppb.errors import NoPlanFoundError
    from sapp_ppb.plan import StoppedBy

    if not found or found[-1].plan is None:
        raise NoPlanFoundError(_NOTHING_YET) from None
    return replace(found[-1], stopped_by=StoppedBy.INTERRUPT)


def _planned_all(problems: "list[Problem]", **options: Any) -> "list[ScheduleChoice]":
    """Plan under every schedule, and show the progress."""
    from sapp_ppb.errors import NoPlanFoundError
    from sapp_ppb.planner import plan_schedules

    try:
        with _getting_ready(problems[0]) as line:
            return plan_schedules(problems, **options, watch=line)
    except KeyboardInterrupt:
        raise NoPlanFoundError(_NOTHING_YET) from None


@contextmanager
def _getting_ready(problem: "Problem") -> "Iterator[ProgressLine]":
    """Say what takes long before it does."""
    from sapp_ppb.planner import needs_compiling
    from sapp_ppb.targets import target_named

    if problem.target is not None:
        target_named(problem.target)  # refuses an unknown one before anything is compiled
    if needs_compiling():
        say("compiling the search, about 20 s; later runs do without")
    with ProgressLine() as line:
        yield line


def _best(choices: "list[ScheduleChoice]") -> "Outcome":
    """Fastest plan, or else the schedule that comes closest to having one."""
    from sapp_ppb.errors import NoPlanFoundError

    known = [choice.outcome for choice in choices if choice.outcome is not None]
    if not known:
        raise NoPlanFoundError("no schedule's plan was found in time; try a higher --time-limit")
    if known[0].plan is not None:
        return known[0]
    return min(known, key=lambda each: float("inf") if each.shortage is None else each.shortage.needed_mb)


def _schedules_text(choices: "list[ScheduleChoice]") -> str:
    from sapp_ppb.cli.text.schedules_table import schedules_text

    return schedules_text(choices)


def _noise(text: str) -> float:
    """Read a relative standard deviation."""
    from sapp_ppb.errors import InputError
    from sapp_ppb.planner.robust import LARGEST_NOISE

    noise = share("--noise", text)
    if not 0.0 <= noise <= LARGEST_NOISE:
        raise InputError("--noise", [f"must be from 0 to {LARGEST_NOISE:.0%} (got {text!r})"])
    return noise


def _try_noise(outcome: "Outcome", noise: float, folder: Path | None, *, force: bool) -> None:
    """Say how the plan and others hold, and write the one that holds best where that is another."""
    from sapp_ppb.cli.text.noise import noise_text
    from sapp_ppb.planner import robustness
    from sapp_ppb.simulator import simulate, timed
    from sapp_ppb.writers import write_plan

    with ProgressLine():
        found = robustness(outcome, noise)
    best = found.best_at_p95
    try:
        if folder is not None and best is not found.chosen:
            second = replace(timed(simulate(best.plan)), lower_bound_ms=outcome.lower_bound_ms)
            write_plan(replace(second, seed=outcome.seed), folder / SECOND_PLAN_FILE, force)
            say(f"wrote {folder}: {SECOND_PLAN_FILE}")
    finally:  # a full disk does not take the table from the screen
        write_result(noise_text(found))


def _explanation(outcome: "Outcome", seconds: float) -> str:
    from sapp_ppb.cli.text.explanation import explanation_text
    from sapp_ppb.planner import explain

    with ProgressLine():
        return explanation_text(outcome, explain(outcome, seconds))


def _text(outcome: "Outcome", timeline: "Timeline | None", tokens: int | None, *, drawn: bool) -> str:
    from sapp_ppb.cli.text.tables import infeasible_text, outcome_text
    from sapp_ppb.planner import baselines
    from sapp_ppb.simulator import simulate

    if timeline is None:
        return infeasible_text(outcome)
    compared = [(baseline.name, simulate(baseline.plan)) for baseline in baselines(outcome.problem)]
    return outcome_text(outcome, timeline, compared, tokens=tokens, drawn=drawn)


def exit_code(outcome: "Outcome") -> int:
    """Say with a number whether a plan fits, none does, or the run was interrupted."""
    from sapp_ppb.plan import StoppedBy

    if outcome.plan is None:
        return NOTHING_FITS
    return NO_PLAN_IN_TIME if outcome.stopped_by is StoppedBy.INTERRUPT else FITS
