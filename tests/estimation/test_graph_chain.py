"""A chain out of a graph: real graphs by hand, small ones drawn, and laws of the cuts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind, Recompute
from sapp_ppb.costs.profiled import GraphNode, OperatorGraph
from sapp_ppb.errors import InputError
from sapp_ppb.estimation import chain_of_graph, model_from_graph
from sapp_ppb.readers.measurements.pipedream_graph import read_operator_graph

DATA = Path(__file__).parents[1] / "data" / "profiles" / "pipedream"


def node(name, ms=1.0, operator="Add", mb=1.0):
    return GraphNode(
        name=name, operator=operator, forward_ms=ms, backward_ms=2 * ms, activation_mb=mb, parameter_mb=mb
    )


def graph(edges, names=None, **special):
    """Build a graph of edges such as ``"ab ac"``; operators in the order of the alphabet."""
    names = sorted(set("".join(edges.split()))) if names is None else names
    inputs = [sorted(names.index(a) for a, b in edges.split() if b == name) for name in names]
    nodes = tuple(special.get(name, node(name)) for name in names)
    return OperatorGraph(source="g.txt", nodes=nodes, inputs=tuple(map(tuple, inputs)))


def parts(drawn):
    return ["".join(drawn.nodes[at].name for at in group) for group in chain_of_graph(drawn)]


class TestTheRealGraphs:
    def test_vgg_16_is_a_chain_but_for_one_branch(self):
        model = model_from_graph(read_operator_graph(DATA / "vgg16_graph.txt"), name="vgg")
        # 41 operators; Input is none; Size (33) branches off between MaxPool (32) and View (34), which
        # take no time and stay with MaxPool; the dropouts 37 and 40 take none and stay with 36 and 39.
        assert len(model.layers) == 41 - 1 - 2 - 2
        assert all(layer.kind is LayerKind.BODY and layer.count == 1 for layer in model.layers)
        names = [layer.name for layer in model.layers]
        assert names[:3] == ["node2 Conv2d", "node3 ReLU", "node4 Conv2d"]
        assert names[-6:] == [
            "node32-node34 MaxPool2d",
            "node35 Linear",
            "node36-node37 ReLU",
            "node38 Linear",
            "node39-node40 ReLU",
            "node41 Linear",
        ]
        linear = model.layers[-5]
        assert (linear.forward_ms, linear.backward_ms[Recompute.NONE]) == (2.475, 4.575)
        # 411058176 bytes of weights are 392.015625 MB; with gradients and Adam's state four times that.
        assert linear.parameter_mb == 4 * 411058176 / 2**20 == 1568.0625
        # 12845056 + 4 + 12845056 bytes of 32, 33 and 34.
        assert model.layers[-6].activation(Recompute.NONE) == 25690116 / 2**20
        assert model.layers[-6].considered == (Recompute.NONE,)

    def test_all_of_vgg_16_but_its_input_is_in_the_chain(self):
        drawn = read_operator_graph(DATA / "vgg16_graph.txt")
        model = model_from_graph(drawn, name="vgg")
        forward = sum(node.forward_ms for node in drawn.nodes) - 17.972  # of Input, which loads the data
        assert model.total_forward_ms == pytest.approx(forward)
        assert model.total_parameter_mb == pytest.approx(4 * 138_357_544 * 4 / 2**20)

    def test_gnmt_is_cut_where_one_output_crosses(self):
        drawn = read_operator_graph(DATA / "gnmt_graph.txt")
        model = model_from_graph(drawn, name="gnmt")
        # The encoder is a chain, of which two residual sums (10 to 14, 15 to 19) are not cut, nor is the
        # decoder from 24 on, for it uses the context (26) to its end.
        assert [layer.name for layer in model.layers] == [
            "node4 Embedding",
            "node5 EmuBidirLSTM",
            "node6 Dropout",
            "node7-node8 LSTM",
            "node10-node14 LSTM",
            "node15-node19 LSTM",
            "node21-node23 RecurrentAttention",
            "node24-node47 LSTM",
            "node48 Classifier",
        ]
        decoder = model.layers[7]
        # Operators 28, 31, 34, 37, 41 and 44, the others take none.
        assert decoder.forward_ms == pytest.approx(0.058 + 3.151 + 0.061 + 3.145 + 0.055 + 3.149)
        assert decoder.backward_ms[0] == pytest.approx(0.176 + 5.288 + 0.174 + 5.306 + 0.198 + 15.883)
        assert decoder.parameter_mb == pytest.approx(4 * 3 * 50364416 / 2**20)
        # 6160384 bytes of 24, 28, 29, 31, 32, 34, 35, 37, 38, 40, 41, 42, 44, 45 and 47; 131072 of 26, 33, 39
        # and 46, and twice of 31, 37 and 44.  25 and 27 lead nowhere and stay with 23, their last input.
        held = 15 * 6160384 + 10 * 131072
        assert decoder.activation(Recompute.NONE) == pytest.approx(held / 2**20, rel=1e-9)


class TestCuts:
    def test_a_skip_is_not_cut(self):
        assert parts(graph("ab bc bd cd de")) == ["a", "b", "cd", "e"]

    def test_the_longest_way_comes_first(self):
        # x and y lead into d beside a, b, c: they stand just before d, with which they are one layer.
        assert parts(graph("ab bc cd xd yd de")) == ["a", "b", "c", "xyd", "e"]

    def test_what_leads_nowhere_stays_with_its_last_input(self):
        assert parts(graph("ab bc cd ax xy xz")) == ["axyz", "b", "c", "d"]

    def test_what_leads_nowhere_counts_where_it_crosses(self):
        # x needs a and c, so that b's output is not all that crosses from b to c.
        assert parts(graph("ab bc cd ax cx")) == ["a", "bcx", "d"]

    def test_what_only_a_dead_end_needs_stays_with_it(self):
        assert parts(graph("ab bc cd bx sx")) == ["a", "bsx", "c", "d"]

    def test_all_time_may_be_in_dead_ends(self):
        untimed = {name: node(name, ms=0.0) for name in "abc"}
        assert parts(graph("ab bc ax", **untimed)) == ["axbc"]

    def test_an_input_stands_before_the_chain_wherever_it_is_used(self):
        drawn = graph("ia ab bc ic", i=node("i", ms=20.0, operator="Input0"))
        assert parts(drawn) == ["a", "b", "c"]

    def test_what_costs_nothing_and_comes_from_nothing_is_left_out(self):
        free = {name: node(name, ms=0.0, mb=0.0) for name in "hk"}
        assert parts(graph("ab bc cd hk hb kd", **free)) == ["a", "b", "c", "d"]

    def test_what_takes_no_time_stays_with_those_before_it(self):
        untimed = {name: node(name, ms=0.0) for name in "acd"}
        assert parts(graph("ab bc cd de", **untimed)) == ["abcd", "e"]

    def test_the_order_of_the_file_does_not_matter_in_a_chain(self):
        assert parts(graph("ab bc cd", names=list("dbca"))) == ["a", "b", "c", "d"]

    def test_long_chains_are_no_depth(self):
        many = OperatorGraph(
            source="g",
            nodes=tuple(node(f"n{at}") for at in range(5000)),
            inputs=((), *((at,) for at in range(4999))),
        )
        assert len(chain_of_graph(many)) == 5000


class TestRefusals:
    def test_operators_that_no_edge_joins(self):
        with pytest.raises(InputError, match=r"no edges join x, y with c; is the file cut off\?"):
            chain_of_graph(graph("ab bc xy"))

    def test_a_graph_that_takes_no_time(self):
        free = {name: node(name, ms=0.0) for name in "ab"}
        with pytest.raises(InputError, match="no operator takes forward time"):
            chain_of_graph(graph("ab", **free))

    @pytest.mark.parametrize("number", [0.5, -1.0, float("nan"), float("inf")])
    def test_states_that_are_less_than_the_weights(self, number):
        with pytest.raises(InputError, match="--states-per-parameter: must be a number of at least 1"):
            model_from_graph(graph("ab"), name="m", states_per_parameter=number)


@st.composite
def graphs(draw):
    """Graphs in which every operator but the first has an input, or leads into the last."""
    size = draw(st.integers(1, 12))
    inputs = [()]
    for at in range(1, size):
        inputs.append(tuple(sorted(draw(st.sets(st.integers(0, at - 1), min_size=1, max_size=3)))))
    nodes = tuple(node(f"n{at}", ms=draw(st.sampled_from([0.0, 1.0, 2.5]))) for at in range(size - 1))
    return OperatorGraph(source="g", nodes=(*nodes, node("last")), inputs=tuple(inputs))


@given(graphs())
def test_every_operator_is_in_one_layer_behind_its_inputs(drawn):
    groups = chain_of_graph(drawn)
    where = {at: number for number, group in enumerate(groups) for at in group}
    assert sorted(where) == list(range(len(drawn.nodes))) == sorted(sum(groups, ()))
    assert all(where[before] <= where[at] for at, known in enumerate(drawn.inputs) for before in known)
    assert all(sum(drawn.nodes[at].forward_ms for at in group) > 0 for group in groups)


@given(graphs())
def test_one_output_crosses_each_cut(drawn):
    groups = chain_of_graph(drawn)
    where = {at: number for number, group in enumerate(groups) for at in group}
    for cut in range(len(groups) - 1):
        crossing = {
            before
            for at, known in enumerate(drawn.inputs)
            for before in known
            if where[before] <= cut < where[at]
        }
        assert len(crossing) == 1


@given(graphs())
def test_no_time_and_no_memory_is_lost(drawn):
    model = model_from_graph(drawn, name="m", states_per_parameter=3.0)
    assert model.total_forward_ms == pytest.approx(sum(node.forward_ms for node in drawn.nodes))
    assert model.total_backward_ms == pytest.approx(sum(node.backward_ms for node in drawn.nodes))
    assert model.total_parameter_mb == pytest.approx(3.0 * len(drawn.nodes))
    held = sum(layer.activation(Recompute.NONE) for layer in model.layers)
    assert held == pytest.approx(len(drawn.nodes))
