"""One line a layer along the chain, HEAD and TAIL included."""

from pathlib import Path

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.writers.frameworks.layer_list import layers_csv_text, layers_json_text
from tests.torchtitan_plans import model_of


def plan_on_a_v():
    problem = Problem(model=model_of(4, 1), stages=2, micro_batches=4, schedule=ScheduleName.ZBV)
    matrices = {
        "body0": {"full": [[1, 0], [0, 1]], "none": [[1, 1], [0, 0]]},
        "body1": {"none": [[0, 0], [1, 0]]},
    }
    return plan_from_matrices(problem, matrices)


def test_layers_follow_the_chain_back_over_the_stages():
    assert layers_csv_text(plan_on_a_v()) == (
        "index,name,stage,chunk,recompute\n"
        "0,head,0,0,\n"
        "1,body0,0,0,full\n"
        "2,body0,0,0,none\n"
        "3,body0,1,0,none\n"
        "4,body0,1,1,full\n"
        "5,body1,0,1,none\n"
        "6,tail,0,1,\n"
    )


def test_the_page_shows_what_is_written():
    page = (Path(__file__).parents[3] / "docs" / "frameworks" / "plain.md").read_text(encoding="utf-8")
    assert f"```csv\n{layers_csv_text(plan_on_a_v())}```\n" in page
    # Shortened behind the second of seven layers.
    first = "\n".join(layers_json_text(plan_on_a_v()).splitlines()[:10])
    assert f"```json\n{first.removesuffix(',')}\n  ]\n}}\n```\n" in page


def test_json_has_the_same_lines_and_the_schedule():
    text = layers_json_text(plan_on_a_v())
    assert '  "schedule": "zbv",\n  "layers": [\n' in text
    assert '    {"index": 4, "name": "body0", "stage": 1, "chunk": 1, "recompute": "full"},\n' in text
    assert text.endswith(
        '    {"index": 6, "name": "tail", "stage": 0, "chunk": 1, "recompute": null}\n  ]\n}\n'
    )


def test_a_table_can_not_show_an_empty_last_stage():
    problem = Problem(model=model_of(3, tail=False), stages=3, micro_batches=4, min_layers_per_cell=0)
    plan = plan_from_matrices(problem, {"body0": {"none": [[2, 1, 0]]}})
    with pytest.raises(InputError, match=r"stage 2 is the last and holds no layer, .*; write JSON"):
        layers_csv_text(plan)
    assert '"stages": 3' in layers_json_text(plan)
