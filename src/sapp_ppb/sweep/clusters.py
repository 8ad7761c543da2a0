"""Executors of clusters that are there already: Dask and Ray."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sapp_ppb.errors import InputError
from sapp_ppb.sweep.executor import Executor

BACKENDS = ("local", "dask", "ray")
_CONNECT_S = 20
_PROBE_S = 120  # a cluster may have to start its first worker
Say = Callable[[str], None]


@contextmanager
def cluster(backend: str, address: str | None, say: Say) -> Iterator[Executor | None]:
    """
    Connect to a cluster, and leave it as it is at the end.

    Parameters
    ----------
    backend
        ``dask`` or ``ray``; ``local`` gives None, which stands for processes of this machine.
    address
        Of the scheduler, or of the head of Ray.
    say
        Told in a sentence which workers were lost.

    Raises
    ------
    InputError
        If the backend is unknown or not installed, the cluster can not be reached, or its
        workers do not have this version of the package.
    """
    if backend not in BACKENDS:
        raise InputError("--backend", [f"{backend!r} is unknown; one of {', '.join(BACKENDS)}"])
    if backend == "local":
        if address is not None:
            raise InputError(
                "--address", ["is of a cluster, and the backend is local; name --backend dask or ray"]
            )
        yield None
        return
    if address is None:
        raise InputError("--address", [f"must say where {backend} runs, such as {_EXAMPLES[backend]}"])
    connect = {"dask": _dask, "ray": _ray}[backend]
    with connect(address, say) as executor:
        _probe(executor)
        yield executor


_EXAMPLES = {"dask": "tcp://10.0.0.1:8786", "ray": "10.0.0.1:6379, or auto on a machine of the cluster"}


@contextmanager
def _dask(address: str, say: Say) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError:
        raise _not_installed("dask") from None
    try:
        client = Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise _not_reached(address, error) from None
    with client:
        before = set(_workers(client))
        yield client.get_executor(pure=False)
        lost = before - set(_workers(client))
        if lost:
            say(f"Dask lost {', '.join(sorted(lost))}; what they had, it ran again on others")


def _workers(client: Any) -> list[str]:
    return list(client.scheduler_info(n_workers=-1)["workers"])


@contextmanager
def _ray(address: str, say: Say) -> Iterator[Executor]:
    try:
        import ray
    except ImportError:
        raise _not_installed("ray") from None
    _knock(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, OSError, ValueError, RuntimeError) as error:
        raise _not_reached(address, error) from None
    try:
        yield RayExecutor()
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Refuse an address at which nobody listens, for which Ray itself would wait for many minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return  # auto, or the name of a running one
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _not_reached(address, error) from None


class RayExecutor:
    """Executor of futures on Ray, each call a task of one core; Ray itself tries none again."""

    def __init__(self) -> None:
        import ray

        self._call = ray.remote(num_cpus=1, max_retries=0)(_called)

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Start a call and return its future."""
        return self._call.remote(function, *arguments).future()


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def version_here() -> str:
    """Version of the package where this is called."""
    from sapp_ppb import __version__

    return __version__


def _probe(executor: Executor) -> None:
    """Refuse workers that do not have this package: every problem would fail on them."""
    ours = version_here()
    try:
        theirs = executor.submit(version_here).result(timeout=_PROBE_S)
    except Exception as error:
        text = " ".join(str(error).split())[-160:]
        fault = (
            f"the workers can not run sapp-ppb ({type(error).__name__}: {text}); "
            f"install version {ours} where they are, and see that there is one"
        )
        raise InputError("--backend", [fault]) from None
    if theirs != ours:
        raise InputError(
            "--backend", [f"the workers have sapp-ppb {theirs}, this is {ours}; install the same"]
        )


def _not_installed(name: str) -> InputError:
    return InputError("--backend", [f"{name} is not installed; run: pip install 'sapp-ppb[{name}]'"])


def _not_reached(address: str, error: BaseException) -> InputError:
    text = " ".join(str(error).split())[:160]
    return InputError("--address", [f"{address} can not be reached ({type(error).__name__}: {text})"])
