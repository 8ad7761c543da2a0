"""Several searches at once, round by round, so that what they find does not depend on the clock."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


def side_by_side(tasks: list[tuple[K, Iterator[T]]]) -> Iterator[tuple[K, T]]:
    """
    Advance all iterators by one step, each in a thread, then yield what they gave, in their order.

    Compiled loops leave the interpreter to others while they run, so threads are enough.

    Parameters
    ----------
    tasks
        A key and an iterator each.

    Examples
    --------
    >>> list(side_by_side([("a", iter([1, 2])), ("b", iter([3]))]))
    [('a', 1), ('b', 3), ('a', 2)]
    """
    if len(tasks) == 1:
        key, steps = tasks[0]
        yield from ((key, step) for step in steps)
        return
    nothing = object()
    with ThreadPoolExecutor(len(tasks)) as pool:
        while tasks:
            steps_taken = list(pool.map(lambda task: next(task[1], nothing), tasks))
            going = [step is not nothing for step in steps_taken]
            for (key, _), step in zip(tasks, steps_taken, strict=True):
                if step is not nothing:
                    yield key, step  # type: ignore[misc]
            tasks = [task for task, goes in zip(tasks, going, strict=True) if goes]
