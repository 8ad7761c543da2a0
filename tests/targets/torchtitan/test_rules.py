"""Rules of torchtitan: each is broken by a list of its own, and kept by a good one."""

import pytest

from sapp_ppb.costs import Recompute
from sapp_ppb.schedules import Placement, ScheduleName
from sapp_ppb.targets.torchtitan.rules import (
    checkpoint_rules,
    checkpoint_types,
    group_of,
    is_single,
    micro_batch_rules,
    module_notes,
    module_rules,
    part_rules,
    schedule_named,
)

GOOD = [["tok_embeddings", "layers.0"], ["layers.1"], ["layers.2", "norm", "output"]]


def rules_of(parts, layers=None):
    return [str(rule) for rule in module_rules(parts, layers)]


@pytest.mark.parametrize(
    "parts",
    [
        GOOD,
        [["vision_encoder", "tok_embeddings"], ["layers.1", "layers.0"], ["norm", "lm_head"]],
        # norm may go ahead of the head, as its own part
        [["tok_embeddings", "layers.0"], ["norm"], ["output"]],
    ],
)
def test_good_lists_break_no_rule(parts):
    assert rules_of(parts) == []


@pytest.mark.parametrize(
    ("parts", "layers", "words"),
    [
        (GOOD, 5, "dropped without a word (got layers.3, layers.4 in none)"),
        (GOOD, 2, "does not have is ignored (got layers.2 of 2 layers)"),
        ([*GOOD[:1], [], *GOOD[1:]], None, "a part must hold a module (got none in part 1)"),
        ([GOOD[0], ["layers.0", "layers.1"], GOOD[2]], None, "runs twice, with weights of its own"),
        (
            [["tok_embeddings", "layers.1"], ["layers.0"], ["layers.2", "norm", "output"]],
            None,
            "follow those of the parts before it (got layers.0 in part 1, behind layers.1)",
        ),
        (
            [["layers.0"], ["layers.1", "norm", "output"]],
            None,
            "tok_embeddings stands in the first part (got none)",
        ),
        (
            [["layers.0"], ["tok_embeddings", "layers.1", "norm", "output"]],
            None,
            "tok_embeddings stands in the first part (got part 1 of 2)",
        ),
        (
            [["tok_embeddings", "layers.0"], ["layers.1", "norm"]],
            None,
            "output or lm_head stands in the last part",
        ),
        ([["tok_embeddings", "layers.0"], ["layers.1", "output"]], None, "norm in no part is dropped"),
        (
            [["tok_embeddings", "layers.0", "norm"], ["layers.1", "output"]],
            None,
            "norm stands behind the last layer (got part 0 of 2)",
        ),
    ],
)
def test_each_rule_of_the_lists_is_told_by_its_words(parts, layers, words):
    (rule,) = rules_of(parts, layers)
    assert words in rule


def test_many_layers_are_not_all_listed():
    (rule,) = rules_of(GOOD, 40)
    # 40 - 3 = 37 are missing, of which five are shown
    assert "layers.3, layers.4, layers.5, layers.6, layers.7 and 32 more in none" in rule


def test_what_is_odd_in_lists_is_a_note():
    parts = [["eye", "tok_embeddings", "layers.1", "layers.0"], ["layers.07", "norm", "output"]]
    assert module_notes(parts) == [
        "eye in part 0 is not priced",
        "part 0 names its layers out of order; they run in order",
        "layers.07 in part 1 is not priced",
    ]


@pytest.mark.parametrize(
    ("parts", "stages", "schedule", "words"),
    [
        (6, 4, ScheduleName.INTERLEAVED, "must divide by pipeline_parallel_degree"),
        (6, 4, None, "must divide by pipeline_parallel_degree"),
        (8, 4, ScheduleName.ONE_F_ONE_B, "1F1B runs one part a rank"),
        (8, 4, ScheduleName.GPIPE, "GPipe runs one part a rank"),
        (4, 4, ScheduleName.ZBV, "ZBVZeroBubble runs exactly two parts a rank"),
        (12, 4, ScheduleName.DUALPIPEV, "DualPipeV runs exactly two parts a rank"),
        (4, 4, ScheduleName.INTERLEAVED, "at least two parts a rank"),
    ],
)
def test_each_rule_of_the_number_of_parts(parts, stages, schedule, words):
    (rule,) = part_rules(parts, stages, schedule)
    assert words in str(rule)
    assert rule.found == f"{parts} parts for {stages} ranks"


def test_numbers_of_parts_that_run():
    assert part_rules(4, 4, ScheduleName.ONE_F_ONE_B) == part_rules(8, 4, ScheduleName.ZBV) == []
    assert part_rules(12, 4, ScheduleName.INTERLEAVED) == part_rules(12, 4, None) == []


def test_names_of_schedules_ignore_case_and_families_are_known():
    assert schedule_named("DUALPIPEV") is ScheduleName.DUALPIPEV
    assert (is_single("gpipe"), is_single("PipelineScheduleSingle"), is_single("LoopedBFS")) == (
        True,
        True,
        False,
    )


@pytest.mark.parametrize(
    ("schedule", "chunks", "micro_batches", "words"),
    [
        (ScheduleName.ONE_F_ONE_B, 1, 3, "at least as many micro-batches as stages, 4"),
        # 9 // 4 = 2 rounds of 4 leave one
        (ScheduleName.INTERLEAVED, 2, 9, "9 micro-batches into 2 equal rounds"),
        (ScheduleName.INTERLEAVED_ZERO_BUBBLE, 1, 9, "9 micro-batches into 2 equal rounds"),
        # 2 x 4 parts
        (ScheduleName.DUALPIPEV, 2, 7, "dualpipev"),
    ],
)
def test_micro_batches_that_a_schedule_refuses(schedule, chunks, micro_batches, words):
    (rule,) = micro_batch_rules(schedule, 4, chunks, micro_batches)
    assert words in rule.rule
    assert rule.found == f"{micro_batches} micro-batches"


def test_micro_batches_that_run():
    assert micro_batch_rules(ScheduleName.INTERLEAVED, 4, 2, 10) == []  # two rounds of 5
    assert micro_batch_rules(ScheduleName.INTERLEAVED, 4, 2, 3) == []  # one round
    assert micro_batch_rules(ScheduleName.DUALPIPEV, 4, 2, 8) == []
    assert group_of(ScheduleName.INTERLEAVED, 4, 10) == 5
    assert group_of(ScheduleName.LOOPED_BFS, 4, 10) is None


def test_every_second_layer_is_counted_over_the_parts_of_a_rank_on_a_v():
    # Rank 0 holds parts 0 and 3: layers a b c and then d; the second and fourth are recomputed.
    types = checkpoint_types("selective", "2", [3, 1, 1, 1], 2, Placement.V)
    none, full = Recompute.NONE, Recompute.FULL
    assert types == (((none, full, none), (none,)), ((full,), (full,)))


@pytest.mark.parametrize(
    ("mode", "option", "expected"),
    [
        ("none", "2", Recompute.NONE),
        ("full", "2", Recompute.FULL),
        ("selective", "op", Recompute.SELECTIVE),
        ("selective", "1", Recompute.FULL),
        ("selective", "0", Recompute.FULL),  # "not ac_freq or ..." takes every layer
    ],
)
def test_modes_that_hold_for_every_layer(mode, option, expected):
    assert checkpoint_rules(mode, option) == []
    assert checkpoint_types(mode, option, [2, 1], 2, Placement.LOOP) == (((expected,) * 2, (expected,)),)


@pytest.mark.parametrize(
    ("mode", "option", "words"),
    [
        ("all", "op", "none, full, selective, memory_budget"),
        ("selective", "-2", "'op' or a number of layers"),
    ],
)
def test_modes_that_do_not_exist(mode, option, words):
    (rule,) = checkpoint_rules(mode, option)
    assert words in rule.rule
    assert checkpoint_types(mode, option, [2, 1], 2, Placement.LOOP) is None


def test_a_memory_budget_is_the_compilers_choice():
    assert checkpoint_rules("memory_budget", "2") == []
    assert checkpoint_types("memory_budget", "2", [2, 1], 2, Placement.LOOP) is None
