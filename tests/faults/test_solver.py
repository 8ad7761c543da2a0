"""The solver is missing, broken or raving: the search answers, and the bound says that nothing is proven."""

import importlib.abc
import math
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sapp_ppb.errors import NoPlanFoundError, PlannerNote, SolverError
from sapp_ppb.plan import Status
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.planner.proof.bounds import lower_bound
from sapp_ppb.planner.proof.highs import LinearProgram
from sapp_ppb.problem import Problem
from sapp_ppb.readers import read_model
from sapp_ppb.simulator import simulate
from tests.cli.conftest import environment
from tests.faults.conftest import PLAN, command

TWO_CHUNKS: dict[str, Any] = {"stages": 2, "interleave": 2, "micro_batches": 8, "memory_limit_mb": 1000}
ONE_CHUNK: dict[str, Any] = {"stages": 3, "micro_batches": 8, "memory_limit_mb": 700}


class _Broken(importlib.abc.MetaPathFinder):
    """Let the solver's library fail as one of another machine does."""

    def find_spec(self, name, path=None, target=None):
        if name == "highspy":
            raise OSError("highspy: cannot open shared object file")
        return


KINDS = ("missing", "broken", "raises", "refuses", "not a number", "too few", "above its point")


@pytest.fixture
def failing(request, monkeypatch):
    """Let the solver fail in one way; what is said of it."""
    import highspy

    usual: Any = vars(highspy)["_Highs"]

    class Raving(usual):  # type: ignore[misc]
        """A solver whose answers are wrong in one way."""

        def run(self):
            if request.param == "raises":
                raise RuntimeError("out of its mind")
            return super().run()

        def addRow(self, *arguments):
            answer = super().addRow(*arguments)
            return highspy.HighsStatus.kError if request.param == "refuses" else answer

        def getSolution(self):
            known = super().getSolution()
            values = np.array(known.col_value)
            if request.param == "not a number":
                values[:1] = math.nan
            if request.param == "too few":
                values = values[:-1]
            return SimpleNamespace(col_value=values, row_dual=known.row_dual, col_dual=known.col_dual)

        def getInfo(self):
            known = super().getInfo()
            names = ("primal_solution_status", "simplex_iteration_count")
            more = 1.0 + abs(known.objective_function_value) if request.param == "above its point" else 0.0
            return SimpleNamespace(
                **{name: getattr(known, name) for name in names},
                objective_function_value=known.objective_function_value,
                mip_dual_bound=known.mip_dual_bound + more,
            )

    if request.param == "missing":
        monkeypatch.setitem(sys.modules, "highspy", None)
    elif request.param == "broken":
        monkeypatch.delitem(sys.modules, "highspy")
        monkeypatch.setattr(sys, "meta_path", [_Broken(), *sys.meta_path])
    else:
        monkeypatch.setattr(highspy, "_Highs", Raving)
    return {
        "missing": "the solver HiGHS is not installed; pip install highspy",
        "broken": "the solver HiGHS can not be loaded: highspy: cannot open shared object file",
        "raises": "HiGHS failed in run: out of its mind",
        "refuses": "HiGHS refused addRow",
    }.get(request.param, "HiGHS gave an answer that can not be")


def program_of_two():
    program = LinearProgram()
    x, y = program.add_column(1.0, 0.0, 10.0, integer=True), program.add_column(1.0, 0.0, 10.0)
    program.add_row({x: 2.0, y: 1.0}, lower=5.0)
    return program


@pytest.mark.parametrize("failing", KINDS, indirect=True)
def test_it_is_said_how_the_solver_failed(failing):
    with pytest.raises(SolverError, match=failing):
        program_of_two().solve()


@pytest.mark.parametrize(
    ("failing", "sizes"),
    [
        *[pytest.param(kind, ONE_CHUNK, id=f"{kind}, one chunk") for kind in KINDS],
        # With several chunks linear programs alone are solved, whose bound is the point's own value.
        *[pytest.param(kind, TWO_CHUNKS, id=f"{kind}, two chunks") for kind in KINDS[:-1]],
    ],
    indirect=["failing"],
)
def test_the_search_answers_and_proves_nothing_more_than_it_can(failing, sizes, model):
    problem = Problem(model=read_model(model), **sizes)
    with pytest.warns(PlannerNote) as said:
        outcome = plan_pipeline(problem, time_limit_s=0.3)
    assert any(failing in str(note.message) for note in said)
    assert outcome.plan is not None
    timeline = simulate(outcome.plan)
    assert timeline.fits_memory
    assert timeline.makespan_ms == outcome.makespan_ms
    assert outcome.lower_bound_ms is not None
    assert lower_bound(problem) <= outcome.lower_bound_ms <= timeline.makespan_ms
    proven = timeline.makespan_ms - outcome.lower_bound_ms <= 1e-6 * timeline.makespan_ms
    assert outcome.status is (Status.OPTIMAL if proven else Status.FEASIBLE)


def test_whether_anything_fits_is_not_said_without_the_solver(model, monkeypatch):
    # 2 stages x 2 chunks in 605 MB: each stage has 5 layers, 500 MB, and the head's 150 MB on top of one.
    monkeypatch.setitem(sys.modules, "highspy", None)
    problem = Problem(model=read_model(model), **(TWO_CHUNKS | {"memory_limit_mb": 605}))
    with (
        pytest.warns(
            PlannerNote, match="whether any plan fits is not proven: the solver HiGHS is not installed"
        ),
        pytest.raises(NoPlanFoundError, match="no plan was found in"),
    ):
        plan_pipeline(problem, time_limit_s=0.1)


def test_the_command_says_it_in_a_note(model, plan_file, tmp_path):
    (tmp_path / "highspy.py").write_text("raise ImportError('libhighs.so.1: wrong ELF class')")
    env = environment()
    env["PYTHONPATH"] = f"{tmp_path}:{env['PYTHONPATH']}"
    done = command("plan", model, *PLAN[:-1], "1000", "-i", "2", "-t", "0.3", env=env)
    assert done.returncode == 0, done.stderr
    assert "makespan" in done.stdout
    assert "note: no proof: the solver HiGHS can not be loaded: libhighs.so.1: wrong ELF class" in done.stderr
