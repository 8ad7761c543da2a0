"""The YAML of a MindFormers run is read as the framework would run it, and its broken rules are named."""

import re

import pytest
from hypothesis import given

from sapp_ppb.errors import InputError
from sapp_ppb.readers.frameworks.mindformers_config import read_mindformers
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets import cell_types
from sapp_ppb.writers import mindformers_text
from tests.mindformers_cases import (
    ALL_CONFIGS,
    BOTH,
    DEEPSEEK,
    FULL,
    LLAMA,
    NONE,
    QWEN,
    SELECTIVE,
    TELECHAT,
    sayable_plans,
    types_of,
)

SMALL = """\
parallel_config: {pipeline_stage: 2, micro_batch_num: 4}
model:
  model_config: {num_layers: 5, offset: [1, 0]}
recompute_config: {recompute: [2, 0]}
"""


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        path = tmp_path / "run.yaml"
        path.write_text(text)
        return read_mindformers(path)

    return read_text


def rules(config):
    return [str(rule) for rule in config.broken]


class TestRealFiles:
    def test_none_breaks_a_rule_or_leaves_anything_open(self):
        for path in ALL_CONFIGS:
            config = read_mindformers(path)
            assert (rules(config), config.unknown, config.target) == ([], (), "mindformers")
            assert sum(len(cell) for row in types_of(config) for cell in row) == config.layers

    def test_llama(self):
        config = read_mindformers(LLAMA)
        assert (config.stages, config.interleave, config.micro_batches) == (8, 1, 256)
        assert (config.schedule, config.layers, config.mtp_layers) == ("1f1b", 80, 0)
        assert config.memory_limit_mb == 52.5 * 1024
        # 80 div 8 = 10 each; both select lists are [10, 8, 6, 4, 2, 0, 0, 0].
        assert types_of(config)[0] == tuple(
            (BOTH,) * n + (NONE,) * (10 - n) for n in (10, 8, 6, 4, 2, 0, 0, 0)
        )
        assert config.notes == (
            "not modelled: mp_comm_recompute, recompute_slice_activation, fine_grain_interleave; "
            "give times and memory measured with them",
        )

    def test_qwen(self):
        config = read_mindformers(QWEN)
        assert (config.stages, config.micro_batches, config.layers) == (2, 128, 64)
        # 64 div 2 = 32, offsets -1 and 1; 1 is FULL, and of the first 31 the others are selected.
        assert config.types == (((FULL,) + (SELECTIVE,) * 30, (NONE,) * 33),)
        assert config.notes == ()

    def test_telechat(self):
        config = read_mindformers(TELECHAT)
        assert (config.stages, config.interleave, config.micro_batches) == (8, 3, 8)
        assert (config.schedule, config.micro_batch_group, config.layers) == ("interleaved", None, 96)
        # 96 div 24 = 4 and the offsets, which add up to 0.
        assert [[len(cell) for cell in row] for row in types_of(config)] == [
            [3, 3, 4, 4, 4, 4, 4, 4],
            [3, 4, 4, 4, 4, 4, 4, 4],
            [4, 4, 4, 5, 5, 5, 5, 3],
        ]
        # All are selected; select_comm_recompute deals 8 over 3, 3 and 4 layers of stage 0, and 11
        # over 4, 4 and 5 of stage 3: nine in three turns, then one each for chunks 0 and 1.
        both = [[cell.count(BOTH) for cell in row] for row in types_of(config)]
        assert [row[0] for row in both] == [3, 3, 2]
        assert [row[3] for row in both] == [4, 4, 3]
        assert [sum(stage) for stage in zip(*both, strict=True)] == [8, 8, 10, 11, 10, 7, 5, 4]
        assert {r for row in types_of(config) for cell in row for r in cell} == {BOTH, SELECTIVE}
        # 8 micro-batches are one group of 8 stages, which older releases refuse.
        assert "older releases of MindSpore interleave only multiples" in config.notes[0]

    def test_deepseek(self):
        config = read_mindformers(DEEPSEEK)
        assert (config.stages, config.interleave, config.micro_batches) == (16, 1, 32)
        # 61 layers and 1 of MTP: 62 div 16 = 3, and the offsets add up to 62 mod 16 = 14.
        assert (config.layers, config.mtp_layers, config.memory_limit_mb) == (62, 1, 55 * 1024)
        full = (3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 2, 0)
        assert types_of(config)[0] == tuple(
            (FULL,) * n + (NONE,) * (size - n) for n, size in zip(full, (4,) * 15 + (2,), strict=True)
        )


class TestSizes:
    def test_what_is_not_given_has_its_default(self, read):
        config = read("model: {model_config: {num_layers: 5}}\nrecompute_config:\n")
        assert (config.stages, config.interleave, config.micro_batches, config.schedule) == (1, 1, 1, "1f1b")
        assert (config.types, config.memory_limit_mb) == ((((NONE,) * 5,),), None)

    def test_newer_names_of_layers_and_mtp(self, read):
        config = read(
            "parallel_config: {pipeline_stage: 2, micro_batch_num: 2}\n"
            "model: {model_config: {num_hidden_layers: 4, num_nextn_predict_layers: 2, offset: [-1, 1]}}\n"
        )
        assert (config.layers, config.mtp_layers, rules(config)) == (6, 2, [])

    def test_chunks_count_only_with_pipeline_interleave(self, read):
        config = read(SMALL.replace("num_layers: 5", "num_layers: 5, pp_interleave_num: 3"))
        assert (config.interleave, config.schedule, rules(config)) == (1, "1f1b", [])
        assert config.notes == (
            "pp_interleave_num 3 takes effect only with pipeline_interleave: True; one chunk a stage",
        )

    @pytest.mark.parametrize(
        ("pipeline", "chunks", "name"),
        [
            ("{pipeline_interleave: True}", 2, "interleaved"),
            ("{pipeline_interleave: on, pipeline_scheduler: gpipe}", 1, "gpipe"),
            ("{pipeline_interleave: True, pipeline_scheduler: '1f1b'}", 1, "1f1b"),
            ("{pipeline_interleave: True, pipeline_scheduler: zero_bubble_v}", 2, "zbv"),
        ],
    )
    def test_schedules(self, read, pipeline, chunks, name):
        config = read(
            f"parallel: {{pipeline_config: {pipeline}}}\n"
            "parallel_config: {pipeline_stage: 2, micro_batch_num: 4}\n"
            f"model: {{model_config: {{num_layers: 8, pp_interleave_num: {chunks}}}}}\n"
        )
        assert (config.schedule, config.interleave, rules(config)) == (name, chunks, [])

    def test_pieces_of_the_sequence(self, read):
        text = (
            "parallel: {pipeline_config: {pipeline_interleave: True, pipeline_scheduler: seqpipe}}\n"
            "parallel_config: {pipeline_stage: 2, micro_batch_num: 4, seq_split_num: 2}\n"
            "model: {model_config: {num_layers: 8}}\n"
        )
        config = read(text)
        assert (config.schedule, config.sequence_chunks) == (ScheduleName.SEQ1F1B, 2)
        config = read(text.replace("seqpipe", "gpipe"))
        assert (config.schedule, config.sequence_chunks) == (ScheduleName.GPIPE, 1)
        assert "seq_split_num takes effect only with pipeline_scheduler seqpipe" in config.notes

    def test_gigabytes_are_of_1024_mb(self, read):
        assert read(SMALL + 'context: {max_device_memory: "58GB"}\n').memory_limit_mb == 59_392.0
        for wrong in ("58", "58MB", "0GB", "-1GB", "1e3GB", "nanGB", "9999999GB"):
            config = read(SMALL + f'context: {{max_device_memory: "{wrong}"}}\n')
            assert config.memory_limit_mb is None
            assert 'must be a number of GB such as "58GB"' in rules(config)[0]

    def test_an_offset_may_leave_mtp_out(self, read):
        # 5 mod 2 = 1 and 6 mod 2 = 0: [1, 0] counts 5.
        config = read(SMALL.replace("num_layers: 5", "num_layers: 5, mtp_depth: 1"))
        assert config.types == (((FULL, FULL, NONE), (NONE, NONE, NONE)),)
        assert "offset counts 5 layers, without the 1 of multi-token prediction" in config.notes[0]

    def test_mtp_runs_as_the_layer_before_it_whatever_the_lists_count(self, read):
        config = read(
            "parallel_config: {pipeline_stage: 2, micro_batch_num: 2}\n"
            "model: {model_config: {num_layers: 3, mtp_num_layers: 1}}\n"
            "recompute_config: {recompute: [0, 1]}\n"
        )
        assert config.types == (((NONE, NONE), (FULL, FULL)),)
        assert config.notes == (
            "MTP layers are taken to run as the layer before them, whatever the lists count",
        )


class TestVariables:
    def test_one_without_a_default_is_unknown(self, read):
        config = read(SMALL.replace("pipeline_stage: 2", "pipeline_stage: $PP"))
        assert (config.stages, config.types, rules(config)) == (None, None, [])
        assert config.unknown == (
            "parallel_config.pipeline_stage (line 1): '$PP' is not known; write its value",
        )

    @pytest.mark.parametrize(
        "key", ["num_layers: 5", "offset: [1, 0]", "recompute: [2, 0]", "micro_batch_num: 4"]
    )
    def test_each_key_that_is_needed(self, read, key):
        config = read(SMALL.replace(key, f"{key.split(':')[0]}: '${{X}}'"))
        assert len(config.unknown) == 1
        assert "'${X}' is not known" in config.unknown[0]
        assert (config.types is None) == (key != "micro_batch_num: 4")

    def test_a_default_is_taken(self, read):
        config = read(SMALL.replace("pipeline_stage: 2", 'pipeline_stage: "${PP:-2}"'))
        assert (config.stages, config.unknown, rules(config)) == (2, (), [])

    def test_layers_that_come_with_a_pretrained_model_are_unknown(self, read):
        config = read(SMALL.replace("num_layers: 5, ", ""))
        assert config.layers is None
        assert "model.model_config.num_layers is not given" in config.unknown[0]

    def test_swap_names_layers_one_by_one(self, read):
        config = read(SMALL + "swap_config: {swap: True}\n")
        assert config.types is None
        assert "swap_config.swap (line 5): with swap on, recompute lists name layers" in config.unknown[0]


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (
            "pipeline_stage: 2",
            "pipeline_stage: two",
            "pipeline_stage (line 1): must be a whole number from 1",
        ),
        ("pipeline_stage: 2", "pipeline_stage: 0", "(got 0)"),
        ("pipeline_stage: 2", "pipeline_stage: True", "(got True)"),
        (
            "micro_batch_num: 4",
            "micro_batch_num: 1",
            "micro_batch_num (line 1): must be at least pipeline_stage, 2 (got 1)",
        ),
        ("num_layers: 5", "num_layers: -5", "num_layers (line 3): must be a whole number"),
        ("num_layers: 5", "num_layers: 5, pp_interleave_num: x", "pp_interleave_num (line 3): must be"),
        ("offset: [1, 0]", "offset: [1, 1]", "offset (line 3): must add up to 5 mod 2 = 1"),
        (
            "offset: [1, 0]",
            "offset: [1]",
            "offset (line 3): must be a whole number or a list of one for each",
        ),
        ("recompute: [2, 0]", "recompute: [2, 0, 1]", "recompute (line 4): must be true, false or a list"),
        (
            "recompute: [2, 0]",
            r"select_recompute: {'a\.b': 3}",
            r"select_recompute.a\.b (line 4): must be true",
        ),
        (
            "model:",
            "parallel: {pipeline_config: {pipeline_interleave: 1}}\nmodel:",
            "pipeline_interleave (line 2): must be true or false (got 1)",
        ),
        (
            "model:",
            "parallel: {pipeline_config: {pipeline_interleave: yes, pipeline_scheduler: zbv}}\nmodel:",
            "pipeline_scheduler (line 2): must be one of",
        ),
    ],
)
def test_broken_rules_name_the_key_and_its_line(read, old, new, rule):
    assert old in SMALL
    (found,) = rules(read(SMALL.replace(old, new)))
    assert rule in found


def test_a_cell_that_falls_short_still_shows_where_the_layers_go(read):
    config = read(SMALL.replace("offset: [1, 0]", "offset: [1, 1]"))
    assert config.types == (((FULL, FULL, NONE), (NONE, NONE)),)


def test_lists_are_checked_where_the_split_is_not_known(read):
    config = read(
        SMALL.replace("offset: [1, 0]", "offset: [9]").replace("recompute: [2, 0]", "recompute: [1]")
    )
    assert [rule.split(" (")[0] for rule in rules(config)] == [
        "model.model_config.offset",
        "recompute_config.recompute",
    ]
    config = read(SMALL.replace("num_layers: 5, ", "").replace("recompute: [2, 0]", "recompute: [9, 9]"))
    assert (config.broken, config.notes, config.types) == ((), (), None)


def test_zero_bubble_v_wants_two_chunks(read):
    config = read(
        "parallel: {pipeline_config: {pipeline_interleave: True, pipeline_scheduler: zero_bubble_v}}\n"
        + SMALL
    )
    assert "pp_interleave_num: zero_bubble_v has 2 chunks a stage (got 1); give 2" in rules(config)[0]
    assert config.types is None


class TestUnreadable:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "the file is empty"),
            (
                "[1, 2]",
                "has neither parallel_config nor recompute_config nor model.model_config; is it a MindF",
            ),
            ("a: 1", "is it a MindFormers YAML?"),
            ("model: {a: 1", "the YAML is broken at line"),
            (SMALL + "model: {}\n", "gives a key more than once ('model'); keep one"),
            (SMALL + "recompute_config: &r {a: *r}\n", "refers to what it is a part of"),
            (
                SMALL.replace("num_layers: 5", "num_layers: .nan"),
                "num_layers (line 3) must be a finite number",
            ),
            (SMALL.replace("num_layers: 5", "num_layers: 5, num_layers: 6"), "gives a key more than once"),
        ],
    )
    def test_refusals(self, read, text, words):
        with pytest.raises(InputError, match=re.escape(words)):
            read(text)

    def test_what_is_wrong_in_other_parts_is_nobodys_business(self, read):
        assert not read(SMALL + "optimizer: {clip: .inf, <<: {a: 1}}\ncallbacks: !!set {a, b}\n").broken

    def test_no_utf_8(self, tmp_path):
        path = tmp_path / "run.yaml"
        path.write_bytes(b"model: \xff")
        with pytest.raises(InputError, match="the file is not UTF-8 text"):
            read_mindformers(path)


@given(sayable_plans())
def test_what_the_writer_says_of_a_plan_is_read_as_that_plan(tmp_path_factory, plan):
    path = tmp_path_factory.mktemp("written") / "run.yaml"
    path.write_text(mindformers_text(plan))
    config, problem = read_mindformers(path), plan.problem
    assert (config.broken, config.unknown) == ((), ())
    assert config.types == cell_types(plan)
    assert (config.stages, config.interleave, config.micro_batches) == (
        problem.stages,
        problem.interleave,
        problem.micro_batches,
    )
    assert (config.layers, config.mtp_layers) == (problem.model.body_count, problem.model.mtp_count)
    assert config.sequence_chunks == problem.sequence_chunks
    # The two interleaved orders have the same words in MindFormers.
    told_apart = problem.schedule_name is not ScheduleName.INTERLEAVED_LESS_MEMORY
    assert config.schedule == (problem.schedule_name if told_apart else ScheduleName.INTERLEAVED)
    if problem.micro_batches % problem.stages:
        assert config.micro_batch_group == problem.micro_batch_group
