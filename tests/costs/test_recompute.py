"""The five recompute types and their names."""

import pytest

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError


def test_types_are_ordered_by_their_default_extra_time():
    # the older tool's defaults: none, selective, communication, both, all of the forward
    assert [r.default_coefficient for r in Recompute] == [0, 0.04, 0.125, 0.165, 0.5]
    assert [r.label for r in Recompute] == ["none", "selective", "comm", "both", "full"]


def test_every_key_of_a_model_file_belongs_to_one_type():
    keys = [key for r in Recompute for key in (r.memory_key, r.coefficient_key, r.time_key)]
    assert len(set(keys)) == 3 * 5


def test_the_key_of_the_full_recompute_time_has_no_trailing_blank():
    # the older tool looked for "recompute_time " and so ignored what users wrote
    assert Recompute.FULL.time_key == "recompute_time"


def test_mindformers_lists_count_each_type_as_the_older_tool_translates_it():
    # recompute = FULL; select = SELECTIVE + BOTH + FULL; comm = COMM + BOTH + FULL
    counted = {
        name: [r.label for r in Recompute if name in r.mindformers_lists]
        for name in ("recompute", "select_recompute", "select_comm_recompute")
    }
    assert counted == {
        "recompute": ["full"],
        "select_recompute": ["selective", "both", "full"],
        "select_comm_recompute": ["comm", "both", "full"],
    }


def test_a_label_leads_back_to_its_type():
    assert [Recompute.from_label(r.label) for r in Recompute] == list(Recompute)


def test_an_unknown_label_is_refused_with_those_that_exist():
    with pytest.raises(InputError, match="'selectve' is unknown; one of none, selective, comm, both, full"):
        Recompute.from_label("selectve")
