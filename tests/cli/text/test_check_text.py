"""The page of a check says everything, and nothing twice."""

from sapp_ppb.cli.text.check_text import check_text
from sapp_ppb.targets import BrokenRule, PipelineConfig
from sapp_ppb.writers.check_file import Checked


def page(broken=(), notes=(), unknown=()):
    config = PipelineConfig(target="megatron", where="run.sh", notes=notes)
    return check_text(Checked(config=config, broken=broken, unknown=unknown))


def test_a_rule_that_several_keys_break_alike_is_told_once_with_all_of_them():
    broken = [
        BrokenRule(key=key, rule="must be positive", found=found)
        for key, found in (("--a", "0"), ("--b", "0"), ("--a", "0"), ("--c", "-1"))
    ]
    said = page(tuple(broken)).splitlines()
    assert [line.strip() for line in said if "must be" in line] == [
        "--a, --b: must be positive (got 0)",
        "--c: must be positive (got -1)",
    ]


def test_notes_and_unknown_values_are_told_once():
    said = page(notes=("odd", "odd", "strange"), unknown=("size", "size"))
    assert (said.count("odd"), said.count("strange"), said.count("size")) == (1, 1, 1)
