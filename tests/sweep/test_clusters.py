"""The same table on a Dask scheduler and a Ray of this machine, and as Parquet; needs the extras."""

import csv
import io
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from typing import Any

import pytest
from typer.testing import CliRunner

from sapp_ppb.cli.main import app
from sapp_ppb.errors import InputError
from sapp_ppb.sweep import list_candidates, sweep, to_csv
from sapp_ppb.sweep.clusters import cluster
from sapp_ppb.writers import write_model
from tests.cli.conftest import environment
from tests.sweep.conftest import GRID, MODEL, settled

pytestmark = [
    pytest.mark.cluster,
    # What others warn of on their way is theirs.
    pytest.mark.filterwarnings("default"),
]
QUICK: Any = {"time_limit_s": 1.0}
BATCH = ("--devices", "8", "--global-batch", "16", "-s", "2,4", "-i", "1,2", "-mem", "900,1200")


@pytest.fixture(scope="module")
def alone():
    candidates, _ = list_candidates(MODEL, GRID)
    return sweep(candidates, workers=1, **QUICK)


@pytest.fixture(scope="module")
def dask_address(tmp_path_factory):
    """Start a scheduler and two workers, each a process of its own, on loopback."""
    folder = tmp_path_factory.mktemp("dask")
    file = folder / "scheduler.json"
    common = ["--host", "127.0.0.1"]
    worker = ["distributed.cli.dask_worker", *common, "--nthreads", "1", "--no-dashboard"]
    processes = []
    for words in (
        ["distributed.cli.dask_scheduler", *common, "--port", "0", "--no-dashboard"],
        worker,
        worker,
    ):
        command = [sys.executable, "-m", *words, "--scheduler-file", str(file)]
        quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        processes.append(subprocess.Popen(command, env=environment(), cwd=folder, **quiet))
        _wait(file.exists)
    from distributed import Client

    with Client(scheduler_file=str(file)) as client:
        client.wait_for_workers(2, timeout=60)
        address = client.scheduler.address
    yield address
    for process in reversed(processes):
        process.terminate()
    for process in processes:
        process.wait(30)


@pytest.fixture(scope="module")
def ray_address():
    """Ray with two cores on a free port of this machine, which only who knows its token can use."""
    port = _free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))  # older versions ask for none
        words = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
        words += [
            "--node-ip-address=127.0.0.1",
            f"--port={port}",
            "--num-cpus=2",
            "--include-dashboard=false",
        ]
        process = subprocess.Popen(
            words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _wait(lambda: process.poll() is None and _listens(port))
        yield f"127.0.0.1:{port}"
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _free_port():
    """Find a port that is free, and none of those that Ray gives its workers (10002 to 19999)."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port > 19_999:
            return port


def _listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait(done, seconds=60):
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_a_cluster_makes_the_same_table(backend, request, alone, candidates):
    address = request.getfixturevalue(f"{backend}_address")
    with cluster(backend, address, pytest.fail) as executor:
        assert settled(sweep(candidates, executor=executor, **QUICK)) == settled(alone)


@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_the_command_makes_the_same_table_on_a_cluster(backend, request, tmp_path):
    address = request.getfixturevalue(f"{backend}_address")
    write_model(MODEL, tmp_path / "model.json")
    words = ["sweep", str(tmp_path / "model.json"), *BATCH, "-t", "1"]
    for more in (
        ["--workers", "1", "-o", "local"],
        ["--backend", backend, "--address", address, "-o", "there"],
    ):
        assert CliRunner().invoke(app, [*words, *more[:-1], str(tmp_path / more[-1])]).exit_code == 0
    read = []
    for name in ("local", "there"):
        text = (tmp_path / name / "sweep.csv").read_text(encoding="utf-8")
        rows = list(csv.DictReader(io.StringIO(text)))
        read.append([{key: value for key, value in row.items() if key != "seconds"} for row in rows])
    assert read[0] == read[1]


@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_a_worker_of_a_cluster_killed_in_the_middle_loses_no_row_and_is_said(
    backend, request, alone, candidates
):
    address = request.getfixturevalue(f"{backend}_address")
    heard: list[str] = []
    killed: list[int] = []
    with cluster(backend, address, heard.append) as executor:

        def watch(progress):
            heard.extend([progress.news] if progress.news else [])
            if progress.phase == "plans" and not progress.news and not killed:
                killed.append(BUSY[backend](address))
                os.kill(killed[0], signal.SIGKILL)

        found = sweep(candidates, executor=executor, watch=watch, **QUICK)
        assert killed
        assert settled(found) == settled(alone)
        if backend == "dask":  # the nanny starts another, whose address is a new one
            _wait(lambda: heard or _left(address, killed[0]))
    assert any("died" in words or "lost" in words for words in heard), heard


def _left(address, pid):
    return pid not in _dask_processes(address)


def _dask_processes(address):
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        return list(client.run(os.getpid).values())


def _busy_ray(address):
    """Find a worker of Ray that runs one of our tasks now."""
    from pathlib import Path

    found = []

    def look():
        for folder in Path("/proc").iterdir():
            try:
                words = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
            except OSError:
                continue
            if words.startswith(b"ray::_called"):
                found.append(int(folder.name))
        return found

    _wait(look)
    return found[0]


BUSY = {"dask": lambda address: _dask_processes(address)[0], "ray": _busy_ray}


@pytest.mark.parametrize(("backend", "address"), [("dask", "tcp://127.0.0.1:9"), ("ray", "127.0.0.1:9")])
def test_a_cluster_that_is_not_there_is_refused(backend, address, monkeypatch):
    monkeypatch.setattr("sapp_ppb.sweep.clusters._CONNECT_S", 2)
    with pytest.raises(InputError, match=f"{address} can not be reached"), cluster(backend, address, print):
        pytest.fail("connected")


def test_workers_of_another_version_are_refused(dask_address, monkeypatch):
    monkeypatch.setattr("sapp_ppb.__version__", "9.9", raising=False)
    with (
        pytest.raises(InputError, match=r"the workers have sapp-ppb .*, this is 9\.9; install the same"),
        cluster("dask", dask_address, print),
    ):
        pytest.fail("connected")


def test_parquet_has_the_same_table_with_numbers_for_numbers(alone, tmp_path):
    from pyarrow import parquet

    from sapp_ppb.sweep.table import COLUMNS, write_parquet

    write_parquet(alone.rows, tmp_path / "sweep.parquet")
    table = parquet.read_table(tmp_path / "sweep.parquet")
    assert tuple(table.column_names) == COLUMNS
    assert str(table.schema.field("makespan_ms").type) == "double"
    assert str(table.schema.field("stages").type) == "int64"
    assert table["makespan_ms"].to_pylist() == [row.answer.makespan_ms for row in alone.rows]
    read = list(csv.DictReader(io.StringIO(to_csv(alone.rows))))
    assert table["peaks_mb"].to_pylist() == [row["peaks_mb"] or None for row in read]
    with pytest.raises(InputError, match="the file exists"):
        write_parquet(alone.rows, tmp_path / "sweep.parquet")
