"""Rules that MindSpeed asserts of its flags."""

import pytest

from sapp_ppb.targets.mindspeed.rules import batch_rules, flag_rules, pair_rules


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pipeline-model-parallel-layout", "noop-layers"),
        ("pipeline-model-parallel-layout", "schedules-method"),
        ("pipeline-model-parallel-layout", "pipeline-num-transformer-layers"),
        ("pipeline-model-parallel-layout", "recompute-in-advance"),
        ("pipeline-num-transformer-layers", "num-layer-list"),
        ("num-layer-list", "schedules-method"),
    ],
)
def test_flags_that_go_not_together(one, other):
    (rule,) = pair_rules({one, other, "num-layers"})
    assert (rule.key, rule.rule) == (f"--{one}", f"goes not with --{other}")
    assert pair_rules({one}) == pair_rules({other}) == []


def test_the_method_is_dualpipev():
    assert [str(rule) for rule in flag_rules({"schedules-method"}, "1f1b")] == [
        "--schedules-method: must be dualpipev (got 1f1b)"
    ]
    assert flag_rules({"schedules-method"}, "dualpipev") == []
    assert len(flag_rules({"overlap-grad-reduce", "tp-2d"}, "dualpipev")) == 2
    assert flag_rules({"overlap-grad-reduce"}, None) == []


def test_a_v_takes_two_micro_batches_a_stage():
    assert batch_rules(4, 8, 1) == batch_rules(None, 1, 1) == batch_rules(4, None, 1) == []
    assert len(batch_rules(4, 7, 2)) == 2
