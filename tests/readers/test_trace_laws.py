"""Whatever a trace holds, it is read or refused in words; nothing else happens."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind
from sapp_ppb.errors import InputError
from sapp_ppb.estimation import Wanted, cells_of_split, model_from_ops, model_from_scopes
from sapp_ppb.readers.measurements.trace_file import read_trace

ODD = st.sampled_from(
    [None, True, 0, -1, 2.5, 1e300, float("nan"), "", "x", [1], {"a": 1}, "1736405443881410.320\t", 10**30]
)
NAMES = st.sampled_from(
    [
        *("0-Dec", "1-Dec", "Dec_1", "nn.Module: Dec_2", "\x1b[2J-Dec", "Gradients", "recompute_Default"),
        *("net/0-Dec/Mul-op1", "net/Gradients/1-Dec/Mul-op2", "Mul-op3", "Receive-op4", "process_name"),
        *("PP:0F0", "PP:1B0", "0F1", "ProfilerStep#1", "autograd::engine::evaluate_function: X"),
    ]
)
CATEGORIES = st.sampled_from(["kernel", "cuda_runtime", "user_annotation", "cpu_op", "python_function", "F"])
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "correlation": st.integers(0, 3) | ODD,
        "Sequence number": st.integers(-1, 2) | ODD,
        "Fwd thread id": st.integers(0, 1) | ODD,
        "name": st.sampled_from(["Scope Layer", "Ascend Hardware", "HCCL"]) | ODD,
        "start_ms": st.floats(0, 9) | ODD,
        "end_ms": st.floats(0, 9) | ODD,
    },
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "X", "X", "M", "B"]) | ODD,
        "name": NAMES | ODD,
        "ts": st.integers(0, 1000) | ODD,
        "dur": st.integers(0, 500) | ODD,
        "pid": st.integers(1, 3) | ODD,
        "tid": st.integers(0, 1) | ODD,
        "cat": CATEGORIES | ODD,
        "args": ARGUMENTS | ODD,
    },
)


@given(st.lists(EVENTS | ODD, max_size=12), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_trace_is_read_or_refused(tmp_path, events, per_layer):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    try:
        content = read_trace(path, ["Dec"])
        if content.scopes is not None:
            wanted = [Wanted(name="Dec", kind=LayerKind.BODY)]
            model_from_scopes([content.scopes] * 2, wanted, 2, per_layer=per_layer)
        if content.ops is not None:
            model_from_ops([content.ops], [cells_of_split("--split", "2,3", "Dec")])
    except InputError as error:
        refusal = error
    else:
        return
    assert str(refusal)
