"""The soak prints its figures, and says by its exit code whether every law held."""

from dataclasses import replace

import pytest

from soak import faults, test_heavy_readers
from soak import laws as soak
from soak.tables import counted
from soak.workers import Lost
from tests.laws.laws import LAWS, try_laws
from tests.pages import ROOT

# A small problem with a plan, from a seed of its own.
NUMBER = 6


@pytest.fixture(scope="module")
def tried():
    tried = try_laws(NUMBER)
    assert not tried.broken
    assert tried.digest is not None
    return tried


@pytest.fixture(autouse=True)
def short(monkeypatch, tried):
    monkeypatch.setenv("SAPP_PPB_SOAK_SECONDS", "0")
    monkeypatch.setattr(soak, "first_number", lambda: NUMBER)
    tries(monkeypatch, tried)


def tries(monkeypatch, tried):
    """Let other processes come to this."""
    monkeypatch.setattr(soak, "_side_by_side", lambda first, seconds, processes: [tried])


def test_a_table_counts_problems_and_laws(capsys):
    assert soak.main([]) == 0
    printed = capsys.readouterr().out
    assert "| problems | 1 | 0 | 0 | 1 |" in printed
    assert "| same seed, same bytes | 1 | 0 | 0 | 1 |" in printed
    assert "| same bytes in another process | 1 | 0 | 0 | 1 |" in printed
    assert "| violations | 0 | 0 | 0 | 0 |" in printed
    assert all(f"| {law} |" in printed for law in LAWS)


def test_a_violation_is_printed_with_its_number_and_ends_in_1(capsys, monkeypatch, tried):
    tries(monkeypatch, replace(tried, broken={"every layer once": "one is missing"}))
    assert soak.main([]) == 1
    printed = capsys.readouterr().out
    assert f"VIOLATION of 'every layer once' by problem {NUMBER}: one is missing" in printed
    assert f"repeat with: python -m soak.laws {NUMBER}" in printed


def test_a_process_that_ended_is_a_violation_of_its_problem(capsys, monkeypatch, tried):
    # Nothing is known of such a problem but its number, not even its size: it counts in the last column.
    lost = Lost(number=NUMBER + 1, why="its process was ended by SIGKILL")
    monkeypatch.undo()
    monkeypatch.setenv("SAPP_PPB_SOAK_SECONDS", "0")
    monkeypatch.setattr(soak, "first_number", lambda: NUMBER)
    monkeypatch.setattr(soak, "side_by_side", lambda *_, **__: iter([tried, lost]))
    assert soak.main([]) == 1
    printed = capsys.readouterr().out
    assert f"VIOLATION of 'an answer' by problem {NUMBER + 1}: its process was ended by SIGKILL" in printed
    assert "| problems | 1 | 0 | 0 | 2 |" in printed
    assert "| no answer | 0 | 0 | 0 | 1 |" in printed
    assert "| violations | 0 | 0 | 0 | 1 |" in printed


def test_other_bytes_in_another_process_are_a_violation(capsys, monkeypatch, tried):
    tries(monkeypatch, replace(tried, digest="another"))
    assert soak.main([]) == 1
    printed = capsys.readouterr().out
    assert f"VIOLATION of 'same bytes in another process' by problem {NUMBER}" in printed


def test_one_problem_is_tried_alone_and_printed(capsys):
    assert soak.main([str(NUMBER)]) == 0
    printed = capsys.readouterr().out
    assert f"Drawn(number={NUMBER}," in printed
    assert "order of the chain kept: holds" in printed


def test_a_seed_has_numbers_of_its_own(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("SAPP_PPB_SOAK_SEED", "3")
    monkeypatch.delenv("SAPP_PPB_SOAK_SECONDS", raising=False)
    assert soak.first_number() == 30_000_000
    assert soak.seconds_to_run() == 1200


def test_the_page_has_a_row_for_every_figure(tried):
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    printed = [
        soak.table([tried], []),
        *(counted(names, {}) for names in (faults.FAULTS, test_heavy_readers.FILES)),
    ]
    rows = {line.split("|")[1] for line in "\n".join(printed).splitlines() if line.startswith("|")}
    assert rows <= {line.split("|")[1] for line in page.splitlines() if line.startswith("|")}
    said = page.split("| law | says |")[1].split("\n\n")[0]
    assert all(f"| {law} |" in said for law in LAWS)


@pytest.mark.slow
def test_processes_try_different_problems(monkeypatch):
    monkeypatch.undo()
    found = soak.soak(40, 0.01, 2)
    assert sorted(each.number for each in found) == [40, 41]
    assert not any(each.broken for each in found)
