"""PipeDream's graph.txt: what is read of the real ones, and the line of what is refused."""

from pathlib import Path

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.readers.measurements.pipedream_graph import read_operator_graph

DATA = Path(__file__).parents[2] / "data" / "profiles" / "pipedream"


def line(name, forward="1.0", backward="2.0", activation="1048576.0", parameter="0.000", operator="Add"):
    return (
        f"{name} -- {operator} -- forward_compute_time={forward}, backward_compute_time={backward}, "
        f"activation_size={activation}, parameter_size={parameter}\n"
    )


def graph_of(tmp_path, text):
    path = tmp_path / "graph.txt"
    path.write_bytes(text.encode())
    return read_operator_graph(path)


def refusal(tmp_path, text):
    with pytest.raises(InputError) as caught:
        graph_of(tmp_path, text)
    return caught.value.faults


def test_vgg_16():
    graph = read_operator_graph(DATA / "vgg16_graph.txt")
    nodes = {node.name: node for node in graph.nodes}
    assert len(graph.nodes) == 41
    conv = nodes["node4"]
    assert conv.operator == "Conv2d(64, 64, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))"
    assert (conv.forward_ms, conv.backward_ms) == (46.201, 113.33)
    # 128 images x 64 channels x 224^2, 4 bytes each: 1644167168 bytes, and / 2^20 it is 1568 MB.
    assert conv.activation_mb == 128 * 64 * 224**2 * 4 / 2**20 == 1568.0
    # VGG-16 has 138,357,544 parameters (Simonyan and Zisserman, arXiv:1409.1556, as torchvision has it).
    assert sum(node.parameter_mb for node in graph.nodes) == 138_357_544 * 4 / 2**20
    users = [graph.nodes[at].name for at, known in enumerate(graph.inputs) for _ in known]
    assert users.count("node34") == 2
    assert graph.inputs[[*nodes].index("node1")] == ()


def test_gnmt_has_outputs_of_several_parts():
    graph = read_operator_graph(DATA / "gnmt_graph.txt")
    nodes = {node.name: node for node in graph.nodes}
    # [6160384.0; 131072.0; 131072.0; 6160384.0; 288768.0]
    assert nodes["node23"].activation_mb == (2 * 6160384 + 2 * 131072 + 288768) / 2**20
    assert nodes["node23"].operator.startswith("RecurrentAttention(  (rnn): LSTM(1024, 1024)")
    assert sum(len(known) for known in graph.inputs) == 58  # lines that begin with a tab


def test_ends_of_lines_marks_blank_lines_and_stages_do_no_harm(tmp_path):
    text = "\ufeff" + line("a").strip() + " -- stage_id=0\r\n\r\n" + line("b") + "\n  a -- b  \n\n"
    assert graph_of(tmp_path, text).inputs == ((), (0,))


def test_an_edge_without_its_tab_is_one_where_its_operators_are_known(tmp_path):
    assert graph_of(tmp_path, line("a") + line("b") + "a -- b\n").inputs == ((), (0,))


def test_an_edge_may_come_before_its_operators_and_twice(tmp_path):
    assert graph_of(tmp_path, "\ta -- b\n\ta -- b\n" + line("b") + line("a")).inputs == ((1,), ())


def test_a_description_may_hold_the_separator(tmp_path):
    assert graph_of(tmp_path, line("a", operator="f(x -- y, z=1)")).nodes[0].operator == "f(x -- y, z=1)"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (line("b", forward="nan"), "forward_compute_time must be a number of at least 0 (got 'nan')"),
        (line("b", backward="-2.0"), "backward_compute_time must be a number of at least 0 (got -2.0)"),
        (line("b", activation="[1.0; x]"), "activation_size must be a number of at least 0 (got 'x')"),
        (
            line("b", activation="[1.0; 2.0"),
            "activation_size must be a number of at least 0 (got '[1.0; 2.0')",
        ),
        (line("b", parameter="1e999"), "parameter_size must be a number of at least 0 (got inf)"),
        (
            line("b", parameter="505.02"),  # MB for bytes
            "parameter_size must be a whole number of bytes (got '505.02'); check the unit",
        ),
        (
            line("b", activation="1e14"),
            "activation_size must be at most 1e+13 bytes (got '1e14'); check the unit",
        ),
        (line("a"), "'a' stands there twice; its first line is the one to keep"),
        (
            "\ta -- c\n",
            "the edge a -- c names 'c', which no line describes; give its line, or take the edge out",
        ),
        ("\ta -- \n", "an edge must be NAME -- NAME (got 'a --')"),
        ("\ta -- b -- c\n", "an edge must be NAME -- NAME (got 'a -- b -- c')"),
        ("\ta -- a\n", "the edge closes a circle, a -- a; operators must not wait for themselves"),
    ],
)
def test_a_fault_is_said_with_its_line(bad, said, tmp_path):
    assert refusal(tmp_path, line("a") + "\n" + bad) == (f"line 3: {said}",)


def test_a_line_that_is_cut_off(tmp_path):
    (said,) = refusal(tmp_path, line("a") + line("b")[:40])
    assert said.startswith("line 2: must be NAME -- OPERATOR -- forward_compute_time=MS, ")
    assert said.endswith("is it cut off?")


def test_a_circle_is_named_with_the_edge_that_closes_it(tmp_path):
    edges = "\ta -- b\n\tb -- c\n\td -- b\n\tc -- d\n\td -- e\n"
    # a feeds the circle and e is fed by it; neither is part of it.  Its last edge is on line 9.
    (said,) = refusal(tmp_path, "".join(map(line, "abcde")) + edges)
    assert (
        said == "line 9: the edge closes a circle, d -- b -- c -- d; operators must not wait for themselves"
    )


def test_every_fault_is_named_at_once_and_many_are_counted(tmp_path):
    text = line("a", forward="x", parameter="y") + "\ta -- q\n"
    assert [said.split(":")[0] for said in refusal(tmp_path, text)] == ["line 1", "line 1", "line 2"]
    said = refusal(tmp_path, "hello\n" * 100)
    assert (len(said), said[-1]) == (21, "and 80 more faults")


def test_a_graph_of_edges_alone_and_other_files(tmp_path):
    assert len(refusal(tmp_path, "\ta -- b\n")) == 3  # no operator, and two ends that are none
    path = tmp_path / "latin.txt"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8"):
        read_operator_graph(path)
