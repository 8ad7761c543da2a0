"""What starts the command loads nothing heavy, and a time limit is kept on problems of any size."""

import subprocess
import sys
import time
from dataclasses import replace

import pytest
import typer

from sapp_ppb.cli.main import app
from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.planner.proof.bounds import lower_bound, work_bound
from sapp_ppb.planner.proof.exact_chain import ExactChain
from sapp_ppb.planner.proof.fronts import FrontTooLargeError
from sapp_ppb.planner.proof.patterns import TooManyPatternsError, list_patterns
from sapp_ppb.problem import Problem
from tests.cli.conftest import environment
from tests.cli.verbs import HEAVY, verbs

NEVER_AT_FIRST = (
    *HEAVY,
    "plotly",
    "pandas",
    "distributed",
    "ray",
    "pyarrow",
    "logging",
    "asyncio",
    "multiprocessing",
)
HELPS = """
import sys
from sapp_ppb.cli.main import app
for words in {words}:
    try:
        app([*words, "--help"], prog_name="sapp-ppb")
    except SystemExit as end:
        assert not end.code, (words, end.code)
    loaded = sorted(set({heavy}) & set(sys.modules))
    assert not loaded, (words, loaded)
"""


def python(program):
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_loads_nothing_but_python():
    loaded = python(
        "import sys; before = set(sys.modules); import sapp_ppb\n"
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(*loaded - set(sys.stdlib_module_names))"
    )
    assert loaded == "sapp_ppb\n"


def test_the_help_of_every_verb_loads_nothing_heavy():
    words = [[], *(name.split() for name, _ in verbs(typer.main.get_command(app)))]
    assert len(words) > 15
    said = python(HELPS.format(words=words, heavy=NEVER_AT_FIRST))
    assert said.count("Usage: sapp-ppb") == len(words)


def test_timing_a_small_plan_compiles_and_solves_and_draws_nothing(model, plan_file):
    program = (
        "import sys\n"
        "from sapp_ppb.cli.main import app\n"
        f"try:\n    app(['simulate', {str(model)!r}, {str(plan_file)!r}])\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "heavy = {'numba', 'llvmlite', 'highspy', 'scipy', 'matplotlib', 'joblib', 'plotly'}\n"
        "loaded = heavy & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    assert "makespan" in python(program)


def long_chain(layers, stages, micro_batches):
    memory = {Recompute.NONE: 600.0, Recompute.SELECTIVE: 400.0, Recompute.FULL: 50.0}
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=layers,
        forward_ms=10.0,
        parameter_mb=300.0,
        activation_mb=memory,
    )
    model = Model(name="long", layers=(body,))
    return Problem(model=model, stages=stages, micro_batches=micro_batches, memory_limit_mb=30_000.0)


def test_bounds_after_the_deadline_are_lower_and_hold():
    # The first bound alone took 20 s of work on a chain of hundreds of layers, whatever the limit.
    problem = long_chain(96, 8, 32)
    late = lower_bound(problem, time.monotonic() - 1.0)
    assert work_bound(problem) <= late <= lower_bound(problem)


def test_a_chain_is_not_proven_after_the_deadline():
    problem = long_chain(24, 4, 8)
    assert ExactChain(problem, 1e5).bound_ms > 0.0
    with pytest.raises(FrontTooLargeError):
        ExactChain(problem, 1e5, deadline=time.monotonic() - 1.0)


def test_a_long_chain_has_a_plan_within_the_shortest_limit():
    assert plan_pipeline(long_chain(256, 32, 64), time_limit_s=0.01).plan is not None


def test_patterns_are_not_listed_after_the_deadline():
    problem = replace(long_chain(16, 2, 4), interleave=2, schedule=None)
    assert len(list_patterns(problem, 1e4)) == 2
    with pytest.raises(TooManyPatternsError):
        list_patterns(problem, 1e4, deadline=time.monotonic() - 1.0)
