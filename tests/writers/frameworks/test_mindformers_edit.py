"""A plan goes into an existing MindFormers YAML, and only the keys of the plan change."""

import re
from difflib import unified_diff

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.problem import Problem
from sapp_ppb.readers.frameworks.mindformers_config import read_mindformers
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets import cell_types, plan_from_types
from sapp_ppb.writers import mindformers_into
from tests.mindformers_cases import (
    ALL_CONFIGS,
    BOTH,
    COMM,
    DEEPSEEK,
    FULL,
    NONE,
    QWEN,
    SELECTIVE,
    TELECHAT,
    model_of,
    problem_of,
    sayable_plans,
    types_of,
)

OUR_KEYS = {
    "pipeline_stage",
    "micro_batch_num",
    "seq_split_num",
    "pipeline_config",
    "pipeline_interleave",
    "pipeline_scheduler",
    "pp_interleave_num",
    "offset",
    "recompute",
    "select_recompute",
    "select_comm_recompute",
}
SMALL = """\
# a run
parallel_config:
    pipeline_stage:   2   # stages
    micro_batch_num: 4
model:
    model_config: {num_layers: 5, offset: [1, 0]}
recompute_config:
    recompute: [2,0]
"""


def text_of(path):
    return path.read_bytes().decode()  # line ends as they are


def changes(before, after):
    """Lines taken out, and lines put in."""
    lines = list(unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    return [[line[1:] for line in lines if line.startswith(mark)] for mark in "-+"]


def small_plan(*types, mtp=0, **fields):
    """Plan of SMALL's sizes whose cells have these types."""
    count = sum(map(len, types))
    fields = {"stages": 2, "micro_batches": 4} | fields
    problem = Problem(model=model_of(count - mtp, mtp=mtp), **fields)
    rows = [types[row : row + problem.stages] for row in range(0, len(types), problem.stages)]
    return plan_from_types(problem, tuple(rows))


class TestRealFiles:
    @pytest.mark.parametrize("path", ALL_CONFIGS, ids=lambda path: path.stem)
    def test_the_plan_that_a_file_has_changes_nothing(self, path):
        config = read_mindformers(path)
        plan = plan_from_types(problem_of(config), types_of(config))
        assert mindformers_into(text_of(path), plan, str(path)) == text_of(path)

    def test_only_its_keys_change_in_the_671b_file(self):
        config = read_mindformers(DEEPSEEK)
        (row,) = types_of(config)
        # A layer less on stage 0, which is then all FULL, and one more at the end; stage 13 all FULL.
        moved = ((FULL,) * 3, *row[1:13], (FULL,) * 4, row[14], (*row[15], NONE))
        plan = plan_from_types(problem_of(config, micro_batches=64), (moved,))
        with pytest.warns(
            FileNote, match=r"the value at &micro_batch_num changes, and so does all that refers"
        ):
            edited = mindformers_into(text_of(DEEPSEEK), plan, str(DEEPSEEK))
        assert changes(text_of(DEEPSEEK), edited) == [
            [
                "  micro_batch_num: &micro_batch_num 32",
                "  recompute: [3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 2, 0]",
                "    offset: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1]",
            ],
            [
                "  micro_batch_num: &micro_batch_num 64",
                "  recompute: [3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2, 0]",
                "    offset: [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]",
            ],
        ]

    def test_two_chunks_for_the_671b_file(self):
        # 62 layers on 16 x 2 cells: 62 div 32 = 1, and 30 cells of 2.
        problem = problem_of(
            read_mindformers(DEEPSEEK), interleave=2, schedule=ScheduleName.INTERLEAVED, micro_batches=32
        )
        types = (
            ((COMM, NONE),) * 16,
            (*((NONE, NONE),) * 14, (NONE,), (NONE,)),
        )
        edited = mindformers_into(text_of(DEEPSEEK), plan_from_types(problem, types), str(DEEPSEEK))
        ones, zeros = ", ".join(["1"] * 16), ", ".join(["0"] * 16)
        assert changes(text_of(DEEPSEEK), edited) == [
            [
                "  recompute: [3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 2, 0]",
                "    offset: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1]",
            ],
            [
                "  pipeline_config:",
                "    pipeline_interleave: True",
                "  recompute: False",
                f"  select_comm_recompute: [[{ones}], [{zeros}]]",
                f"    offset: [[{ones}], [{', '.join(['1'] * 14)}, 0, 0]]",
                "    pp_interleave_num: 2",
            ],
        ]

    def test_patterns_stay_and_their_lists_change_in_the_qwen_file(self):
        config = read_mindformers(QWEN)
        types = (((FULL,) * 2 + (SELECTIVE,) * 30, (SELECTIVE,) * 5 + (NONE,) * 27),)
        edited = mindformers_into(text_of(QWEN), plan_from_types(problem_of(config), types), str(QWEN))
        patterns = [r"mul", r"w1\.activation\.silu", r"w1\.reshape", r"w2\.reshape"]
        assert changes(text_of(QWEN), edited) == [
            [
                "  recompute: [1, 0]",
                *[rf"    'feed_forward\.{pattern}': [ 31, 0]" for pattern in patterns],
                "    offset: [-1, 1]",
            ],
            [
                "  recompute: [2, 0]",
                *[rf"    'feed_forward\.{pattern}': [ 32, 5]" for pattern in patterns],
                "    offset: [0, 0]",
            ],
        ]

    def test_a_bool_that_still_means_the_plan_stays_in_the_telechat_file(self):
        config = read_mindformers(TELECHAT)
        types = tuple(tuple((SELECTIVE,) * len(cell) for cell in row) for row in types_of(config))
        edited = mindformers_into(text_of(TELECHAT), plan_from_types(problem_of(config), types), "t.yaml")
        assert changes(text_of(TELECHAT), edited) == [
            ["  select_comm_recompute: [ 8, 8, 10, 11, 10, 7, 5, 4 ]"],
            ["  select_comm_recompute: False"],
        ]

    @pytest.mark.filterwarnings("ignore::sapp_ppb.errors.FileNote")
    @pytest.mark.parametrize("path", ALL_CONFIGS, ids=lambda path: path.stem)
    @pytest.mark.parametrize(
        ("name", "stages", "chunks"),
        [
            (ScheduleName.ONE_F_ONE_B, 4, 1),
            (ScheduleName.INTERLEAVED, 4, 2),
            (ScheduleName.ZBV, 4, 2),
            (ScheduleName.GPIPE, 2, 1),
            (ScheduleName.SEQ1F1B, 2, 1),
        ],
    )
    def test_other_plans_are_read_back_and_touch_no_other_key(self, tmp_path, path, name, stages, chunks):
        config = read_mindformers(path)
        problem = problem_of(
            config,
            stages=stages,
            interleave=chunks,
            schedule=name,
            micro_batches=16,
            micro_batch_group=None,
            sequence_chunks=2 if name is ScheduleName.SEQ1F1B else 1,
        )
        layers = problem.model.body_count
        each, rest = divmod(layers, problem.cells)
        falling = [
            ((FULL, BOTH, SELECTIVE) + (NONE,) * layers)[: each + (cell < rest)]
            for cell in range(problem.cells)
        ]
        types = tuple(tuple(falling[cell] for cell in row) for row in problem.cell_at)
        edited = mindformers_into(text_of(path), plan_from_types(problem, types), str(path))
        out = tmp_path / "edited.yaml"
        out.write_text(edited)
        again = read_mindformers(out)
        assert (again.types, again.broken, again.unknown) == (types, (), ())
        assert (again.schedule, again.stages, again.interleave) == (name, stages, chunks)
        assert (again.memory_limit_mb, again.layers) == (config.memory_limit_mb, config.layers)
        for line in [line for lines in changes(text_of(path), edited) for line in lines]:
            key = line.split(":")[0].strip()
            assert key in OUR_KEYS or key.startswith("'feed_forward"), line


class TestWhatChanges:
    def test_numbers_change_and_comments_spaces_and_styles_stay(self):
        plan = small_plan((FULL, NONE), (FULL, FULL, NONE), micro_batches=8)
        assert mindformers_into(SMALL, plan, "s.yaml") == (
            SMALL.replace("micro_batch_num: 4", "micro_batch_num: 8")
            .replace("offset: [1, 0]", "offset: [0, 1]")
            .replace("recompute: [2,0]", "recompute: [1,2]")
        )

    def test_other_stages_are_said_to_need_other_devices(self):
        plan = small_plan((NONE,), (NONE,), (NONE,), (NONE, NONE), stages=4)
        with pytest.warns(FileNote, match=r"s.yaml: pipeline_stage changes from 2 to 4"):
            edited = mindformers_into(SMALL, plan, "s.yaml")
        assert "pipeline_stage:   4   # stages\n" in edited
        assert "offset: [0, 0, 0, 1]" in edited

    def test_one_stage_needs_no_offset(self):
        with pytest.warns(FileNote, match="pipeline_stage changes from 2 to 1"):
            edited = mindformers_into(SMALL, small_plan((FULL,) * 2 + (NONE,) * 3, stages=1), "s.yaml")
        assert changes(SMALL, edited)[1] == ["    pipeline_stage:   1   # stages", "    recompute: [2]"]

    def test_a_list_dealt_over_chunks_stays_where_it_means_the_plan(self, tmp_path):
        text = (
            "parallel: {pipeline_config: {pipeline_interleave: true}}\n"
            "parallel_config: {pipeline_stage: 2, micro_batch_num: 4}\n"
            "model: {model_config: {num_layers: 8, pp_interleave_num: 2}}\n"
            "recompute_config: {recompute: [3, 1]}\n"
        )
        cells = [(FULL, FULL), (FULL, NONE), (FULL, NONE), (NONE, NONE)]  # 3 dealt: chunks 0, 1, 0
        same = small_plan(*cells, interleave=2)
        assert mindformers_into(text, same, "x.yaml") == text
        other = small_plan((FULL, NONE), *cells[1:], interleave=2)
        assert changes(text, mindformers_into(text, other, "x.yaml"))[1] == [
            "recompute_config: {recompute: [[1, 1], [1, 0]]}"
        ]
        one_chunk = small_plan((NONE,) * 4, (NONE,) * 4)
        assert changes(text, mindformers_into(text, one_chunk, "x.yaml"))[1] == [
            "parallel: {pipeline_config: {pipeline_interleave: false}}",
            "recompute_config: {recompute: False}",
        ]

    def test_patterns_alone_get_lists(self):
        text = SMALL + "    select_recompute: ['mlp\\.mul', 'b']\n"
        plan = small_plan((FULL, FULL, SELECTIVE), (NONE, NONE))
        assert changes(text, mindformers_into(text, plan, "s.yaml"))[1] == [
            r"    select_recompute: {'mlp\.mul': [3, 0], b: [3, 0]}"
        ]

    def test_lists_that_count_full_layers_or_not_mean_the_same(self):
        for select in ("[3, 0]", "[3, 0]  # FULL too"):
            text = SMALL + f"    select_recompute: {select}\n"
            assert mindformers_into(text, small_plan((FULL, FULL, SELECTIVE), (NONE, NONE)), "s") == text
        text = SMALL + "    select_recompute: [1, 0]\n"  # the first is FULL anyway
        assert mindformers_into(text, small_plan((FULL, FULL, NONE), (NONE, NONE)), "s") == text

    def test_nothing_but_what_is_needed_is_added(self):
        bare = "model:\n  model_config:\n    num_hidden_layers: 5\n"
        plan = small_plan((NONE,) * 5, stages=1, micro_batches=1)
        assert mindformers_into(bare, plan, "b.yaml") == bare
        assert mindformers_into(bare, small_plan((SELECTIVE, NONE, NONE), (NONE, NONE)), "b.yaml") == (
            "model:\n  model_config:\n    num_hidden_layers: 5\n    offset: [1, 0]\n"
            "parallel_config:\n  pipeline_stage: 2\n  micro_batch_num: 4\n"
            "recompute_config:\n  select_recompute: [1, 0]\n"
        )


class TestMultiTokenPrediction:
    TEXT = SMALL.replace("num_layers: 5", "num_layers: 5, mtp_depth: 1")  # 5 mod 2 = 1: MTP left out

    def test_an_offset_that_leaves_it_out_goes_on_to_do_so(self):
        plan = small_plan((FULL, FULL), (NONE, NONE, NONE, NONE), mtp=1)
        assert changes(self.TEXT, mindformers_into(self.TEXT, plan, "s.yaml"))[1] == [
            "    model_config: {num_layers: 5, mtp_depth: 1, offset: [0, 1]}"
        ]

    def test_one_that_counts_it_goes_on_to_do_so(self):
        text = self.TEXT.replace("[1, 0]", "[0, 0]")
        plan = small_plan((FULL, FULL), (NONE, NONE, NONE, NONE), mtp=1)
        assert "offset: [-1, 1]" in mindformers_into(text, plan, "s.yaml")

    def test_a_plan_that_has_it_in_its_tail(self):
        text = self.TEXT.replace("[1, 0]", "[0, 0]")
        edited = mindformers_into(text, small_plan((FULL, FULL, NONE), (NONE, NONE)), "s.yaml")
        assert edited == text  # 3 and 2 and the one of MTP

    def test_a_model_that_does_not_mark_it(self):
        text = self.TEXT.replace("[1, 0]", "[0, 0]")
        assert mindformers_into(text, small_plan((FULL, FULL, NONE), (NONE,) * 3), "s.yaml") == text
        with pytest.raises(InputError, match=r'run as the layer before them does; mark them .* "mtp": true'):
            mindformers_into(text, small_plan((NONE,) * 5, (FULL,)), "s.yaml")


class TestRefusals:
    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            (
                "num_layers: 5",
                "num_layers: 6",
                "num_layers gives 6 layers and the plan has 5; take the file of",
            ),
            (
                "num_layers: 5",
                "num_layers: 6, mtp_depth: 1",
                "num_layers gives 6 + 1 of MTP layers and the plan",
            ),
            ("num_layers: 5", "num_layers: 5, mtp_depth: x", "mtp_depth must be a whole number (got 'x')"),
            ("recompute_config:", "swap_config: {swap: True}\nrecompute_config:", "swap_config.swap is on"),
            (
                "recompute_config:\n",
                "recompute_config: True\na:\n",
                "recompute_config must hold keys to be edited",
            ),
            ("# a run", "---\na: 1\n---", "must hold one YAML document"),
            ("model:", "model: [", "the YAML can not be read"),
        ],
    )
    def test_a_file_that_can_not_take_the_plan(self, old, new, words):
        plan = small_plan((FULL, NONE, NONE), (NONE, NONE))
        with pytest.raises(InputError, match=re.escape(words)) as caught:
            mindformers_into(SMALL.replace(old, new), plan, "s.yaml")
        assert caught.value.where == "s.yaml"

    def test_mtp_layers_that_differ(self):
        text = SMALL.replace("num_layers: 5", "num_layers: 4, mtp_depth: 2")
        with pytest.raises(InputError, match="mtp_depth is 2 and the plan has 1 MTP layers"):
            mindformers_into(text, small_plan((FULL, NONE, NONE), (NONE,) * 3, mtp=1), "s.yaml")


BASES = [
    SMALL,
    "model: {model_config: {num_layers: 5}}",
    "model:\n  model_config:\n  # what\n    num_layers: 5\nparallel_config:\nrecompute_config:\n",
    SMALL
    + "    select_recompute: {'mlp\\.mul': [1, 0], 'b': [True, False]}\n    select_comm_recompute: True\n",
    SMALL
    + "    select_recompute:\n    - [1, 0]\n"
    + "parallel:\n  pipeline_config:\n    pipeline_scheduler: '1f1b' # s\n",
    "parallel: {pipeline_config: {pipeline_interleave: on, pipeline_scheduler: gpipe}}\n" + SMALL,
]


@pytest.mark.filterwarnings("ignore::sapp_ppb.errors.FileNote")
@given(sayable_plans(), st.sampled_from(BASES), st.sampled_from(["\n", "\r\n"]))
def test_any_plan_goes_into_any_file_and_comes_out_of_it(tmp_path_factory, plan, base, line_break):
    problem, mtp = plan.problem, plan.problem.model.mtp_count
    layers = f"num_layers: {problem.model.body_count - mtp}"
    with_mtp = {True: f", mtp_num_layers: {mtp}", False: f"\n    mtp_num_layers: {mtp}"}["{num" in base]
    text = base.replace("num_layers: 5", layers + (with_mtp if mtp else "")).replace("\n", line_break)
    edited = mindformers_into(text, plan, "x.yaml")
    path = tmp_path_factory.mktemp("edited") / "run.yaml"
    path.write_bytes(edited.encode())
    config = read_mindformers(path)
    assert (config.broken, config.unknown) == ((), ())
    assert config.types == cell_types(plan)
    assert (config.stages, config.interleave, config.micro_batches) == (
        problem.stages,
        problem.interleave,
        problem.micro_batches,
    )
    assert config.sequence_chunks == problem.sequence_chunks
    # A second time there is nothing left to change, and line ends are of one kind.
    assert mindformers_into(edited, plan, "x.yaml") == edited
    assert edited.count("\n") == edited.count(line_break if line_break in text else "\n")
    assert [line.split("#")[1] for line in edited.splitlines() if "#" in line] == [
        line.split("#")[1] for line in text.splitlines() if "#" in line
    ]
