"""
One decorator for every compiled loop: compiled on first call, cached where it can be.

numba's own cache has three traps.  It raises when no folder can be written, it
raises again when the disk is full, and it does not see that a callee in another
file was edited.  Here the cache folder is named after a hash of all kernel
sources, a cache that can not be read or written is done without, and nothing of
numba is imported before the first call.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any

_PACKAGE = Path(__file__).resolve().parent.parent


class Kernel:
    """
    A function that is compiled by numba when it is first called.

    Parameters
    ----------
    function
        A function of arrays and numbers that numba can compile without the
        interpreter; it may call other kernels.

    Attributes
    ----------
    python
        The function itself, for small work that is not worth a compiler.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.python = function
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled function."""
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher; kernels that this one calls are handed over as theirs."""
        from numba import njit

        source = self.python
        names = dict(source.__globals__)
        for name in source.__code__.co_names:
            if isinstance(names.get(name), Kernel):
                names[name] = names[name].dispatcher
        function = FunctionType(source.__code__, names, source.__name__, source.__defaults__)
        function.__qualname__ = source.__qualname__
        function.__module__ = source.__module__
        dispatcher = njit(function, nogil=True)
        kept = _cache_of(function)
        if kept is not None:
            dispatcher._cache = kept
        return dispatcher


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a function on its first call and keep the result for later runs."""
    return Kernel(function)


def is_compiled(function: Kernel) -> bool:
    """Whether a kernel is ready in this process or can be loaded instead of compiled."""
    dispatcher = function.dispatcher
    if dispatcher.signatures:
        return True
    folder = getattr(dispatcher._cache, "cache_path", None)
    return folder is not None and any(Path(folder).glob(f"*.{function.python.__name__}-*.nbi"))


def cache_folders() -> tuple[Path, ...]:
    """Folders to keep compiled kernels in, best first; none of them needs to be writable."""
    name = f"kernels-{_source_hash()}"
    own = _PACKAGE / "__pycache__" / name
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    except RuntimeError:  # a user without a home, as in many containers
        return (own,)
    return (own, home / "sapp-ppb" / name)


@cache
def _source_hash() -> str:
    """Hash of every file that holds kernels, of numba and of Python."""
    import sys

    import numba

    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info[:2]}".encode())
    for path in sorted(_PACKAGE.rglob("*_kernel.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _writable_folder() -> Path | None:
    for folder in cache_folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    return None


def _cache_of(function: FunctionType) -> Any:
    """
    Numba's cache for a function, in our folder and without its exceptions.

    None when no folder can be written, or numba's cache is not as we know it: the
    kernel is then compiled in every run.
    """
    from numba.core import caching

    folder = _writable_folder()
    # numba 0.62 took the underscore from the name.
    in_tree: Any = getattr(caching, "InTreeCacheLocator", getattr(caching, "_InTreeCacheLocator", None))
    if folder is None or in_tree is None:
        return None

    class Locator(in_tree):  # type: ignore[misc, unused-ignore]
        def get_cache_path(self) -> str:
            return str(folder)

    class Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc, unused-ignore]
        _locator_classes = (Locator,)

    class ForgivingCache(caching.FunctionCache):  # type: ignore[misc, unused-ignore]
        _impl_class = Implementation

        # A broken file can raise anything when it is unpickled, so nothing narrower is caught.
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                return super().load_overload(sig, target_context)
            except Exception:
                self._start_anew()
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                super().save_overload(sig, data)
            except Exception:
                self.disable()

        def _start_anew(self) -> None:
            """Write an empty index, else a broken one would be read again before saving."""
            try:
                self.flush()
            except OSError:
                self.disable()

    try:
        return ForgivingCache(function)
    except (RuntimeError, OSError):
        return None
