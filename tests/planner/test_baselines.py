"""What people do without a planner, by hand."""

import numpy as np
import pytest

from sapp_ppb.costs import Layer, LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.planner.baselines import baselines
from sapp_ppb.problem import Problem

LIGHT, HEAVY, BOTTLENECK = (
    "even split, no recompute",
    "even split, full recompute",
    "bottleneck partition, no recompute",
)
THREE = (Recompute.NONE, Recompute.COMM, Recompute.FULL)


def body(
    count: int, forward_ms: float = 1.0, name: str = "body", types: tuple[Recompute, ...] = THREE
) -> Layer:
    """Layers of 1 + 2 ms, or of ``forward_ms`` and twice that, which hold less under later types."""
    return layer_from_times(
        name=name,
        kind=LayerKind.BODY,
        count=count,
        forward_ms=forward_ms,
        activation_mb={recompute: 10.0 - recompute for recompute in types},
    )


def head(forward_ms: float) -> Layer:
    return layer_from_times(name="head", kind=LayerKind.HEAD, forward_ms=forward_ms)


def plans(*layers: Layer, **sizes) -> dict[str, np.ndarray]:
    problem = Problem(model=Model(name="m", layers=layers), **({"micro_batches": 4} | sizes))
    return {baseline.name: baseline.plan.counts for baseline in baselines(problem)}


def sizes_of(counts: np.ndarray) -> list[int]:
    return [int(size) for size in counts.sum(axis=(0, 1))]


def test_all_three_in_a_fixed_order():
    assert list(plans(body(4), stages=2)) == [LIGHT, HEAVY, BOTTLENECK]


@pytest.mark.parametrize(
    ("count", "stages", "interleave", "expected"),
    [
        (8, 4, 1, [2, 2, 2, 2]),
        (10, 4, 1, [3, 3, 2, 2]),  # 10 = 4 x 2 + 2: one more in the first two
        (5, 2, 2, [2, 1, 1, 1]),  # cells along the chain, not stages
    ],
)
def test_even_split_gives_the_first_cells_one_more(count, stages, interleave, expected):
    found = plans(body(count), stages=stages, interleave=interleave)
    assert sizes_of(found[LIGHT]) == expected
    assert sizes_of(found[HEAVY]) == expected


def test_light_recomputes_nothing_and_heavy_everything():
    found = plans(body(4), stages=2)
    assert found[LIGHT][0, Recompute.NONE].sum() == 4
    assert found[HEAVY][0, Recompute.FULL].sum() == 4


def test_without_none_or_full_the_nearest_type_is_taken():
    found = plans(body(4, types=(Recompute.SELECTIVE, Recompute.BOTH)), stages=2)
    names = [LIGHT.replace("no", "least"), HEAVY.replace("full", "most")]
    names.append("bottleneck partition, least recompute")
    assert list(found) == names  # not "no recompute" of layers that are all recomputed
    assert found[names[0]][0, Recompute.SELECTIVE].sum() == 4
    assert found[names[1]][0, Recompute.BOTH].sum() == 4


def test_one_layer_that_can_not_is_enough_for_another_name():
    found = plans(body(3), body(1, 1.0, "other", (Recompute.NONE, Recompute.COMM)), stages=2)
    assert list(found) == [LIGHT, "even split, most recompute", BOTTLENECK]


def test_bottleneck_partition_makes_room_for_the_head():
    # HEAD 6 + 12 ms = six layers of 1 + 2 ms: 12 units in all, 4 a stage at best; the HEAD's 6 stand
    # alone, and 6 layers on two stages are 3 each.
    assert sizes_of(plans(head(6), body(6), stages=3)[BOTTLENECK]) == [0, 3, 3]


def test_bottleneck_partition_has_the_least_longest_cell():
    # 7 equal layers on 3 stages: some stage has 3, and none needs more.
    sizes = sizes_of(plans(body(7), stages=3)[BOTTLENECK])
    assert (sum(sizes), max(sizes)) == (7, 3)


def test_bottleneck_partition_weighs_kinds():
    # Times 1, 1, 1, 1, 4 (x 3 ms): four light ones against one heavy.
    assert sizes_of(plans(body(4), body(1, 4.0, "heavy"), stages=2)[BOTTLENECK]) == [4, 1]


def test_bottleneck_partition_keeps_the_fewest_layers():
    # The heavy one comes first, and cells 1 and 2 still get their layer.
    assert sizes_of(plans(body(1, 100.0, "heavy"), body(2), stages=3)[BOTTLENECK]) == [1, 1, 1]


def test_a_split_that_breaks_a_rule_is_left_out():
    # 4 layers on a HEAD's cell and 3 others of at least 1: an even split of 3 is 1, 1, 1, 0.
    assert list(plans(head(50), body(3), stages=4)) == [BOTTLENECK]


def test_kinds_are_cut_in_chain_order():
    found = plans(body(3), body(3, 1.0, "other"), stages=2)[LIGHT]
    assert found.sum(axis=1).tolist() == [[3, 0], [0, 3]]


def test_the_bottleneck_partition_balances_times_at_the_speeds_of_the_stages():
    # 6 layers of 3 ms: 4 at speed 1 and 2 at 0.5 take 12 ms each; even splits stay even.
    found = plans(body(6), stages=2, stage_speed=(1, 0.5))
    assert sizes_of(found[BOTTLENECK]) == [4, 2]
    assert sizes_of(found[LIGHT]) == [3, 3]
