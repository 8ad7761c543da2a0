"""The manual YAML: which plan each entry is, and one message for all that is wrong in a file."""

from pathlib import Path

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.problem import Problem
from sapp_ppb.readers import read_model
from sapp_ppb.readers.older.manual_plan import read_manual_plans
from sapp_ppb.schedules import ScheduleName

ROOT = Path(__file__).parents[3]
ALL_TYPES = {recompute: 100.0 - recompute for recompute in Recompute}


def problem_of(count=9, **more):
    body = layer_from_times(
        name="Dec", kind=LayerKind.BODY, count=count, forward_ms=1, activation_mb=ALL_TYPES
    )
    values = {"stages": 2, "micro_batches": 4} | more
    return Problem(model=Model(name="tiny", layers=(body,)), **values)


def written(tmp_path, content):
    path = tmp_path / "manual.yaml"
    path.write_text(content, encoding="utf-8")
    return path


def refusal(path, problem=None):
    with pytest.raises(InputError) as caught:
        read_manual_plans(path, problem or problem_of())
    assert caught.value.where == str(path)
    return caught.value.faults


def test_the_older_tools_own_example_is_read():
    problem = Problem(model=read_model(ROOT / "examples" / "demo.json"), stages=16, micro_batches=32)
    first, second = read_manual_plans(ROOT / "tests" / "data" / "sapp" / "manual_demo.yaml", problem)
    assert (first.name, first.file_name) == ("manual1", "manual1.svg")
    assert (second.name, second.file_name) == ("manual2", "manual2.svg")
    # 96 layers in 16 x 3 cells: 2 each, one less on twelve stages of chunk 0.
    assert first.plan.problem.interleave == 3
    layers = first.plan.per_chunk_and_stage(first.plan.layers_per_cell)
    assert layers[0].tolist() == [1] * 12 + [2] * 4
    # Stage 12 of chunk 0: select 2, comm 1, so one layer runs BOTH and one SELECTIVE.
    assert first.plan.counts[0, :, 12].tolist() == [0, 1, 0, 1, 0]
    # manual2 in 16 cells: 6 each, and 1 more on stage 0, of which one layer is counted by both lists.
    assert second.plan.problem.interleave == 1
    assert second.plan.counts[0, :, 0].tolist() == [6, 0, 0, 1, 0]


def test_forms_that_the_older_tool_could_not_take_are_read(tmp_path):
    # No recompute key, no file_name, a bool for all layers, and a list of one chunk.
    path = written(
        tmp_path, "a: {offset: [[1, 0]], select_recompute: yes}\nb: {offset: [0, 1], recompute: 0}"
    )
    a, b = read_manual_plans(path, problem_of())
    assert a.plan.counts[0, Recompute.SELECTIVE].tolist() == [5, 4]
    assert b.plan.counts[0, Recompute.NONE].tolist() == [4, 5]
    assert (a.file_name, b.file_name) == (None, None)


def test_an_entry_with_other_chunks_runs_a_schedule_that_takes_them(tmp_path):
    path = written(tmp_path, "a: {offset: 0, interleave_num: 2}\nb: {offset: 0, interleave_num: 1}")
    a, b = read_manual_plans(path, problem_of(8, schedule=ScheduleName.GPIPE))
    assert (a.plan.problem.schedule_name, b.plan.problem.schedule_name) == ("interleaved", "gpipe")
    less = problem_of(8, interleave=4, schedule=ScheduleName.INTERLEAVED_LESS_MEMORY)
    a, b = read_manual_plans(path, less)
    assert (a.plan.problem.schedule_name, b.plan.problem.schedule_name) == (
        "interleaved-less-memory",
        "1f1b",
    )


def test_what_the_planner_may_not_do_a_user_may(tmp_path):
    path = written(tmp_path, "a: {offset: [0, 1], recompute: true}")
    (a,) = read_manual_plans(path, problem_of(recompute=(Recompute.NONE,), target="mindformers"))
    assert a.plan.recomputed_layers == 9


def test_unknown_keys_are_noted(tmp_path):
    path = written(tmp_path, "a: {offset: [0, 1], recomput: true}")
    with pytest.warns(FileNote, match=r"manual.yaml: a\.'recomput' is unknown and ignored; the nearest"):
        read_manual_plans(path, problem_of())


def test_all_faults_of_a_file_are_named_at_once(tmp_path):
    path = written(
        tmp_path,
        "a:\n"
        "  offset: [0, 0]\n"
        "b:\n"
        "  offset: [0, 1]\n"
        "  recompute: [5, 5]\n"
        "  select_recompute: [1]\n"
        "c: 3\n"
        "d: {recompute: false}\n"
        "e: {offset: [0, 1], show: maybe, file_name: ../e.svg}\n"
        "f: {offset: [-4, 5]}\n"
        "g: {offset: 0, interleave_num: 7}\n"
        "h: {offset: 0, interleave_num: 0}\n",
    )
    assert refusal(path) == (
        "a.offset (line 2) must add up to 9 mod 2 = 1 (got 0), so that each layer has a place",
        "b.recompute (line 5) counts 5 layers on stage 0, which has 4; count no more",
        "b.select_recompute (line 6) must be true, false, a list with a number for each of the 2 stages, "
        "or 1 such lists, one for each chunk (got [1])",
        "c (line 7) must hold offset and recompute lists (got 3)",
        "d (line 8) has no offset; give 0 for an even split, or a list",
        "e.show (line 9) must be true or false (got 'maybe')",
        "e.file_name (line 9) must be a plain name without a folder, such as manual1.svg (got '../e.svg')",
        "f (line 10) is no plan: stage 0 chunk 0 holds 0 layers of at least 1; allow fewer with --min-layers",
        "g.interleave_num (line 11) = 7 can not be: 9 BODY layers are too few for 2 stages x 7 chunks, "
        "which need 14; use fewer stages or chunks, or allow empty cells with --min-layers 0",
        "h.interleave_num (line 12) must be an integer of at least 1 (got 0)",
    )


@pytest.mark.parametrize(
    "file_name",
    ["/tmp/a.svg", "a/b.svg", "..\\\\a.svg", "C:a.svg", ".hidden.svg", "..", "a.html", "", "a\\nb.svg", "a"],
)
def test_a_file_name_that_could_leave_the_folder_or_is_no_picture_is_refused(tmp_path, file_name):
    (fault,) = refusal(written(tmp_path, f'a: {{offset: [0, 1], file_name: "{file_name}"}}'))
    assert fault.startswith("a.file_name (line 1) must ")


def test_a_file_name_that_is_no_text_is_refused(tmp_path):
    (fault,) = refusal(written(tmp_path, "a: {offset: [0, 1], file_name: [x]}"))
    assert fault == "a.file_name (line 1) must be text that is not empty (got ['x'])"


def test_two_pictures_of_one_name_are_refused(tmp_path):
    content = "a: {offset: [0, 1], file_name: x.svg}\nb: {offset: [1, 0], file_name: x.svg}"
    assert refusal(written(tmp_path, content)) == ("a, b have the same file_name 'x.svg'; give each its own",)


@pytest.mark.parametrize("content", ["[]", "3", "{}", "- a: 1"])
def test_a_file_without_entries_is_refused(tmp_path, content):
    assert refusal(written(tmp_path, content))[0].startswith(
        "must hold at least one named plan, name: {offset"
    )


def test_a_name_that_steers_a_terminal_is_refused(tmp_path):
    (fault,) = refusal(written(tmp_path, '"a\\e[2J": {offset: [0, 1]}'))
    assert fault == r"the name of a plan must be text without control characters (got 'a\x1b[2J')"


def test_a_step_of_millions_of_ops_is_refused(tmp_path):
    (fault,) = refusal(
        written(tmp_path, "a: {offset: 0, interleave_num: 1000000}"),
        problem_of(1_000_000, min_layers_per_cell=0),
    )
    assert "is too large: 16,000,000 ops" in fault
