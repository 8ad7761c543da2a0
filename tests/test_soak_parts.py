"""``make soak`` runs everything in soak/, and fails when any part of it does."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from soak import __main__ as soak
from tests.pages import ROOT


@pytest.fixture
def ran(monkeypatch):
    """Parts that are run, each with its seconds; one of faults is said to fail."""
    ran: list[tuple[str, str]] = []

    def run(words, *, env, **_):
        ran.append((words[-1], env["SAPP_PPB_SOAK_SECONDS"]))
        return SimpleNamespace(returncode="faults" in words[-1])

    monkeypatch.setenv("SAPP_PPB_SOAK_SECONDS", "40")
    monkeypatch.setattr(subprocess, "run", run)
    return ran


def test_every_script_and_test_of_the_folder_is_a_part():
    assert soak.parts()[0] == "laws"
    assert {"laws", "test_faults"} <= set(soak.parts())
    runnable = [
        path.stem
        for path in (ROOT / "soak").glob("*.py")
        if re.search(r"^def (main\(|test_)", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert sorted([*soak.parts(), "__main__"]) == sorted(runnable)


def test_laws_run_the_whole_time_and_others_a_quarter_of_it(ran, capsys):
    assert soak.main([]) == 1
    assert len(ran) == len(soak.parts())
    assert ran[0] == ("soak.laws", "40")
    assert {seconds for _, seconds in ran[1:]} == {"10"}
    assert "findings in test_faults" in capsys.readouterr().out


def test_a_part_runs_alone(ran, capsys):
    assert soak.main(["laws"]) == 0
    assert [part for part, _ in ran] == ["soak.laws"]
    assert "no findings" in capsys.readouterr().out


def test_a_part_that_is_not_there_is_refused(capsys):
    with pytest.raises(SystemExit):
        soak.main(["lows"])
    assert "there is no part lows; parts are laws" in capsys.readouterr().err


def test_tests_are_run_by_pytest_and_scripts_as_modules():
    assert soak.command("laws") == [sys.executable, "-m", "soak.laws"]
    assert soak.command("test_faults")[1:-1] == ["-m", "pytest", "-q", "-s"]
    assert Path(soak.command("test_faults")[-1]) == ROOT / "soak" / "test_faults.py"
