"""As a library: nothing outside is changed, nothing given is changed, and what repeats repeats itself."""

import inspect
import pickle
import subprocess
import sys
from dataclasses import fields, is_dataclass

import pytest

import sapp_ppb
from sapp_ppb.costs import Layer, LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from sapp_ppb.report.memory_picture import draw_memory
from sapp_ppb.report.stages_picture import draw_stages
from sapp_ppb.report.timeline_picture import draw_timeline
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator import simulate
from tests.cli.conftest import environment

BODY = layer_from_times(
    name="Dec",
    kind=LayerKind.BODY,
    count=9,
    forward_ms=1,
    activation_mb={Recompute.NONE: 10, Recompute.SELECTIVE: 6, Recompute.FULL: 1},
)
MODEL = Model(name="again", layers=(BODY,))

# What a process has for all of its code, before and after: of a model, a plan, its pictures and its page.
STATE = """
import decimal, gc, json, locale, logging, os, random, signal, sys, threading, warnings
def state():
    return {
        "random": hash(random.getstate()),
        "recursion": sys.getrecursionlimit(),
        "levels": [logging.getLevelName(level) for level in range(0, 60, 5)],
        "handlers": repr(logging.getLogger().handlers),
        "logger": sorted(vars(logging.Logger)),
        "level": logging.getLogger().level,
        "warnings": [repr(rule) for rule in warnings.filters],
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "locale": locale.setlocale(locale.LC_ALL),
        "decimal": repr(decimal.getcontext()),
        "signals": [repr(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)],
        "hooks": [repr(sys.excepthook), repr(sys.displayhook)],
        "collector": gc.isenabled(),
        "threads": threading.active_count(),
    }
"""


def changed(program, folder):
    """Run a program between two looks at the process, and name what it changed."""
    # numpy, scipy and matplotlib set rules for warnings of their own when they are imported.
    theirs = "import numpy, numba, scipy.optimize, scipy.special, highspy, matplotlib.figure"
    text = f"{theirs}\n{STATE}\nbefore = state()\n{program}\nafter = state()\n"
    text += "print([key for key in before if before[key] != after[key]])\n"
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout.strip().splitlines()[-1]


def test_an_import_changes_nothing_of_the_process(tmp_path):
    rooms = (
        "",
        ".costs",
        ".schedules",
        ".problem",
        ".plan",
        ".simulator",
        ".planner",
        ".readers",
        ".writers",
    )
    program = "\n".join(f"import sapp_ppb{room}" for room in rooms)
    assert (
        changed(program + "\nimport sapp_ppb.report, sapp_ppb.estimation, sapp_ppb.cli.main", tmp_path)
        == "[]"
    )


def test_a_plan_changes_nothing_of_the_process_and_leaves_no_figure_open(tmp_path, model_file):
    program = f"""
from sapp_ppb import Problem, plan_pipeline, read_model, simulate
from sapp_ppb.report.timeline_picture import draw_timeline
model = read_model({str(model_file())!r})
outcome = plan_pipeline(Problem(model=model, stages=2, micro_batches=4), time_limit_s=0.1)
for number in range(2):
    draw_timeline(simulate(outcome.plan), f"picture{{number}}.svg")
assert "matplotlib.pyplot" not in sys.modules
"""
    assert changed(program, tmp_path) == "[]"


def test_the_same_problem_again_gives_the_same_bytes_and_changes_nothing():
    for name in (None, ScheduleName.SEQ1F1B, ScheduleName.ZBV):
        pieces = 2 if name is ScheduleName.SEQ1F1B else 1

        def make(name=name, pieces=pieces):
            return Problem(
                model=MODEL,
                stages=2,
                micro_batches=4,
                schedule=name,
                sequence_chunks=pieces,
                p2p_ms=0.5,
                memory_limit_mb=90,
            )

        problem = make()
        before = (pickle.dumps(MODEL), pickle.dumps(BODY))
        first, second, third = (
            plan_pipeline(given, time_limit_s=0.3) for given in (problem, problem, make())
        )
        assert (pickle.dumps(MODEL), pickle.dumps(BODY)) == before
        assert problem == make()
        assert first.plan is not None
        assert first.plan == second.plan == third.plan
        assert first.makespan_ms == second.makespan_ms == third.makespan_ms
        # Timing a plan is no event either.
        assert simulate(first.plan).makespan_ms == simulate(first.plan).makespan_ms == first.makespan_ms


@pytest.mark.parametrize("draw", [draw_timeline, draw_memory, draw_stages])
def test_every_picture_is_its_own(draw, tmp_path):
    # The older tool saved whatever figure was the current one.
    def plan(first):
        problem = Problem(model=MODEL, stages=2, micro_batches=2)
        return plan_from_matrices(problem, {"Dec": {"none": [[first, 9 - first]]}})

    texts = []
    for number, first in enumerate((2, 7, 2)):
        path = tmp_path / f"{number}.svg"
        draw(simulate(plan(first)), str(path))
        texts.append(path.read_text(encoding="utf-8"))
    assert texts[0] == texts[2]
    assert texts[0] != texts[1]


@pytest.mark.parametrize("make", [Problem, Layer, Model, layer_from_times])
def test_nothing_is_taken_by_its_place(make):
    kinds = {parameter.kind for parameter in inspect.signature(make).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}
    with pytest.raises(TypeError, match="positional argument"):
        make(MODEL, 2, 4)
    with pytest.raises(TypeError, match="unexpected keyword"):
        make(layer_recompute=True)


@pytest.mark.parametrize("name", sapp_ppb.__all__)
def test_options_of_what_is_public_have_names(name):
    found = getattr(sapp_ppb, name)
    if not callable(found) or (isinstance(found, type) and not is_dataclass(found)):
        return  # the version, and enums
    for parameter in inspect.signature(found).parameters.values():
        assert parameter.kind is not inspect.Parameter.VAR_POSITIONAL
        assert parameter.kind is not inspect.Parameter.VAR_KEYWORD
        if parameter.default is not inspect.Parameter.empty:
            assert not isinstance(parameter.default, list | dict | set)  # a default that calls would share
    if is_dataclass(found):
        assert all(field.kw_only for field in fields(found))
        assert vars(found)["__dataclass_params__"].frozen
