"""The part of the memory limit that is kept free."""

import math
import re

import pytest

from sapp_ppb.errors import InputError
from tests.problem.problems import problem


def test_a_margin_is_taken_off_every_limit() -> None:
    assert problem(memory_limit_mb=[400, 300, 200, 100], memory_margin=40).limit_per_stage_mb == (
        360,
        260,
        160,
        60,
    )
    shares = problem(memory_limit_mb=[400, 300, 200, 100], memory_margin="25%")
    assert shares.limit_per_stage_mb == (300, 225, 150, 75)
    assert shares.margin_per_stage_mb == (100, 75, 50, 25)
    assert problem().margin_per_stage_mb == (0.0,) * 4


def test_limit_for_is_the_other_way_round() -> None:
    # 75 % of 400 MB and 340 + 60 MB.
    assert problem(memory_limit_mb=100, memory_margin="25%").limit_for(300) == pytest.approx(400)
    assert problem(memory_limit_mb=100, memory_margin=60).limit_for(340) == 400


@pytest.mark.parametrize(
    ("margin", "words"),
    [
        ("100%", "from 0% to below 100% (got '100%')"),
        ("-1%", "from 0% to below 100% (got '-1%')"),
        ("nan%", "from 0% to below 100% (got 'nan%')"),
        ("5", "from 0% to below 100% (got '5')"),
        ("%", "from 0% to below 100% (got '%')"),
        (-1, "a number of at least 0 MB"),
        (math.nan, "a number of at least 0 MB"),
        (True, "a number of at least 0 MB"),
        (100, "memory-margin must be below the memory limit of 100 MB (got 100 MB)"),
    ],
)
def test_a_margin_that_can_not_be_is_refused(margin, words) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        problem(memory_limit_mb=[100, 200, 200, 200], memory_margin=margin)


def test_a_margin_needs_a_limit_to_be_kept_of() -> None:
    with pytest.raises(InputError, match="there is none; give --memory-limit"):
        problem(memory_margin="5%")
