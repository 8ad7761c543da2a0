"""Traces of several ranks become one model: who is first, who is last, and what is left out."""

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind
from sapp_ppb.costs.measured import ScopeTrace, Spans
from sapp_ppb.errors import InputError
from sapp_ppb.estimation import Wanted, model_from_scopes, scope_times
from sapp_ppb.estimation.scope_times import kept_steps, layer_times

WANTED = (
    Wanted(name="Emb", kind=LayerKind.HEAD),
    Wanted(name="Dec", kind=LayerKind.BODY),
    Wanted(name="Out", kind=LayerKind.TAIL),
)


def spans(*pairs):
    start, end = np.array(pairs, dtype=float).reshape(-1, 2).T
    return Spans(start_us=start, end_us=end)


def trace_of(source="x", rank=None, steps=(), **layers_ms):
    """Trace in which each layer runs forward for some ms, then backward twice as long."""
    at, layers, gradients = 0.0, {}, []
    for name, forward in layers_ms.items():
        middle, end = at + 1000 * forward, at + 3000 * forward
        layers[name.replace("_", "-", 1)] = spans((at, end))
        gradients.append((middle, end))
        at = end
    return ScopeTrace(source=source, layers=layers, gradients=spans(*gradients), rank=rank, steps_us=steps)


def names_and_times(estimate):
    return [(layer.name, layer.count, round(layer.forward_ms, 9)) for layer in estimate.model.layers]


def test_head_from_the_first_stage_tail_from_the_last_and_body_from_all():
    first = trace_of("first", **{"Emb": 3.0, "0_Dec": 10.0, "1_Dec": 12.0})
    last = trace_of("last", **{"2_Dec": 14.0, "Emb": 99.0, "Out": 5.0})
    estimate = model_from_scopes([last, first], WANTED, 1)
    # (10 + 12 + 14) / 3 = 12; what the last stage calls Emb is not the HEAD.
    assert names_and_times(estimate) == [("Emb", 1, 3.0), ("Dec", 3, 12.0), ("Out", 1, 5.0)]
    assert estimate.stages == (("first",), ("last",))
    assert estimate.measured[1].forward_ms == (10.0, 12.0, 14.0)
    assert estimate.model.bodies[0].backward_ms[0] == pytest.approx(24.0)


def test_traces_of_the_same_layers_are_of_one_stage():
    ranks = [trace_of(f"rank{rank}", rank=rank, **{"0_Dec": 10.0 + rank}) for rank in (0, 1)]
    last = trace_of("rank2", rank=2, **{"1_Dec": 20.0})
    estimate = model_from_scopes([last, *ranks], WANTED[1:2], 1)
    assert estimate.stages == (("rank0", "rank1"), ("rank2",))
    # Layer 0 took 10 and 11 ms, layer 1 took 20: the mean of 10.5 and 20.
    assert names_and_times(estimate) == [("Dec", 2, 15.25)]


def test_without_indices_the_rank_says_who_is_first():
    first, last = trace_of("b", rank=0, Emb=3.0, Dec=10.0), trace_of("a", rank=5, Dec=12.0, Out=5.0)
    assert model_from_scopes([last, first], WANTED, 1).stages == (("b",), ("a",))


def test_layers_can_be_kept_one_by_one():
    trace = trace_of(**{"10_Dec": 10.0, "9_Dec": 12.0})
    estimate = model_from_scopes([trace], WANTED[1:2], 1, per_layer=True)
    assert names_and_times(estimate) == [("9-Dec", 1, 12.0), ("10-Dec", 1, 10.0)]


def test_a_count_that_was_not_seen_is_said():
    estimate = model_from_scopes(
        [trace_of(**{"0_Dec": 10.0})], [Wanted(name="Dec", kind=LayerKind.BODY, count=80)], 1
    )
    assert names_and_times(estimate) == [("Dec", 80, 10.0)]
    assert "Dec: 1 of 80 layers seen; the others are taken for equal" in estimate.notes


def test_a_layer_that_is_nowhere_is_refused_with_where_it_was_looked_for():
    with pytest.raises(InputError) as caught:
        model_from_scopes([trace_of(**{"0_Dec": 10.0})], WANTED, 1)
    assert caught.value.faults == (
        "Emb is in no trace on the first stage",
        "Out is in no trace on the last stage",
    )


def test_without_gradients_the_backward_is_twice_the_forward_and_that_is_said():
    trace = ScopeTrace(source="x", layers={"0-Dec": spans((0, 5000))})
    estimate = model_from_scopes([trace], WANTED[1:2], 1)
    assert estimate.model.bodies[0].backward_ms[0] == 10.0
    assert "Dec: no backward was seen; it is taken for 2 x the forward" in estimate.notes


def test_a_forward_done_again_is_in_no_time_and_that_is_said():
    trace = ScopeTrace(
        source="x",
        layers={"0-Dec": spans((0, 9000))},
        gradients=spans((3000, 9000)),
        again=spans((3000, 5000)),
    )
    estimate = model_from_scopes([trace], WANTED[1:2], 1)
    layer = estimate.model.bodies[0]
    assert (layer.forward_ms, layer.backward_ms[0]) == (3.0, 4.0)
    assert "Dec: its forward was done again for 2 ms, which is left out" in estimate.notes


def test_the_first_two_steps_are_dropped_when_there_are_more():
    marks = (0.0, 10.0, 20.0, 30.0, 40.0)
    assert kept_steps(ScopeTrace(source="x", layers={}, steps_us=marks))[0].tolist() == [20, 30, 40]
    assert kept_steps(ScopeTrace(source="x", layers={}, steps_us=marks[:3]))[0].tolist() == [0, 10, 20]
    assert kept_steps(ScopeTrace(source="x", layers={}))[1] == 0


def test_spans_that_overlap_count_once():
    trace = ScopeTrace(source="x", layers={"0-Dec": spans((0, 3000), (2000, 4000), (9000, 10_000))})
    (times,) = layer_times(trace, 1)
    assert times.forward_ms.tolist() == [5.0]


@pytest.mark.parametrize("block", [1, 2, 50_000])
def test_the_work_inside_spans_is_that_of_a_plain_count(block, monkeypatch):
    monkeypatch.setattr(scope_times, "_SPANS_A_BLOCK", block)
    # Everything on whole microseconds, so that a loop over each of them is the judge.
    rng = np.random.default_rng(5)

    def random_spans(count):
        start = rng.integers(0, 300, count)
        return spans(*np.stack([start, start + rng.integers(1, 40, count)], axis=1).tolist())

    def covers(some, at):
        return any(a <= at < b for a, b in zip(some.start_us, some.end_us, strict=True))

    for _ in range(40):
        trace = ScopeTrace(
            source="x",
            layers={"0-Dec": random_spans(4)},
            gradients=random_spans(3),
            again=random_spans(2),
            busy=random_spans(6) if rng.random() < 0.7 else None,
        )
        (times,) = layer_times(trace, 1)
        working = [
            at
            for at in range(400)
            if covers(trace.layers["0-Dec"], at) and (trace.busy is None or covers(trace.busy, at))
        ]
        again = [at for at in working if covers(trace.again, at)]
        backward = [at for at in working if covers(trace.gradients, at) and at not in again]
        counted = (len(working) - len(again) - len(backward), len(backward), len(again))
        measured = (times.forward_ms, times.backward_ms, times.again_ms)
        assert [round(float(part[0]) * 1000, 6) for part in measured] == list(counted)


class TestPyTorchsModules:
    """Layers are counted from 0 on every rank, so that an index tells no stage."""

    def traces(self):
        return [
            ScopeTrace(
                source=f"rank{rank}",
                rank=rank,
                layers={name: spans((0, 1000 * ms)) for name, ms in layers.items()},
                backwards={name: spans((50_000, 50_000 + 2000 * ms)) for name, ms in layers.items()},
            )
            for rank, layers in ((9, {"Dec_0": 12, "Out": 5, "Emb": 99}), (0, {"Emb": 3, "Dec_0": 10}))
        ]

    def test_the_rank_tells_the_stage(self):
        wanted = [WANTED[0], Wanted(name="Dec", kind=LayerKind.BODY, count=20), WANTED[2]]
        estimate = model_from_scopes(self.traces(), wanted, 1)
        assert estimate.stages == (("rank0",), ("rank9",))
        assert names_and_times(estimate) == [("Emb", 1, 3.0), ("Dec", 20, 11.0), ("Out", 1, 5.0)]

    def test_a_count_is_needed(self):
        with pytest.raises(InputError, match=r"Dec must be given with a count, as NAME:COUNT"):
            model_from_scopes(self.traces(), WANTED, 1)

    def test_layers_can_not_be_kept_apart(self):
        with pytest.raises(InputError, match="can not tell which layer is which"):
            model_from_scopes(self.traces(), WANTED, 1, per_layer=True)
