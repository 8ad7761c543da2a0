"""
One way to run many tasks: through joblib, on all cores or on any executor of futures.

A worker that dies takes nothing of the others with it: what it had is tried once more, and
given up when that kills a worker again.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Future
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import ParallelBackendBase

T = TypeVar("T")
R = TypeVar("R")
# Deaths of workers under one task after which it is given up.
_MOST_DEATHS = 2
_LONGEST = 160  # characters of what is told of an error


class Executor(Protocol):
    """What is asked of an executor: that of ``concurrent.futures.Executor.submit``."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Start a call and return its future."""


@dataclass(frozen=True, kw_only=True)
class Lost:
    """
    A task whose workers died.

    Attributes
    ----------
    key
        Of the task.
    reason
        What is known of it.
    """

    key: int
    reason: str


class _FuturesBackend(ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """Backend of joblib that hands tasks to an executor of futures; a task that is lost is a result too."""

    supports_retrieve_callback = True
    supports_sharedmem = True

    def __init__(self, executor: Executor) -> None:
        super().__init__()
        self._executor = executor
        self._futures: list[Any] = []

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Say two, so that joblib runs nothing itself; how many run at once is the executor's business."""
        return 2

    def submit(self, func: Any, callback: Callable[[Any], None]) -> Any:
        """Start a batch of one task."""
        key = func.items[0][1][1]
        kept: Future[list[Any]] = Future()
        kept.add_done_callback(callback)
        try:
            future = self._executor.submit(func)
        except Exception as error:  # an executor that is broken or closed
            kept.set_result([Lost(key=key, reason=_words(error))])
            return kept
        self._futures.append(future)
        future.add_done_callback(lambda done: kept.set_result(_result(done, key)))
        return kept

    def retrieve_result_callback(self, out: Any) -> Any:
        """Give what a future came to."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Take back what has not begun."""
        for future in self._futures:
            future.cancel()


def _result(future: Any, key: int) -> list[Any]:
    """Give the result of a task, or what became of its worker: the tasks themselves raise nothing."""
    try:
        return list(future.result())
    except (Exception, CancelledError) as error:
        return [Lost(key=key, reason=_words(error))]


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
    return f"{type(error).__name__}: {text[:_LONGEST]}" if text else type(error).__name__


class Work(Generic[T, R]):
    """
    Tasks to be run, and where.

    Parameters
    ----------
    function
        Called with each item in a worker; it must be importable there, and raise nothing.
    executor
        None for processes of this machine.
    workers
        How many of them; None for all cores that this process may use.
    say
        Told in a sentence what is tried again, and why.
    """

    def __init__(
        self,
        function: Callable[[T], R],
        *,
        executor: Executor | None = None,
        workers: int | None = None,
        say: Callable[[str], None],
    ) -> None:
        self._function, self._executor, self._say = function, executor, say
        self._workers = effective_n_jobs(workers or -1)

    def run(self, items: Mapping[int, T]) -> Generator[tuple[int, R | Lost]]:
        """
        Run all items, and yield each key with its result as it comes.

        A result is yielded once for every key.  With processes of this machine one death
        ends all that run: the first tasks that are not done, as many as there are workers,
        are tried again one at a time, so that the one that kills its worker is known in the
        end and no other is blamed.
        """
        waiting, alone, deaths = dict(items), dict[int, T](), Counter[int]()
        while waiting or alone:
            at_once = dict(waiting) or dict(islice(alone.items(), 1))
            dead: dict[int, str] = {}
            try:
                for key, result in self._parallel(at_once):
                    if isinstance(result, Lost):
                        dead[key] = result.reason
                        continue
                    waiting.pop(key, None)
                    alone.pop(key, None)
                    yield key, result
            except BrokenExecutor as error:
                left = [key for key in at_once if key in waiting or key in alone]
                dead = dict.fromkeys(left[: self._workers], _words(error))
            deaths.update(list(dead))
            for key, reason in dead.items():
                item = (waiting if key in waiting else alone).pop(key)
                if deaths[key] < _MOST_DEATHS:
                    alone[key] = item
                else:
                    yield key, Lost(key=key, reason=reason)
            again = [key for key in dead if deaths[key] < _MOST_DEATHS]
            if again:
                tasks = "1 task is" if len(again) == 1 else f"{len(again)} tasks are"
                self._say(f"a worker died ({next(iter(dead.values()))}); {tasks} tried again")

    def _parallel(self, items: Mapping[int, T]) -> Iterator[tuple[int, R | Lost]]:
        """Run items through joblib; raises BrokenExecutor when a process of this machine died."""
        if self._executor is not None:
            parallel = Parallel(
                n_jobs=2,
                backend=_FuturesBackend(self._executor),
                return_as="generator_unordered",
                batch_size=1,
                pre_dispatch="all",
            )
        else:
            with parallel_config(backend="loky", inner_max_num_threads=1):
                parallel = Parallel(
                    n_jobs=self._workers,
                    return_as="generator_unordered",
                    batch_size=1,
                    pre_dispatch="n_jobs",  # what is lost is then known: the first that are not done
                )
        results = parallel(delayed(_keyed)(self._function, key, item) for key, item in items.items())
        for result in results:
            yield (result.key, result) if isinstance(result, Lost) else result


def _keyed(function: Callable[[T], R], key: int, item: T) -> tuple[int, R]:
    return key, function(item)
