"""What each sort of trace says of layers and ops, on real files and on small ones."""

import json
from pathlib import Path

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.estimation.scope_times import layer_times
from sapp_ppb.readers.measurements.trace_file import read_trace, trace_files

DATA = Path(__file__).parents[2] / "data" / "traces"


def span(name, ts, dur, pid=1, tid=0, **more):
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, **more}


def process(pid, name):
    return {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}


def written(tmp_path, events, name="trace.json"):
    path = tmp_path / name
    path.write_text(json.dumps(events), encoding="utf-8")
    return path


def scopes_of(path, names):
    found = read_trace(path, names).scopes
    assert found is not None
    return found


def ops_of(path):
    found = read_trace(path, []).ops
    assert found is not None
    return dict(found.times_ms)


def times_of(trace, micro_batches=1):
    return {
        times.name: (times.forward_ms.tolist(), times.backward_ms.tolist(), times.again_ms.tolist())
        for times in layer_times(trace, micro_batches)
    }


class TestScopes:
    EVENTS = (
        # Layer 3 runs forward, waits for its neighbour from 4 to 9 ms inside one span, and runs backward.
        span("3-Dec", "1000.000", 11_000, pid=77, tid=4),
        span("Gradients", "10000.000", 2000, pid=77, tid=5),
        span("Mul-op1", "1000.000", 3000, pid=5),
        span("Receive-op2", "4000.000", 5000, pid=5),
        span("MulGrad-op3", "10000.000", 2000, pid=5),
        span("python", "1000.000", 11_000, pid=6),
    )
    NAMES = (process(77, "Scope Layer"), process(5, "Ascend Hardware"), process(6, "Python"))

    @pytest.mark.parametrize("where", [0, 3, len(EVENTS)])
    def test_the_process_is_found_in_any_position(self, tmp_path, where):
        events = [*self.EVENTS[:where], *self.NAMES, *self.EVENTS[where:]]
        content = read_trace(written(tmp_path, events), ["Dec"])
        assert times_of(content.scopes) == {"3-Dec": ([3.0], [2.0], [0.0])}
        assert content.notes == ()

    def test_without_ops_of_the_device_spans_count_whole_and_that_is_said(self, tmp_path):
        content = read_trace(written(tmp_path, [self.NAMES[0], *self.EVENTS[:2]]), ["Dec"])
        # 11 ms in all, of which the gradients take 2
        assert times_of(content.scopes) == {"3-Dec": ([9.0], [2.0], [0.0])}
        assert content.notes == ("no process of the device: spans count whole, with the waiting inside them",)

    def test_a_forward_done_again_is_kept_apart(self, tmp_path):
        events = [
            process(1, "Scope Layer rank0"),
            span("3-Dec", 0, 4000, tid=2),
            span("recompute_Default", 1000, 1000, tid=0),
            span("Gradients", 2000, 2000, tid=1),
        ]
        assert times_of(read_trace(written(tmp_path, events), ["Dec"]).scopes) == {
            "3-Dec": ([1.0], [2.0], [1.0])
        }

    def test_paths_are_read_where_there_is_no_such_process(self, tmp_path):
        events = [
            span("Default/net/3-Dec/Mul-op1", 0, 1000),
            span("Default/net/3-Dec/Gradients/Mul-op2", 1000, 3000),
            span("Default/net/4-Dec/Mul-op3", 4000, 500),
        ]
        assert times_of(read_trace(written(tmp_path, events), ["Dec"]).scopes) == {
            "3-Dec": ([1.0], [3.0], [0.0]),
            "4-Dec": ([0.5], [0.0], [0.0]),
        }

    def test_steps_are_told_by_an_op_that_comes_once_a_step_and_the_first_two_are_dropped(self, tmp_path):
        events = []
        for step, lasts in enumerate((9000, 7000, 1000, 2000)):
            start = 10_000 * step
            events += [span("First-op9", start, 10, pid=5), span("3-Dec", start, lasts, pid=3)]
            events += [span("Mul-op1", start, lasts, pid=5)]
        content = read_trace(
            written(tmp_path, [process(3, "Scope Layer"), *self.NAMES[1:2], *events]), ["Dec"]
        )
        # Two micro-batches: half of 1 ms in step 2 and half of 2 ms in step 3.
        assert times_of(content.scopes, 2)["3-Dec"][0] == [0.5, 1.0]

    def test_names_that_look_like_layers_are_counted(self, tmp_path):
        content = read_trace(written(tmp_path, self.EVENTS), ["Nothing"])
        assert content.scopes is None
        assert dict(content.names) == {"Dec": 1}

    def test_spans_without_a_usable_time_are_counted(self, tmp_path):
        events = [*self.NAMES, *self.EVENTS, span("4-Dec", "1.7364E+15", 5, pid=77)]
        content = read_trace(written(tmp_path, events), ["Dec"])
        assert content.notes == ("1 spans have no usable time and are left out",)


class TestKineto:
    def test_a_span_costs_what_the_kernels_that_it_launches_take(self, tmp_path):
        events = [
            # 50 ms on the CPU, and two kernels of 3 and 4 ms that run at once for 1 ms.
            span("Block_0", 0, 50_000, tid=9, cat="user_annotation"),
            span("cudaLaunchKernel", 10, 5, tid=9, cat="cuda_runtime", args={"correlation": 1}),
            span("cudaLaunchKernel", 20, 5, tid=9, cat="cuda_runtime", args={"correlation": 2}),
            span("cudaLaunchKernel", 20, 5, tid=8, cat="cuda_runtime", args={"correlation": 3}),
            span("gemm", 60_000, 3000, pid=0, cat="kernel", args={"correlation": 1}),
            span("norm", 62_000, 4000, pid=0, cat="kernel", args={"correlation": 2}),
            span("of another thread", 70_000, 9000, pid=0, cat="kernel", args={"correlation": 3}),
        ]
        assert times_of(read_trace(written(tmp_path, events), ["Block"]).scopes) == {
            "Block_0": ([6.0], [0.0], [0.0])
        }

    def test_the_backward_is_found_by_the_sequence_numbers_of_the_forward(self, tmp_path):
        numbered = {"Sequence number": 41, "Fwd thread id": 0}
        events = [
            span("nn.Module: Block_7", 0, 100, tid=9, cat="python_function"),
            span("aten::mm", 10, 20, tid=9, cat="cpu_op", args=numbered),
            span("launch", 12, 1, tid=9, cat="cuda_runtime", args={"correlation": 1}),
            span(
                "autograd::engine::evaluate_function: MmBackward0",
                500,
                50,
                tid=4,
                cat="cpu_op",
                args={"Sequence number": 41, "Fwd thread id": 1},
            ),
            span("launch", 510, 1, tid=4, cat="cuda_driver", args={"correlation": 2}),
            span("gemm", 1000, 1000, pid=0, cat="kernel", args={"correlation": 1}),
            span("gemm", 3000, 2500, pid=0, cat="kernel", args={"correlation": 2}),
        ]
        assert times_of(read_trace(written(tmp_path, events), ["Block"]).scopes) == {
            "nn.Module: Block_7": ([1.0], [2.5], [0.0])
        }

    def test_arrows_of_torch_npu_lead_to_kernels(self, tmp_path):
        arrow = {"cat": "async_npu", "name": "torch_to_npu", "id": 7}
        events = [
            process(5, "Ascend Hardware"),
            span("Block_0", "100.000", 50, tid=9, cat="user_annotation"),
            span("MatMul", "900.125", 3000, pid=5),
            {"ph": "s", "pid": 1, "tid": 9, "ts": "120.000", **arrow},
            {"ph": "f", "pid": 5, "tid": 2, "ts": "900.125", **arrow},
        ]
        assert times_of(read_trace(written(tmp_path, events), ["Block"]).scopes) == {
            "Block_0": ([3.0], [0.0], [0.0])
        }

    def test_messages_to_neighbours_are_no_cost_of_an_op(self, tmp_path):
        events = [
            span("PP:2F0", 0, 100, tid=9, cat="user_annotation"),
            span("launch", 1, 1, tid=9, cat="cuda_runtime", args={"correlation": 1}),
            span("launch", 2, 1, tid=9, cat="cuda_runtime", args={"correlation": 2}),
            span("ncclDevKernel_SendRecv", 0, 9000, pid=0, cat="kernel", args={"correlation": 1}),
            span("gemm", 9000, 1500, pid=0, cat="kernel", args={"correlation": 2}),
        ]
        assert ops_of(written(tmp_path, events)) == {(2, "F"): (1.5,)}

    def test_ops_without_kernels_count_as_they_stand_and_that_is_said(self, tmp_path):
        events = [
            span("PP:0F0", 0, 2000, cat="user_annotation"),
            span("PP:0B0", 2000, 4500.5, cat="user_annotation"),
        ]
        content = read_trace(written(tmp_path, events), [])
        assert ops_of(written(tmp_path, events)) == {(0, "B"): (4.5005,), (0, "F"): (2.0,)}
        assert content.notes[0].startswith("no kernels: the spans of the ops count as they stand")

    def test_the_rank_comes_from_the_file_or_from_its_name(self, tmp_path):
        layer = [span("net/0-Dec/Mul-op1", 0, 1)]
        document = {"traceEvents": layer, "distributedInfo": {"rank": 3}}
        assert scopes_of(written(tmp_path, document), ["Dec"]).rank == 3
        assert scopes_of(written(tmp_path, layer, "rank-12.json"), ["Dec"]).rank == 12
        assert scopes_of(written(tmp_path, layer, "trace_view7.json"), ["Dec"]).rank == 7
        assert scopes_of(written(tmp_path, layer, "trace.json"), ["Dec"]).rank is None
        output = tmp_path / "worker_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output.parent / "profiler_info_5.json").touch()
        assert scopes_of(written(output, layer, "trace_view.json"), ["Dec"]).rank == 5
        (output.parent / "profiler_info_6.json").touch()  # of whom the trace is can not be told then
        assert scopes_of(written(output, layer, "trace_view.json"), ["Dec"]).rank is None


class TestRealFiles:
    def test_mindspore_scope_layers(self):
        # By a plain double loop over spans and ops: 50 ops in the spans of b-ResidualBlock, those inside
        # Gradients 163.70 us together and the others 366.75 us; head-Head 92 ops, 546.94 and 1091.85 us.
        content = read_trace(
            DATA / "derived_scope_layer_trace_device0.json.gz", ["b-ResidualBlock", "head-Head"]
        )
        times = times_of(content.scopes)
        assert times["b-ResidualBlock"][0] == pytest.approx([0.36675], rel=1e-6)
        assert times["b-ResidualBlock"][1] == pytest.approx([0.16370], rel=1e-6)
        assert times["head-Head"][0] == pytest.approx([1.09185], rel=1e-6)
        assert times["head-Head"][1] == pytest.approx([0.54694], rel=1e-6)

    def test_msprof_with_paths(self):
        # conv3-Conv2d: ops of 5.5 + 30.68 + 1.62 us, and 30.07 + 135.45 us under Gradients.
        content = read_trace(DATA / "msprof_0_2_1.json.gz", ["conv3-Conv2d"])
        assert times_of(content.scopes)["conv3-Conv2d"] == (
            pytest.approx([0.0378], rel=1e-6),
            pytest.approx([0.16552], rel=1e-6),
            [0.0],
        )
        assert (
            len(scopes_of(DATA / "msprof_0_2_1.json.gz", ["conv3-Conv2d"]).steps_us) == 2
        )  # one Iteration: where it begins and ends

    def test_a_trace_view_without_scopes_says_which_modules_there_are(self):
        content = read_trace(DATA / "trace_view.json.gz", ["DecodeLayer"])
        assert (content.scopes, content.ops) == (None, None)
        assert {"Conv2d", "Linear", "ReLU"} <= set(content.names)

    def test_a_trace_view_of_torch_npu_by_its_modules(self):
        # By a plain loop over the arrows: Linear_1 launches one MatMul of 129.0425625 us, and its
        # AddmmBackward0 two of 44.80090625 and 30.640625 us and two MemSets of 10.66021875 and 24.8405.
        content = read_trace(DATA / "trace_view.json.gz", ["Linear"])
        forward, backward, _ = times_of(content.scopes)["nn.Module: Linear_1"]
        assert forward == pytest.approx([0.1290425625], rel=1e-6)
        assert backward == pytest.approx([0.11094225], rel=1e-6)

    def test_kineto_of_pytorch(self):
        # By a plain loop: each encoder span launches 1102 + 1966 us on one thread and 1352 on
        # the other in the first step, 1103 + 1963 and 1378 us in the second.
        content = read_trace(DATA / "sampled_rank-0.json.gz", ["## encoder fp8 None ##"])
        assert times_of(content.scopes)["## encoder fp8 None ##"][0] == [4.42, 4.444]
        assert content.scopes is not None
        assert content.scopes.rank == 0

    def test_kineto_of_rocm_with_float_times(self):
        content = read_trace(DATA / "mi250_minitoy_train_ROCm6_2_kineto.json.gz", ["Optimizer.step#SGD.step"])
        # One kernel of 8.481 us.
        assert times_of(content.scopes)["Optimizer.step#SGD.step"][0] == pytest.approx([0.008481], rel=1e-4)

    @pytest.mark.parametrize("name", [path.name for path in sorted(DATA.glob("*.gz"))])
    def test_a_copy_that_is_cut_is_refused(self, name, tmp_path):
        content = (DATA / name).read_bytes()
        path = tmp_path / name
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(InputError, match="the gzip file is broken"):
            read_trace(path, ["Dec"])


class TestFiles:
    def test_a_folder_gives_its_traces_and_not_what_lies_beside_them(self, tmp_path):
        for name in (
            "b/trace_view.json",
            "a/trace_view.json",
            "a/communication.json",
            "c.json.gz",
            "notes.txt",
        ):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
        assert [str(path.relative_to(tmp_path)) for path in trace_files([tmp_path])] == [
            "a/trace_view.json",
            "b/trace_view.json",
            "c.json.gz",
        ]

    def test_a_folder_without_traces_is_refused(self, tmp_path):
        with pytest.raises(InputError, match="holds no trace"):
            trace_files([tmp_path])
