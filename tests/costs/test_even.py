"""An even split, and how many micro-batches a stage of it may keep alive."""

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.costs.even import EvenCell, even_cells, most_live


def test_layers_are_spread_evenly_with_head_and_tail_at_the_ends():
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=7,
        forward_ms=2,
        weight_grad_ms=1,
        parameter_mb=10,
        activation_mb={Recompute.NONE: 6, Recompute.FULL: 1},
    )
    head = layer_from_times(name="Emb", kind=LayerKind.HEAD, count=2, forward_ms=3, parameter_mb=100)
    tail = layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=5, activation_mb={Recompute.NONE: 4})
    model = Model(name="tiny", layers=(head, body, tail))
    cells = even_cells(model, 3, lambda layer: layer.considered)
    # 7 layers on 3 cells: up to 7/3, 14/3 and 7, so 2, 2 and 3.
    assert [cell.forward_ms for cell in cells] == [2 * 3 + 2 * 2, 2 * 2, 3 * 2 + 5]
    assert [cell.backward_ms for cell in cells] == [20, 8, 22]
    assert [cell.weight_ms for cell in cells] == [2 * 3 + 2 * 1, 2 * 1, 3 * 1 + 5]
    assert [cell.parameter_mb for cell in cells] == [220, 20, 30]
    assert [cell.most_mb for cell in cells] == [12, 12, 18 + 4]
    assert [cell.least_mb for cell in cells] == [2, 2, 3 + 4]


@pytest.mark.parametrize(
    ("room", "live"),
    [
        (1e9, 8),  # 2 S
        (10 + 6 * 20, 6),  # as fit without recompute
        (10 + 3 * 20, 4),  # 3 fit without, S with: 60 / 2 = 30
        (10 + 5, 2),  # 5 / 2 with recompute
        (0, 1),  # nothing fits; an order there must be
    ],
)
def test_recompute_makes_room_for_s_micro_batches_and_no_more(room, live):
    cell = EvenCell(forward_ms=1, backward_ms=2, weight_ms=1, parameter_mb=10, most_mb=20, least_mb=2)
    assert most_live(cell, room, 4) == live


def test_what_exists_for_a_moment_leaves_less_room():
    # 70 MB of room, 10 for parameters and 15 for the greater of two moments: 45 / 20 is 2 micro-batches.
    output = layer_from_times(
        name="Out", kind=LayerKind.TAIL, forward_ms=1, parameter_mb=10, activation_mb={Recompute.NONE: 10},
        transient_mb=15,
    )  # fmt: skip
    loss = layer_from_times(name="Loss", kind=LayerKind.TAIL, forward_ms=1, transient_mb=9)
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=1, activation_mb={Recompute.NONE: 10})
    [cell] = even_cells(Model(name="m", layers=(body, output, loss)), 1, lambda layer: layer.considered)
    assert cell.transient_mb == 15
    assert most_live(cell, 70.0, 4) == 2


def test_layers_without_activations_leave_room_for_all():
    cell = EvenCell(forward_ms=1, backward_ms=2, weight_ms=1, parameter_mb=10, most_mb=0, least_mb=0)
    assert most_live(cell, 0.0, 4) == 8


def test_layers_are_spread_in_proportion_to_shares():
    # 7 layers at 2 : 1 : 1, up to 0, 3.5, 5.25 and 7 of them: 4, 1 and 2.
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=7, forward_ms=2)
    model = Model(name="tiny", layers=(body,))
    cells = even_cells(model, 3, lambda layer: layer.considered, (1.0, 0.5, 0.5))
    assert [cell.forward_ms for cell in cells] == [8, 2, 4]
    equal = even_cells(model, 3, lambda layer: layer.considered, (0.5, 0.5, 0.5))
    assert equal == even_cells(model, 3, lambda layer: layer.considered)
