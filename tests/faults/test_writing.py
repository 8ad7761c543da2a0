"""A machine that fails while files are written: each is the old or the new one, and nothing else stays."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.files import alone_in, whole_file, write_text_atomic
from tests.cli.conftest import environment
from tests.faults.conftest import PLAN, command, left_over, without_rights

WRITER = """
import itertools, sys
from sapp_ppb.files import write_text_atomic
print("begins", flush=True)
for number in itertools.count():
    write_text_atomic(sys.argv[1], "ab"[number % 2] * 300_000, force=True)
"""
# Milliseconds after which a writer is killed: some before, most in the middle of a file of about 1 ms.
KILLED_AFTER_MS = (0, 1, 3, 4, 7, 11, 12, 16, 18, 23, 27, 31)


def killed_writer(path, after_ms):
    words = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begins\n"
        time.sleep(after_ms / 1000)
        process.kill()


def test_a_writer_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text("a" * 300_000)
    for after_ms in KILLED_AFTER_MS:
        killed_writer(path, after_ms)
        assert path.read_bytes() in (b"a" * 300_000, b"b" * 300_000)
    # What the killed ones left beside it is gone with the next file that is written there.
    write_text_atomic(path, "whole", force=True)
    assert path.read_text() == "whole"
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]


def test_a_file_left_over_is_removed_and_one_that_is_being_written_is_not(tmp_path):
    (tmp_path / ".sapp-ppb-0123456789abcdef.tmp").write_text("left by a process that was killed")
    (tmp_path / ".mine.tmp").write_text("of somebody else")
    with whole_file(tmp_path / "slow.json") as slow:
        slow.write(b"slow")
        write_text_atomic(tmp_path / "quick.json", "quick")
        assert len(left_over(tmp_path)) == 2  # somebody else's, and the one of slow.json
    assert left_over(tmp_path) == [".mine.tmp"]
    assert (tmp_path / "slow.json").read_text() == "slow"


def test_what_only_has_the_name_of_a_file_left_over_stops_nobody(tmp_path):
    os.mkfifo(tmp_path / ".sapp-ppb-pipe.tmp")
    (tmp_path / ".sapp-ppb-folder.tmp").mkdir()
    (tmp_path / ".sapp-ppb-link.tmp").symlink_to(tmp_path / "nowhere")
    write_text_atomic(tmp_path / "plan.json", "x")
    assert (tmp_path / "plan.json").read_text() == "x"


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_that_came_meanwhile_is_kept_without_force(tmp_path, monkeypatch, has_links):
    # Two runs that began in an empty folder: the second one to end replaced the first one's file.
    if not has_links:

        def refused(*_, **__):
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr("os.link", refused)
    with (  # noqa: PT012
        pytest.raises(InputError, match="the file exists; give --force"),
        whole_file(tmp_path / "plan.json") as file,
    ):
        file.write(b"second")
        write_text_atomic(tmp_path / "plan.json", "first")
    assert (tmp_path / "plan.json").read_text() == "first"
    assert left_over(tmp_path) == []


def test_a_file_system_without_hard_links_takes_files_all_the_same(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr("os.link", refused)
    write_text_atomic(tmp_path / "plan.json", "x")
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]


def test_a_file_system_without_locks_takes_files_all_the_same(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refused)
    with alone_in(tmp_path / "new"):
        write_text_atomic(tmp_path / "new" / "plan.json", "x")
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["plan.json"]


def test_one_run_at_a_time_writes_into_a_folder(tmp_path):
    program = (
        "import sys\n"
        "from sapp_ppb.files import alone_in\n"
        "with alone_in(sys.argv[1]):\n"
        "    print('in', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    words = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(words, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdin is not None
        assert first.stdout.readline() == b"in\n"
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(lambda: alone_in(tmp_path).__enter__())
            time.sleep(0.05)
            assert not second.done()
            first.kill()  # the system gives back what a killed process had locked
            second.result(timeout=30)


def test_two_runs_in_one_folder_do_not_mix_their_files(model, plan_file, tmp_path):
    slower = json.loads(plan_file.read_text(encoding="utf-8"))
    slower["problem"]["micro_batches"] = 8
    (tmp_path / "slower.json").write_text(json.dumps(slower), encoding="utf-8")
    plans = [plan_file, tmp_path / "slower.json"]
    out = tmp_path / "out"
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda plan: command("simulate", model, plan, "-o", out, "--force"), plans))
    assert [run.returncode for run in runs] == [0, 0], [run.stderr for run in runs]
    of_plan = json.loads((out / "plan.json").read_text(encoding="utf-8"))["outcome"]["makespan_ms"]
    of_trace = json.loads((out / "trace.json").read_text(encoding="utf-8"))["otherData"]["makespan_ms"]
    assert of_plan == of_trace
    assert f'"makespan_ms": {of_plan}' in (out / "report.html").read_text(encoding="utf-8").replace(
        "&quot;", '"'
    )
    assert left_over(out) == []


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))


def test_a_full_disk_takes_neither_the_plan_from_the_screen_nor_half_a_file(model, plan_file, tmp_path):
    # Files of more than 30 kB can not be written, as on a disk that fills up: the first picture is larger.
    done = command("plan", model, *PLAN, "-t", "0.1", "-o", tmp_path / "out", preexec_fn=small_files)
    assert done.returncode == 2
    assert "makespan" in done.stdout
    assert f"error: {tmp_path / 'out' / 'timeline.png'}: can not be written (File too large)" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(entry.name for entry in (tmp_path / "out").iterdir()) == ["plan.json"]
    assert command("simulate", model, tmp_path / "out" / "plan.json").returncode == 0


@pytest.fixture
def small_disk(tmp_path):
    """Mount a disk of 40 kB, where the system allows that."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full(model, plan_file, small_disk):
    done = command("simulate", model, plan_file, "-o", small_disk / "out")
    assert done.returncode == 2
    assert "makespan" in done.stdout
    assert "can not be written (No space left on device); choose another path" in done.stderr
    assert done.stderr.count("\n") == 2  # what was written, and the fault
    assert left_over(small_disk / "out") == []


def test_a_disk_that_is_read_only_is_refused_before_any_planning(model, plan_file, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = command("plan", model, *PLAN, "-t", "60", "-o", small_disk / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {small_disk}: the folder may not be written to; give another --output\n"


class TestAFolder:
    """That can not take files is refused before any planning, in one line."""

    def refusal(self, model, folder, **options):
        done = command("plan", model, *PLAN, "-t", "60", "-o", folder, **options)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        return done.stderr

    def test_that_may_not_be_written_to(self, model, tmp_path):
        tmp_path.chmod(0o555)
        said = self.refusal(model, tmp_path / "out", preexec_fn=without_rights)
        assert said == f"error: {tmp_path}: the folder may not be written to; give another --output\n"

    @pytest.mark.parametrize("name", ["", "below"])
    def test_that_may_not_be_looked_into(self, model, tmp_path, name):
        # It was a traceback: only a plain no of the file system was expected.
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o000)
        said = self.refusal(model, locked / name, preexec_fn=without_rights)
        assert said.startswith(f"error: {locked}")
        assert said.endswith("can not be written (Permission denied); give another --output\n")

    def test_whose_name_is_too_long(self, model, tmp_path):
        said = self.refusal(model, tmp_path / ("x" * 300))
        assert said.endswith("can not be written (File name too long); give another --output\n")

    def test_that_leads_to_itself(self, model, tmp_path):
        # It was planned for, and refused at the end.
        (tmp_path / "ring").symlink_to("ring")
        said = self.refusal(model, tmp_path / "ring")
        assert said.endswith(
            "can not be written (Too many levels of symbolic links); give another --output\n"
        )

    def test_that_is_a_file(self, model, tmp_path):
        (tmp_path / "file").write_text("mine")
        said = self.refusal(model, tmp_path / "file")
        assert said == f"error: {tmp_path / 'file'}: is no folder; give another --output\n"


def test_a_folder_of_traces_that_may_not_be_looked_into_is_one_line(tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o000)
    done = command("check", locked / "config.yaml", preexec_fn=without_rights)
    assert done.returncode == 2
    assert "Permission denied" in done.stderr or "may not be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_killed_plan_leaves_whole_files_only(model, plan_file, tmp_path):
    out = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-m", "sapp_ppb", "simulate", str(model), str(plan_file), "-o", str(out)],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while not (out / "plan.json").exists():  # then it draws
            time.sleep(0.002)
            assert process.poll() is None or (out / "plan.json").exists()
        process.send_signal(signal.SIGKILL)
    json.loads((out / "plan.json").read_text(encoding="utf-8"))
    again = command("simulate", model, plan_file, "-o", out, "--force")
    assert again.returncode == 0, again.stderr
    assert left_over(out) == []
