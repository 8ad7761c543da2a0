"""Plan files beside the order that they were made with."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.readers import read_plan
from sapp_ppb.schedules import OrderFile
from sapp_ppb.writers import plan_to_json
from tests.readers.plans.conftest import MODEL, PLAN
from tests.strategies import random_plan, random_problem


def custom_plan(folder: Path) -> Path:
    """Plan file that was made with an order beside it."""
    (folder / "order.csv").write_text("0F0,0B0", encoding="utf-8")
    rng = Random(1)
    problem = random_problem(rng, stages=1, chunks=1, micro_batches=1)
    problem = replace(
        problem, schedule=None, micro_batch_group=None, order_file=OrderFile(path="order.csv", text="0F0,0B0")
    )
    plan = random_plan(rng, problem)
    path = folder / "plan.json"
    outcome = replace(PLAN, problem=problem, plan=plan, peak_memory_mb=(1.0,))
    path.write_text(plan_to_json(outcome), encoding="utf-8")
    assert json.loads(path.read_text())["problem"]["order"] == {
        "path": "order.csv",
        # printf 0F0,0B0 | sha256sum
        "sha256": "b83c824ac403bb94d0612931fa7b07911716fc95e49669128e81b813c1be33b2",
    }
    assert read_plan(path, problem.model).problem == problem
    return path


def test_an_order_is_found_beside_the_plan_and_known_by_its_hash(tmp_path):
    custom_plan(tmp_path)


def test_an_order_that_was_changed_since_is_refused(tmp_path):
    path = custom_plan(tmp_path)
    (tmp_path / "order.csv").write_text("0F0,0B0\n", encoding="utf-8")
    with pytest.raises(InputError, match="the order is not the one that was planned with: its SHA-256 is"):
        read_plan(path, MODEL)


def test_an_order_that_is_gone_is_refused(tmp_path):
    path = custom_plan(tmp_path)
    (tmp_path / "order.csv").unlink()
    with pytest.raises(InputError, match="there is no such file"):
        read_plan(path, MODEL)
