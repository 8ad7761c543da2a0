"""The trace: rules of the Trace Event format, and what it holds of a timeline."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.errors import InputError
from sapp_ppb.report import trace_events, write_trace
from sapp_ppb.schedules import OpKind
from sapp_ppb.schedules.op import WHOLE
from sapp_ppb.simulator import Timeline, simulate
from tests.reference import reference
from tests.report.conftest import hand_plan, pair_plan, plans

NS = 0.001  # microseconds


def events_of(timeline: Timeline, **kinds):
    """Events of the trace, of some values only: ``ph="X"``, ``pid=0``."""
    events = [json.loads(event) for event in trace_events(timeline)]
    return [event for event in events if all(event.get(key) == value for key, value in kinds.items())]


def test_the_drawn_plan_as_slices(timeline):
    slices = [
        (event["name"], event["cat"], event["ts"], event["dur"])
        for event in events_of(timeline, ph="X", pid=1)
    ]
    again = ("recompute", "recompute")
    assert slices == [
        ("1F0", "F", 1000, 2000),
        ("1F1", "F", 3000, 2000),
        ("1B0", "B", 6000, 5000),
        (*again, 6000, 1000),
        ("1F2", "F", 11000, 2000),
        ("1B1", "B", 13000, 5000),
        (*again, 13000, 1000),
        ("1B2", "B", 18000, 5000),
        (*again, 18000, 1000),
    ]


def test_a_stage_is_a_process_with_its_name(timeline):
    names = [
        (event["pid"], event["name"], event["args"])
        for event in events_of(timeline, ph="M")
        if event["pid"] == 2
    ]
    assert names == [
        (2, "process_name", {"name": "stage 2"}),
        (2, "process_sort_index", {"sort_index": 2}),
        (2, "thread_name", {"name": "compute"}),
    ]


def test_the_memory_of_the_drawn_plan_is_a_counter(timeline):
    # As in test_memory_curve, without the 50 MB.
    counters = events_of(timeline, ph="C", pid=1)
    assert {event["name"] for event in counters} == {"memory"}
    assert [event["ts"] for event in counters] == [0, 1000, 3000, 11000, 11000, 18000, 23000]
    assert [event["args"]["MB"] for event in counters] == [200, 211, 222, 211, 222, 211, 200]


def test_the_first_message_of_the_drawn_plan_leaves_a_nanosecond_before_its_slice_ends(timeline):
    # 0F0 ends at 1 ms, 1F0 begins there.
    (start,) = [event for event in events_of(timeline, ph="s", pid=0) if event["ts"] < 1000]
    (end,) = events_of(timeline, ph="f", id=start["id"])
    assert start["ts"] == pytest.approx(1000 - NS, abs=1e-9)
    assert (end["pid"], end["ts"], end["bp"]) == (1, 1000, "e")
    assert (start["cat"], start["name"]) == (end["cat"], end["name"])


@given(plans(), st.sampled_from([1, 2]))
def test_slices_of_a_thread_begin_in_order_and_either_nest_or_stand_apart(plan, thread):
    timeline = simulate(plan)
    for stage in range(plan.problem.stages):
        on_thread = [event for event in events_of(timeline, pid=stage, tid=thread) if "ts" in event]
        assert all(a["ts"] <= b["ts"] for a, b in pairwise(on_thread))
        slices = [event for event in on_thread if event["ph"] == "X"]
        # Whole nanoseconds, cut as Perfetto cuts them.
        spans = [(int(e["ts"] * 1000), int(e["ts"] * 1000) + int(e["dur"] * 1000)) for e in slices]
        for (event, before), (other, after) in pairwise(zip(slices, spans, strict=True)):
            if other["cat"] == "recompute":
                assert event["cat"] in ("B", "I", "W")
                assert before[0] == after[0] <= after[1] <= before[1]
        ops = [span for event, span in zip(slices, spans, strict=True) if event["cat"] != "recompute"]
        assert all(before[1] <= after[0] for before, after in pairwise(ops))


def test_the_backward_of_a_pair_has_a_thread_beside_its_forward():
    slices = events_of(simulate(pair_plan()), ph="X")
    assert [(event["name"], event["tid"], event["ts"], event["dur"]) for event in slices] == [
        ("0F0", 1, 0, 1000),
        ("0F1", 1, 1000, 2500),
        ("0B0", 2, 1000, 2500),
        ("0B1", 1, 3500, 2000),
    ]
    names = events_of(simulate(pair_plan()), ph="M", name="thread_name")
    assert [event["args"]["name"] for event in names] == ["compute", "overlapped backward"]


@given(plans())
def test_only_what_overlaps_has_a_thread_beside(plan):
    beside = [event["cat"] for event in events_of(simulate(plan), tid=2) if event["ph"] == "X"]
    assert set(beside) <= {"B", "recompute"}
    pairs = sum(len(plan.problem.order.pairs_of(stage)) for stage in range(plan.problem.stages))
    assert beside.count("B") == (pairs if plan.problem.overlap_factor > 0 else 0)


@given(plans())
def test_every_arrow_has_two_ends_each_within_a_slice_and_never_points_back(plan):
    timeline = simulate(plan)
    starts = {event["id"]: event for event in events_of(timeline, ph="s")}
    ends = {event["id"]: event for event in events_of(timeline, ph="f")}
    assert starts.keys() == ends.keys()
    assert len(starts) == len(events_of(timeline, ph="s")) == len(events_of(timeline, ph="f"))
    slices = [event for event in events_of(timeline, ph="X") if event["cat"] != "recompute"]
    for key, start in starts.items():
        assert start["pid"] != ends[key]["pid"]
        assert start["ts"] <= ends[key]["ts"] + NS
        for event in (start, ends[key]):
            assert any(
                one["pid"] == event["pid"] and one["ts"] <= event["ts"] <= one["ts"] + one["dur"] + 1e-6
                for one in slices
            )


@given(plans())
def test_the_last_slice_ends_with_the_step(plan):
    timeline = simulate(plan)
    last = max(event["ts"] + event["dur"] for event in events_of(timeline, ph="X"))
    assert last == pytest.approx(timeline.step_ms * 1000, rel=1e-9, abs=NS)


def test_what_stages_do_after_their_last_op_is_a_slice_of_its_own():
    # Stage 0 ends at 25 ms, stage 1 at 23 and stage 2 at 16, as drawn in conftest.py.
    timeline = simulate(hand_plan(step_extra_ms=(1.0, 0.5, 10.0)))
    extra = [event for event in events_of(timeline, ph="X") if event["cat"] == "extra"]
    assert [(event["pid"], event["ts"], event["dur"]) for event in extra] == [
        (0, 25_000, 1_000),
        (1, 23_000, 500),
        (2, 16_000, 10_000),
    ]
    assert {event["name"] for event in extra} == {"outside the pipeline"}


@given(plans())
def test_a_trace_gives_back_every_op_as_the_simulator_has_it(plan):
    timeline = simulate(plan)
    ops = [event for event in events_of(timeline, ph="X") if event["cat"] in OpKind.__members__]
    at = iter(ops)
    for stage, row in enumerate(plan.problem.order.rows):
        times = zip(row, timeline.start_ms[stage].tolist(), timeline.end_ms[stage].tolist(), strict=True)
        for op, start, end in times:
            event = next(at)
            known = event["args"]
            assert (event["name"], event["cat"], known["start_ms"], known["end_ms"]) == (
                str(op),
                op.kind.name,
                start,
                end,
            )
            assert (known["stage"], known["cell"], known["micro_batch"]) == (stage, op.cell, op.micro_batch)
            assert known["chunk"] == op.cell // plan.problem.stages
            assert known.get("sequence_chunk", WHOLE) == op.sequence_chunk
    assert next(at, None) is None
    assert len(ops) == len(reference(plan).start_ms)


@pytest.mark.parametrize("name", ["hand", 'a "quoted" \\ name', "层 \u00e9"])
def test_the_file_is_json_that_says_what_it_is_of(name, tmp_path):
    timeline = simulate(hand_plan(name))
    write_trace(timeline, tmp_path / "trace.json")
    document = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    about = document["otherData"]
    assert document["displayTimeUnit"] == "ms"
    assert (about["model"], about["makespan_ms"], about["schedule"]) == (name, 25.0, "1f1b")
    assert about["peak_memory_mb"] == [130, 222, 110]  # as in test_timeline
    assert document["traceEvents"] == events_of(timeline)


def test_a_file_that_exists_is_kept_unless_forced(timeline, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="the file exists; give --force"):
        write_trace(timeline, path)
    assert path.read_text(encoding="utf-8") == "mine"
    write_trace(timeline, path, force=True)
    assert json.loads(path.read_text(encoding="utf-8"))["traceEvents"]


def test_an_interrupt_leaves_no_half_trace(timeline, tmp_path, monkeypatch):
    def interrupt(_):
        yield "{}"
        raise KeyboardInterrupt

    monkeypatch.setattr("sapp_ppb.report.trace.trace_events", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_trace(timeline, tmp_path / "trace.json")
    assert not list(tmp_path.iterdir())
