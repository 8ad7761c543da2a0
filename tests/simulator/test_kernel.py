"""The traps of numba's cache: no folder, a full disk, broken files, an edited callee; and a late import."""

import errno
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sapp_ppb.simulator import kernel as kernels
from sapp_ppb.simulator.kernel import Kernel, cache_folders, is_compiled, kernel

SRC = Path(kernels.__file__).resolve().parents[2]


def twice(x):
    return 2 * x


def thrice_and_twice(x):
    return 3 * x + inner(x)


inner = kernel(twice)


def hits_and_misses(function: Kernel) -> tuple[int, int]:
    """How often a dispatcher loaded from its cache, and how often it compiled."""
    stats = function.dispatcher.stats
    return sum(stats.cache_hits.values()), sum(stats.cache_misses.values())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have kernels kept in an empty folder."""
    monkeypatch.setattr(kernels, "cache_folders", lambda: (tmp_path / "kept",))
    return tmp_path / "kept"


def test_a_kernel_is_kept_and_loaded_instead_of_compiled(folder: Path) -> None:
    first = kernel(twice)
    assert not is_compiled(first)
    assert first(21) == 42
    assert is_compiled(first)
    assert hits_and_misses(first) == (0, 1)
    again = kernel(twice)
    assert is_compiled(again)
    assert again(21) == 42
    assert hits_and_misses(again) == (1, 0)


def test_a_kernel_may_call_another(folder: Path) -> None:
    # 3 x 10 + 2 x 10
    assert kernel(thrice_and_twice)(10) == 50


def test_without_a_folder_that_can_be_written_kernels_are_compiled_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A folder under a file can not be made, not even by root.
    (tmp_path / "file").write_text("")
    file = tmp_path / "file"
    monkeypatch.setattr(kernels, "cache_folders", lambda: (file / "own", file / "home"))
    for _ in range(2):
        function = kernel(twice)
        assert not is_compiled(function)
        assert function(21) == 42
        assert is_compiled(function)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_second_folder_is_used_where_the_first_can_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(kernels, "cache_folders", lambda: (tmp_path / "file" / "own", tmp_path / "home"))
    assert kernel(twice)(21) == 42
    assert list((tmp_path / "home").glob("*.nbi"))


def test_a_disk_that_is_full_at_the_first_call_does_not_stop_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from numba.core.caching import IndexDataCacheFile

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    function = kernel(twice)
    assert function(21) == 42
    assert function(1.5) == 3.0  # another signature, hence another attempt to save
    assert not list(folder.glob("*.nb?"))


# Each is what a crash, a full disk or another program can leave of a file.
@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: data[: len(data) // 2], id="cut"),
        pytest.param(lambda data: b"not a pickle at all", id="text"),
        pytest.param(lambda data: b"\x00" * len(data), id="zeros"),
        pytest.param(lambda data: b"\x80\x04N." * 2, id="another pickle"),
        pytest.param(lambda data: b"cno_such_module\nname\n.", id="a module that is gone"),
    ],
)
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_broken_file_is_compiled_anew(folder: Path, broken, suffix: str) -> None:
    assert kernel(twice)(21) == 42
    (kept,) = folder.glob(f"*.{suffix}")
    kept.write_bytes(broken(kept.read_bytes()))
    assert kernel(twice)(21) == 42
    # What was compiled anew is kept again.
    again = kernel(twice)
    assert again(21) == 42
    assert hits_and_misses(again) == (1, 0)


def test_a_file_that_the_index_still_names_may_be_gone(folder: Path) -> None:
    assert kernel(twice)(21) == 42
    (kept,) = folder.glob("*.nbc")
    kept.unlink()
    assert kernel(twice)(21) == 42


CALLEE = """
from sapp_ppb.simulator.kernel import kernel

@kernel
def callee(x):
    return x + {plus}
"""
CALLER = """
from edited_callee_kernel import callee
from sapp_ppb.simulator.kernel import kernel

@kernel
def caller(x):
    return 10 * callee(x)
"""


def test_a_callee_that_was_edited_in_another_file_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # numba alone would load the caller, whose own file is as it was, with the old callee inside.
    monkeypatch.setattr(kernels, "_PACKAGE", tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # edits within a second must be seen
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "edited_caller_kernel.py").write_text(CALLER)

    def run(plus: int) -> tuple[int, tuple[int, int], Path]:
        """Do as a new process would: value, loads and compilations, and the cache's folder."""
        (tmp_path / "edited_callee_kernel.py").write_text(CALLEE.format(plus=plus))
        for name in ("edited_caller_kernel", "edited_callee_kernel"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        kernels._source_hash.cache_clear()
        caller = importlib.import_module("edited_caller_kernel").caller
        return caller(1), hits_and_misses(caller), cache_folders()[0]

    try:
        first, again, edited = run(1), run(1), run(2)
    finally:
        kernels._source_hash.cache_clear()
    # 10 x (1 + 1), compiled; the same, loaded; then 10 x (1 + 2), compiled.
    assert (first[:2], again[:2], edited[:2]) == ((20, (0, 1)), (20, (1, 0)), (30, (0, 1)))
    assert first[2] == again[2] != edited[2]


def test_the_folder_is_named_after_all_kernel_sources_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_PACKAGE", tmp_path)

    def name() -> str:
        kernels._source_hash.cache_clear()
        return cache_folders()[0].name

    try:
        (tmp_path / "room").mkdir()
        (tmp_path / "room" / "a_kernel.py").write_text("a = 1\n")
        one = name()
        (tmp_path / "room" / "plain.py").write_text("b = 1\n")
        assert name() == one
        (tmp_path / "room" / "b_kernel.py").write_text("b = 1\n")
        two = name()
        (tmp_path / "room" / "b_kernel.py").write_text("b = 2\n")
        assert len({one, two, name()}) == 3
    finally:
        kernels._source_hash.cache_clear()


def test_every_file_with_a_kernel_is_part_of_the_hash() -> None:
    # The hash reads files of this name only; a kernel elsewhere could go stale.
    decorated = [
        path for path in (SRC / "sapp_ppb").rglob("*.py") if "\n@kernel\n" in path.read_text("utf-8")
    ]
    assert decorated
    assert [path for path in decorated if not path.name.endswith("_kernel.py")] == []


def test_numba_is_not_imported_before_a_compiled_loop_is_needed() -> None:
    # Timing a plan of a usual size needs no compiler; batches do.
    code = """
import sys
import numpy as np
from sapp_ppb.costs import LayerKind, Model, layer_from_times
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import simulate
body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1)
counts = np.zeros((1, 5, 2), dtype=int)
counts[0, 0] = 1
problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=2)
timeline = simulate(Plan(problem=problem, counts=counts))
print(timeline.makespan_ms, timeline.bubble.total, "numba" in sys.modules)
"""
    # (2 + 2 - 1)(1 + 2) = 9, bubble (2 - 1) / 2
    assert python("-c", code).split() == ["9.0", "0.5", "False"]


def python(*arguments: str) -> str:
    """Run Python with this package, and give what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
