"""``sapp-ppb schedule``: bare CSV, the same as the golden files."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import environment

GOLDEN = Path(__file__).parents[1] / "golden" / "schedules"


def test_an_order_is_printed_and_nothing_else(run):
    result = run("schedule", "1f1b", "-s", "2", "-mb", "3")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout_bytes == b"0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n"


@pytest.mark.parametrize(
    ("golden", "words"),
    [
        ("1f1b_pp4_v1_m8.csv", ("1f1b", "-s", "4", "-mb", "8")),
        ("interleaved_pp2_v2_m8_n2.csv", ("interleaved", "-s", "2", "-mb", "8", "-i", "2")),
        (
            "interleaved_pp2_v2_m8_n3.csv",
            ("interleaved", "-s", "2", "-mb", "8", "-i", "2", "--micro-batch-group", "3"),
        ),
    ],
)
def test_the_order_is_that_of_the_golden_file(golden, words, run):
    assert run("schedule", *words).stdout == (GOLDEN / "megatron" / golden).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("2f2b", "-s", "2", "-mb", "2"), "schedule '2f2b' is unknown; one of gpipe"),
        (("gpipe", "-s", "2", "-mb", "2", "-i", "2"), "chunks must be 1 (got 2)"),
        (("1f1b", "-s", "0", "-mb", "2"), "stages must be a whole number, at least 1 (got 0)"),
        (("interleaved", "-s", "4", "-mb", "5", "-i", "2", "--micro-batch-group", "x"), "'x' is neither"),
        (("interleaved", "-s", "4", "-mb", "10", "-i", "2"), "5, 6 or 10"),
        (("1f1b", "-s", "4000", "-mb", "4000"), "too large: 32,000,000 ops of 2,000,000 at most"),
    ],
)
def test_refusals(words, said, run):
    result = run("schedule", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_remainder_first_is_the_older_tools_grouping(run):
    result = run(
        "schedule", "interleaved", "-s", "2", "-mb", "3", "-i", "2", "--micro-batch-group", "remainder-first"
    )
    assert result.stdout.startswith("0F0,0F1,0F2,2F0,2F1,2F2")


def test_a_reader_that_stops_early_is_no_fault():
    words = [sys.executable, "-m", "sapp_ppb", "schedule", "interleaved", "-s", "16", "-mb", "320", "-i", "2"]
    with subprocess.Popen(
        words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(3) == b"0F0"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_is_said_in_one_line():
    words = [sys.executable, "-m", "sapp_ppb", "schedule", "1f1b", "-s", "4", "-mb", "4"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(words, env=environment(), stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: stdout: the result can not be written")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("golden", "words"),
    [
        ("torch/ScheduleZBVZeroBubble_pp4_v2_m8.csv", ("zbv", "-s", "4", "-mb", "8")),
        ("torch/ScheduleDualPipeV_pp4_v2_m8.csv", ("dualpipev", "-s", "4", "-mb", "8", "-i", "2")),
        ("torch/ScheduleLoopedBFS_pp2_v2_m4.csv", ("looped-bfs", "-s", "2", "-mb", "4", "-i", "2")),
        (
            "torch/ScheduleInterleavedZeroBubble_pp4_v1_m8.csv",
            ("interleaved-zero-bubble", "-s", "4", "-mb", "8"),
        ),
    ],
)
def test_the_order_is_the_table_of_pytorch(golden, words, run):
    assert run("schedule", *words).stdout == (GOLDEN / golden).read_text(encoding="utf-8")


def test_a_table_with_idle_entries_comes_back_without_them(run, tmp_path):
    file = tmp_path / "order.csv"
    file.write_text("0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n", encoding="utf-8")
    result = run("schedule", "custom", "-s", "2", "-mb", "2", "--order", file)
    assert (result.exit_code, result.stdout) == (0, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")


def test_a_custom_order_that_waits_for_itself_is_refused_with_the_ops(run, tmp_path):
    file = tmp_path / "order.csv"
    file.write_text("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", encoding="utf-8")
    result = run("schedule", "custom", "-s", "2", "-mb", "2", "--order", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: {file}: these ops wait for each other: 0B0, 1F1\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("custom", "-s", "2", "-mb", "2"), "custom: needs an order; give --order FILE.csv"),
        (("custom", "-s", "2", "-mb", "2", "--order", "gone.csv"), "gone.csv: there is no such file"),
        (("zbv", "-s", "2", "-mb", "2", "-i", "1"), "zbv: chunks must be 2 (got 1)"),
        (("1f1b", "-s", "2", "-mb", "2", "--sequence-chunks", "2"), "takes no --sequence-chunks (got 2)"),
        (("seq1f1b", "-s", "2", "-mb", "2"), "give --sequence-chunks, or use 1f1b"),
    ],
)
def test_refusals_of_orders(words, said, run):
    result = run("schedule", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
