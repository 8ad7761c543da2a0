"""In which orders the devices of a pipeline can stand, where they differ in speed or memory."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sapp_ppb.errors import InputError
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName

# For each stage the device that it runs on, a place in the speeds and limits as given.
Order = tuple[int, ...]


def in_order(problem: Problem, order: Order) -> Problem:
    """
    Give the problem with its devices in another order: speeds and memory limits move with them.

    What belongs to a place, such as constant memory, hops and time after the last op, stays.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4,
    ...                   stage_speed=(0.5, 1.0))
    >>> in_order(problem, (1, 0)).stage_speed
    (1.0, 0.5)
    """
    moved: dict[str, Any] = {
        name: tuple(value[device] for device in order)
        for name in ("stage_speed", "memory_limit_mb")
        if isinstance(value := getattr(problem, name), tuple)
    }
    if all(getattr(problem, name) == value for name, value in moved.items()):
        return problem
    # An order of ops that is made for the devices is made anew.
    made_for_them = problem.schedule_name is ScheduleName.ZB_AUTO
    return replace(problem, **moved) if made_for_them else problem.changed(**moved)


def number_of_orders(problem: Problem) -> int:
    """
    Count the orders that differ: S! over the factorials of the classes' sizes.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1)
    >>> number_of_orders(Problem(model=Model(name="tiny", layers=(body,)), stages=8, micro_batches=4,
    ...                          stage_speed=(1, 1, 1, 1, 1, 1, 0.8, 0.8)))  # 8 x 7 / 2
    28
    """
    sizes = Counter(devices_of(problem)).values()
    return math.factorial(problem.stages) // math.prod(math.factorial(size) for size in sizes)


def orders_of(problem: Problem) -> Iterator[Order]:
    """List the orders that differ, the given one first; devices that are alike keep their order."""
    devices = devices_of(problem)
    places = {device: [at for at, other in enumerate(devices) if other == device] for device in devices}

    def filled(left: Counter[tuple[float, float]], first: tuple[tuple[float, float], ...]) -> Iterator[Order]:
        if len(first) == len(devices):
            numbers = {device: iter(each) for device, each in places.items()}
            yield tuple(next(numbers[device]) for device in first)
            return
        for device in places:
            if left[device]:
                yield from filled(left - Counter([device]), (*first, device))

    given = tuple(range(len(devices)))
    yield given
    yield from (order for order in filled(Counter(devices), ()) if order != given)


def devices_of(problem: Problem) -> list[tuple[float, float]]:
    """Speed and memory limit of every device, by which they differ."""
    return list(zip(problem.speed_per_stage, problem.limit_per_stage_mb, strict=True))


def check_reordering(problem: Problem) -> None:
    """
    Refuse to reorder stages that do not differ.

    Raises
    ------
    InputError
        Naming the options that would tell them apart.
    """
    if number_of_orders(problem) == 1:
        raise InputError(
            "reorder-stages",
            [
                "needs stages that differ, and all are alike; give --stage-speed or --memory-limit with one "
                "number a stage"
            ],
        )
