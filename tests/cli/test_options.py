"""How text on the command line becomes numbers."""

import pytest

from sapp_ppb.cli.options.values import numbers, share
from sapp_ppb.errors import InputError


@pytest.mark.parametrize(("text", "value"), [("1%", 0.01), ("0.01", 0.01), (" 2.5 % ".strip(), 0.025)])
def test_shares(text, value):
    assert share("--gap", text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("text", ["", "1,", "1_000", "a,b", "1;2"])
def test_what_is_no_number(text):
    with pytest.raises(InputError, match="is not a number of MB"):
        numbers("--memory-limit", text, "MB")
