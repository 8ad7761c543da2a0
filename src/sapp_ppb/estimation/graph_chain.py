"""
A chain of layers out of a graph of operators.

The operators are put into an order in which each comes behind its inputs; the input with
the longest way behind it comes first, so that an operator without inputs stands just
before the first that uses it.  A cut is made between two neighbours where all that is
still needed later is the output of one operator.  What lies between two cuts is a layer.
"""

import re
from collections import Counter
from collections.abc import Sequence

from sapp_ppb.costs import Layer, LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.costs.checks import listed, number_fault
from sapp_ppb.costs.profiled import GraphNode, OperatorGraph
from sapp_ppb.errors import InputError

STATES_PER_PARAMETER = 4.0  # weights, gradients and the two moments of Adam, each as wide as the weights
_OPERATOR = re.compile(r"\w[\w.]*")


def model_from_graph(
    graph: OperatorGraph, *, name: str, states_per_parameter: float = STATES_PER_PARAMETER
) -> Model:
    """
    Model whose BODY layers are the operators between two cuts of a graph.

    Times, weights and outputs of a layer's operators are added; their outputs are what it
    keeps for its backward, and nothing is known of recompute.

    Parameters
    ----------
    graph
        Operators and their edges.
    name
        Name of the model.
    states_per_parameter
        Memory of the weights, their gradients and the optimizer's state, in units of the
        memory of the weights.

    Raises
    ------
    InputError
        If no operator takes time, if some have no edge to the others, or if
        ``states_per_parameter`` is no number of at least 1.

    Examples
    --------
    >>> conv, add = (GraphNode(name=name, operator=name, forward_ms=2.0, backward_ms=3.0, activation_mb=8.0,
    ...              parameter_mb=1.0) for name in ("Conv2d", "Add"))
    >>> graph = OperatorGraph(source="g", nodes=(conv, add), inputs=((), (0,)))
    >>> [(layer.name, layer.forward_ms, layer.parameter_mb) for layer in model_from_graph(graph,
    ...  name="two").layers]
    [('Conv2d Conv2d', 2.0, 4.0), ('Add Add', 2.0, 4.0)]
    """
    fault = number_fault("states per parameter", states_per_parameter)
    if fault or states_per_parameter < 1:
        raise InputError(
            "--states-per-parameter", [f"must be a number of at least 1 (got {states_per_parameter})"]
        )
    used = {before for known in graph.inputs for before in known}
    layers = []
    for group in chain_of_graph(graph):
        ends = [graph.nodes[at].name for at in group if at in used] or [graph.nodes[group[0]].name]
        layers.append(_layer(ends, [graph.nodes[at] for at in group], states_per_parameter))
    return Model(name=name, layers=tuple(layers))


def chain_of_graph(graph: OperatorGraph) -> tuple[tuple[int, ...], ...]:
    """
    Operators of each layer of the chain, by their position in ``graph.nodes``.

    Left out is what stands before the chain: operators without inputs whose description
    begins with ``Input``, which bring the data, and operators that take no time, hold
    nothing and get nothing but from such.  An operator that leads nowhere stays with its
    last input.  A layer must take forward time: what takes none stays with the layer before
    it.

    Raises
    ------
    InputError
        As ``model_from_graph()``.

    Notes
    -----
    Linear in operators plus edges, but for sorting.

    Examples
    --------
    A branch: b and c take the output of a, and d adds them.  No cut separates the four
    but that behind a, whose output alone is used later.

    >>> node = GraphNode(name="n", operator="op", forward_ms=1.0, backward_ms=1.0, activation_mb=1.0,
    ...                  parameter_mb=0.0)
    >>> chain_of_graph(OperatorGraph(source="g", nodes=(node,) * 4, inputs=((), (0,), (0,), (1, 2))))
    ((0,), (1, 2, 3))
    """
    inputs = _without_sources(graph)
    if not any(graph.nodes[at].forward_ms for at in inputs):
        raise InputError(graph.source, ["no operator takes forward time, but for those that bring the data"])
    depths = _depths(inputs)
    last = max(inputs, key=lambda at: (depths[at], -at))
    _check_joined(graph, inputs, last)
    chain = _order(inputs, depths, last)
    groups = _cut(inputs, _with_dead_ends(chain, inputs), frozenset(chain))
    return tuple(tuple(group) for group in _timed(graph, groups))


def _without_sources(graph: OperatorGraph) -> dict[int, tuple[int, ...]]:
    """Leave out what stands before the chain; the inputs of each operator that is kept."""
    kept: dict[int, tuple[int, ...]] = {}
    for at in _topological(dict(enumerate(graph.inputs))):
        node = graph.nodes[at]
        inside = tuple(before for before in graph.inputs[at] if before in kept)
        is_input = not graph.inputs[at] and node.operator.startswith("Input")
        if not (is_input or (node.is_free and not inside)):
            kept[at] = inside
    return kept


def _topological(inputs: dict[int, tuple[int, ...]]) -> list[int]:
    """Operators, each behind its inputs."""
    done: dict[int, None] = {}
    for root in inputs:
        _visit(root, inputs, done)
    return list(done)


def _visit(root: int, inputs: dict[int, tuple[int, ...]], done: dict[int, None]) -> list[int]:
    """Do an operator behind everything that it needs, in the order given; what was done for it."""
    visited: list[int] = []
    stack = [(root, iter(inputs[root]))] if root not in done else []
    while stack:
        at, rest = stack[-1]
        before = next((other for other in rest if other not in done), None)
        if before is None:
            stack.pop()
            if at not in done:
                done[at] = None
                visited.append(at)
        else:
            stack.append((before, iter(inputs[before])))
    return visited


def _depths(inputs: dict[int, tuple[int, ...]]) -> dict[int, int]:
    """Operators on the longest way that leads to each, itself included."""
    depths: dict[int, int] = {}
    for at in _topological(inputs):
        depths[at] = 1 + max((depths[before] for before in inputs[at]), default=0)
    return depths


def _order(inputs: dict[int, tuple[int, ...]], depths: dict[int, int], last: int) -> list[int]:
    """Operators that the last one needs, itself included, the longest ways first."""
    by_depth = {
        at: tuple(sorted(known, key=lambda before: (-depths[before], before))) for at, known in inputs.items()
    }
    done: dict[int, None] = {}
    _visit(last, by_depth, done)
    return list(done)


def _check_joined(graph: OperatorGraph, inputs: dict[int, tuple[int, ...]], last: int) -> None:
    """Refuse operators that no edge joins with the last one, in either direction."""
    joined: dict[int, list[int]] = {at: list(known) for at, known in inputs.items()}
    for at, known in inputs.items():
        for before in known:
            joined[before].append(at)
    seen, stack = {last}, [last]
    while stack:
        found = [other for other in joined[stack.pop()] if other not in seen]
        seen.update(found)
        stack += found
    apart = [graph.nodes[at].name for at in sorted(inputs) if at not in seen]
    if apart:
        end = graph.nodes[last].name
        raise InputError(graph.source, [f"no edges join {listed(apart, 8)} with {end}; is the file cut off?"])


def _with_dead_ends(chain: Sequence[int], inputs: dict[int, tuple[int, ...]]) -> list[int]:
    """Put what leads nowhere, and what only that needs, behind the last input that it has in the chain."""
    place = {at: index for index, at in enumerate(chain)}
    behind: list[list[int]] = [[] for _ in range(len(chain) + 1)]  # the last one for what has no such input
    users = Counter(before for known in inputs.values() for before in known)
    done = dict.fromkeys(chain)
    for end in (at for at in inputs if at not in place and not users[at]):
        branch = _visit(end, inputs, done)
        index = max((place.get(before, -1) for at in branch for before in inputs[at]), default=-1)
        place |= dict.fromkeys(branch, index)
        behind[index] += branch
    order = list(behind[-1])
    for index, at in enumerate(chain):
        order += [at, *behind[index]]
    return order


def _cut(inputs: dict[int, tuple[int, ...]], order: Sequence[int], chain: frozenset[int]) -> list[list[int]]:
    """Parts of an order between the places where a single output is all that crosses."""
    place = {at: index for index, at in enumerate(order)}
    last_use = list(range(len(order)))
    for index, at in enumerate(order):  # ascending, so that the last one stays
        for before in inputs[at]:
            last_use[place[before]] = index
    ending = Counter(last for index, last in enumerate(last_use) if last > index)
    groups: list[list[int]] = [[]]
    crossing = 0
    for index, at in enumerate(order):
        if crossing == 1 and at in chain:
            groups.append([])
        groups[-1].append(at)
        crossing += (last_use[index] > index) - ending[index]
    return groups


def _timed(graph: OperatorGraph, groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Join groups that take no forward time to those before them, at the start to the one behind."""
    timed: list[list[int]] = []
    waiting: list[int] = []
    for group in groups:
        if any(graph.nodes[at].forward_ms for at in group):
            timed.append([*waiting, *group])
            waiting = []
        elif timed:
            timed[-1] += group
        else:
            waiting += group
    return timed


def _layer(ends: Sequence[str], nodes: Sequence[GraphNode], states_per_parameter: float) -> Layer:
    """Build the layer between two cuts, named after its ends and the operator that takes longest."""
    longest = max(nodes, key=lambda node: node.forward_ms + node.backward_ms)
    operator = _OPERATOR.match(longest.operator.strip())
    span = ends[0] if len(ends) == 1 else f"{ends[0]}-{ends[-1]}"
    return layer_from_times(
        name=f"{span} {operator[0]}" if operator else span,
        kind=LayerKind.BODY,
        forward_ms=sum(node.forward_ms for node in nodes),
        backward_ms=sum(node.backward_ms for node in nodes),
        parameter_mb=states_per_parameter * sum(node.parameter_mb for node in nodes),
        activation_mb={Recompute.NONE: sum(node.activation_mb for node in nodes)},
    )
