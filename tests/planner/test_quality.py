"""Known cases: the makespan to reach, every peak within its limit, and no bound above the plan."""

from pathlib import Path

import pytest

from sapp_ppb.plan import Outcome, Status
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from sapp_ppb.readers import read_model
from tests.reference import reference

EXAMPLES = Path(__file__).parents[2] / "examples"

# Model, S, V, M, limit in MB; makespan to reach; best makespan known, found and for V = 1 proven by
# an earlier prototype of this planner.
DEMO_V1 = ("demo", 16, 1, 16, 56_000, 55_100, 55_061.1)
LLAMA_V1 = ("llama2_70b", 8, 1, 64, 50_000, 286_000, 285_968)
LLAMA_V2 = ("llama2_70b", 16, 2, 32, 56_000, 83_700, 81_958)
DEMO_V3 = ("demo", 16, 3, 16, 62_000, 42_900, 41_282.1)


def planned(name: str, stages: int, interleave: int, micro_batches: int, limit_mb: int, **options) -> Outcome:
    model = read_model(EXAMPLES / f"{name}.json")
    problem = Problem(
        model=model,
        stages=stages,
        interleave=interleave,
        micro_batches=micro_batches,
        memory_limit_mb=float(limit_mb),
    )
    return plan_pipeline(problem, **options)


def check(outcome: Outcome, to_reach_ms: float, best_known_ms: float) -> None:
    """Check the plan with the slow reference simulator, and that no proof contradicts what is known."""
    assert outcome.plan is not None
    assert outcome.lower_bound_ms is not None
    told = reference(outcome.plan)
    assert told.makespan_ms == pytest.approx(outcome.makespan_ms, rel=1e-9)
    assert told.makespan_ms <= to_reach_ms
    for peak, limit in zip(told.peak_mb, outcome.problem.limit_per_stage_mb, strict=True):
        assert peak <= limit * (1 + 1e-9)
    # Known values are rounded to a tenth of a millisecond.
    assert 0 < outcome.lower_bound_ms <= min(best_known_ms + 0.1, told.makespan_ms * (1 + 1e-9))


@pytest.mark.parametrize("case", [DEMO_V1, LLAMA_V1], ids=lambda case: f"{case[0]}-S{case[1]}-V{case[2]}")
def test_one_chunk_is_proven_in_seconds(case, monkeypatch):
    # The clock stands still: work is bounded by its budget alone, however busy the machine is.
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    *sizes, to_reach, best_known = case
    outcome = planned(*sizes, time_limit_s=3.0)
    check(outcome, to_reach, best_known)
    assert outcome.status is Status.OPTIMAL
    assert outcome.makespan_ms == pytest.approx(best_known, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [DEMO_V1, LLAMA_V1, LLAMA_V2, DEMO_V3], ids=lambda case: f"{case[0]}-S{case[1]}-V{case[2]}"
)
def test_default_settings_reach_the_known_quality(case):
    *sizes, to_reach, best_known = case
    outcome = planned(*sizes)
    check(outcome, to_reach, best_known)
    # Half as long again as the time limit, for a machine that does other things too.
    assert outcome.seconds <= 15
