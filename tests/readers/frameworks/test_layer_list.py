"""Lists of layers: what is written is read, and every fault has its line."""

import json
import re

import pytest
from hypothesis import given

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.readers.frameworks.layer_list import read_layer_list
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.cell_types import plan_from_types
from sapp_ppb.writers.frameworks.layer_list import layers_csv_text, layers_json_text
from tests.strategies import plans, plans_in_any_mode

HEADER = "index,name,stage,chunk,recompute\n"
GOOD = HEADER + "0,Emb,0,0,\n1,Dec,0,0,full\n2,Dec,1,0,none\n3,Norm,1,0,\n"


def read(tmp_path, text, name="layers.csv", model=None):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_layer_list(path, model)


def document(**changes):
    layers = [
        {"index": 0, "name": "Emb", "stage": 0, "chunk": 0, "recompute": None},
        {"index": 1, "name": "Dec", "stage": 0, "chunk": 0, "recompute": "full"},
        {"index": 2, "name": "Dec", "stage": 1, "chunk": 0, "recompute": "none"},
    ]
    values = {"format": "sapp-ppb-layers", "version": 1, "stages": 2, "interleave": 1, "micro_batches": 4}
    return {**values, "schedule": "1f1b", "layers": layers, **changes}


@given(plans())
def test_csv_that_is_written_is_read_as_the_same_plan(tmp_path_factory, plan):
    problem = plan.problem
    try:
        text = layers_csv_text(plan)
    except InputError as error:
        assert "is the last and holds no layer" in str(error)  # noqa: PT017  the law is for the others
        return
    config = read(tmp_path_factory.mktemp("csv"), text, model=problem.model)
    assert (config.target, config.broken) == ("csv", ())
    assert (config.stages, config.interleave) == (problem.stages, problem.interleave)
    assert config.layers == problem.model.body_count
    assert plan_from_types(problem, config.types) == plan


@given(plans_in_any_mode())
def test_json_that_is_written_is_read_as_the_same_plan(tmp_path_factory, plan):
    problem, folder = plan.problem, tmp_path_factory.mktemp("json")
    if problem.order_file:
        (folder / "order.csv").write_bytes(problem.order_file.text.encode())
    config = read(folder, layers_json_text(plan), "layers.json", problem.model)
    assert (config.target, config.broken, config.unknown) == ("json", (), ())
    assert (config.stages, config.interleave) == (problem.stages, problem.interleave)
    assert (config.micro_batches, config.schedule) == (problem.micro_batches, problem.schedule_name)
    assert (config.micro_batch_group, config.order_file) == (problem.micro_batch_group, problem.order_file)
    assert plan_from_types(problem, config.types) == plan


def test_a_table_does_not_say_micro_batches(tmp_path):
    config = read(tmp_path, GOOD)
    assert config.types == (((Recompute.FULL,), (Recompute.NONE,)),)
    assert (config.layers, config.micro_batches, config.schedule) == (2, None, None)
    assert config.unknown == ("micro-batches are not known: a table of layers does not say them",)


def test_lines_may_stand_in_any_order_and_end_as_on_windows(tmp_path):
    lines = GOOD.splitlines()
    text = "\ufeff" + "\r\n".join([lines[0], "", *reversed(lines[1:])]) + "\r\n,,,,\r\n"
    assert read(tmp_path, text).types == read(tmp_path, GOOD).types


def test_a_v_is_seen_from_the_order_of_the_layers(tmp_path):
    # Cells 0 to 3 of a V lie on stages 0, 1, 1, 0.
    rows = ["0,a,0,0,none", "1,b,1,0,none", "2,c,1,1,full", "3,d,0,1,none"]
    config = read(tmp_path, HEADER + "\n".join(rows))
    assert config.types[1] == ((Recompute.NONE,), (Recompute.FULL,))
    assert config.broken == ()
    assert config.unknown[1] == "the schedule is not known: the layers lie on a V, as under zbv or dualpipev"
    rows = ["0,a,0,0,none", "1,b,1,0,none", "2,c,0,1,full", "3,d,1,1,none"]
    assert len(read(tmp_path, HEADER + "\n".join(rows)).unknown) == 1  # on a loop


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("0,a,1,0,none\n1,b,0,0,none", "line 3: the cells of layers rise along the chain, on a loop"),
        ("0,a,0,1,none\n1,b,0,0,none", "line 3: .* stage 0 chunk 0 behind stage 0 chunk 1"),
        ("0,a,1,0,\n1,b,1,0,none", r"line 2: HEAD stands in the first cell \(got stage 1 chunk 0\)"),
        ("0,a,0,0,none\n1,b,1,0,none\n2,c,1,0,none\n3,d,0,0,", "line 5: TAIL stands in the last cell"),
    ],
)
def test_layers_in_the_wrong_place_break_a_rule(tmp_path, rows, words):
    broken = read(tmp_path, HEADER + rows).broken
    assert any(re.search(words, str(rule)) for rule in broken)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("index,name,stage\n0,a,0", "line 1: the columns must be index,name,stage,chunk,recompute"),
        (HEADER + "0,a,0,0", r"line 2: must have 5 values \(got 4\)"),
        (HEADER + "0,a,0,0,half", r"line 2: recompute must be one of none, .*full.* \(got 'half'\)"),
        (
            HEADER + "0,a,-1,0,none\n1,b,0,1.5,none",
            "(?s)2 faults.*line 2: stage must be.*line 3: chunk must be",
        ),
        (HEADER + "0,,0,0,none", "line 2: name must be text that is not empty"),
        (HEADER + "0,a,0,0,none\n0,b,0,0,none", "(?s)index 0 stands 2 times.*index 1 is missing"),
        (HEADER + "1,a,0,0,none", "index 0 is missing"),
        (HEADER + "0,a,0,0,none\n1,b,0,0,\n2,c,0,0,none", "line 3: recompute is missing between layers"),
        (HEADER + "0,a,0,0,", "no layer has a recompute type; write none"),
        (HEADER, "no layer has a recompute type"),
        (HEADER + '0,"a,0,0,none', "the CSV is broken at line 2"),
        (HEADER + "0,a,999999,999999,none", "is too large"),
        (HEADER + "\u0661,a,0,0,none", "index must be a whole number"),
        ("", "the file is empty"),
    ],
)
def test_a_table_that_is_none_is_refused_with_its_line(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "other"}, "whose format is 'sapp-ppb-layers'"),
        ({"version": 2}, r"version must be 1 \(got 2\)"),
        ({"version": True}, r"version must be 1 \(got True\)"),
        (
            {"stages": 0, "micro_batches": 1.5},
            "(?s)stages must be an integer.*micro_batches must be an integer",
        ),
        ({"schedule": "2f2b"}, "schedule must be one of gpipe, .*'2f2b'"),
        ({"schedule": ["1f1b"]}, "schedule must be one of"),
        ({"layers": {}}, "layers must be a list"),
        ({"layers": [3]}, r"layers\[0\] must be an object of index, name, stage, chunk, recompute \(got 3\)"),
        ({"micro_batch_group": "some"}, "micro_batch_group must be a number or 'remainder-first'"),
        ({"order": {"path": "x"}}, "order must be an object of path and sha256"),
        ({"extra": 1}, "extra is unknown"),
        ({"stages": 1}, r"layers\[2\]: stage must be below 1 \(got 1\)"),
        ({"stages": 10**6, "interleave": 10**6}, "is too large"),
    ],
)
def test_json_that_is_no_list_of_layers_is_refused_with_its_place(tmp_path, changes, words):
    with pytest.raises(InputError, match=words):
        read(tmp_path, json.dumps(document(**changes)), "layers.json")


def test_numbers_in_json_are_numbers(tmp_path):
    values = document()
    values["layers"][1]["stage"] = "0"
    with pytest.raises(InputError, match=r"layers\[1\]: stage must be a whole number from 0 on \(got '0'\)"):
        read(tmp_path, json.dumps(values), "layers.json")
    del values["stages"]
    with pytest.raises(InputError, match="stages is missing"):
        read(tmp_path, json.dumps(values), "layers.json")


def test_the_schedule_of_json_says_where_the_cells_live(tmp_path):
    rows = [(0, 0), (1, 0), (0, 1), (1, 1)]  # along a loop
    layers = [
        {"index": i, "name": "Dec", "stage": s, "chunk": v, "recompute": "none"}
        for i, (s, v) in enumerate(rows)
    ]
    loop = document(interleave=2, schedule="interleaved", layers=layers)
    assert read(tmp_path, json.dumps(loop), "layers.json").broken == ()
    on_a_v = read(tmp_path, json.dumps({**loop, "schedule": "zbv"}), "layers.json")
    assert str(on_a_v.broken[0]) == (
        "layers[3]: the cells of layers rise along the chain, on a v "
        "(got stage 1 chunk 1 behind stage 0 chunk 1)"
    )


def test_an_order_that_is_not_there_or_has_changed_is_not_known(tmp_path):
    order = {"path": "order.csv", "sha256": "0" * 64}
    text = json.dumps(document(schedule="custom", order=order))
    config = read(tmp_path, text, "layers.json")
    assert (config.schedule, config.order_file) == (ScheduleName.CUSTOM, None)
    assert "there is no such file" in config.unknown[0]
    (tmp_path / "order.csv").write_text("0F0,0B0\n1F0,1B0\n")
    assert "not the one that was planned with" in read(tmp_path, text, "layers.json").unknown[0]
