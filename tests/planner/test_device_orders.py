"""Orders in which devices can stand, and the problem in each, by hand."""

from sapp_ppb.costs import LayerKind, Model, layer_from_times
from sapp_ppb.planner.device_orders import in_order, number_of_orders, orders_of
from sapp_ppb.problem import Problem


def problem_of(**sizes) -> Problem:
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=6, forward_ms=1)
    return Problem(model=Model(name="equal", layers=(body,)), micro_batches=4, **sizes)


def test_speeds_and_limits_move_together_and_what_belongs_to_a_place_stays() -> None:
    problem = problem_of(
        stages=3,
        stage_speed=(1, 0.5, 2),
        memory_limit_mb=(100, 200, 300),
        constant_memory_mb=(1, 2, 3),
        step_extra_ms=(4, 5, 6),
    )
    turned = in_order(problem, (2, 0, 1))
    assert (turned.stage_speed, turned.memory_limit_mb) == ((2, 1, 0.5), (300, 100, 200))
    assert (turned.constant_memory_mb, turned.step_extra_ms) == ((1, 2, 3), (4, 5, 6))


def test_orders_are_listed_once_each_and_the_given_one_first() -> None:
    # Two alike of four: 4! / 2! = 12, all with other speeds by place.
    problem = problem_of(stages=4, stage_speed=(1, 0.5, 1, 2))
    orders = list(orders_of(problem))
    assert orders[0] == (0, 1, 2, 3)
    assert len(orders) == number_of_orders(problem) == 12
    assert len({in_order(problem, order).stage_speed for order in orders}) == 12
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
