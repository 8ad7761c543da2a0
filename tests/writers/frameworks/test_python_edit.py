"""Values of Python that are changed in place: nothing else moves, and what is not clear is refused."""

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.writers.frameworks.python_edit import with_values


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("PARTS = [0, 9]  # mine\n", "PARTS = [1]  # mine\n"),
        ("parts: list = [0,\n  9]\nx = 1", "parts: list = [1]\nx = 1"),
        ("run(a, parts=(0, 9), b=2)", "run(a, parts=[1], b=2)"),
        ("kw = {'parts': [0, 9], 'b': 2}", "kw = {'parts': [1], 'b': 2}"),
        # The name's own value changes, and both places have it.
        ("P = [0, 9]\nrun(parts=P)\nwalk(parts=P)\n", "P = [1]\nrun(parts=P)\nwalk(parts=P)\n"),
        # Columns are bytes: an umlaut and an ideograph stand before the value.
        ("x = 'ä层'; PARTS = [0]; y = 'ä'\n", "x = 'ä层'; PARTS = [1]; y = 'ä'\n"),
        ("# one\r\nPARTS = [0,\r\n 9]\r\n", "# one\r\nPARTS = [1]\r\n"),
        ("\ufeffPARTS = [0]\n", "\ufeffPARTS = [1]\n"),
        ("s = '''\nPARTS = [0]\n'''\nPARTS = [0]\x0c\n", "s = '''\nPARTS = [0]\n'''\nPARTS = [1]\x0c\n"),
    ],
)
def test_the_value_alone_changes(before, after):
    assert with_values(before, "job.py", {"parts": "[1]"}) == after


def test_several_values_of_one_line_and_over_lines_change_together():
    before = "run(a=[1,\n 2], b=3, c=[4,\n 5], d=6)\n"
    assert with_values(before, "job.py", {"a": "A", "b": "B", "c": "C"}) == "run(a=A, b=B, c=C, d=6)\n"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("p = Plugin(\n    x=1,\n)", "p = Plugin(\n    a=A, b=B, x=1,\n)"),
        ("p = lib.Plugin(y, x=1)", "p = lib.Plugin(y, a=A, b=B, x=1)"),
        ("p = Plugin(a=0, x=1)", "p = Plugin(b=B, a=A, x=1)"),
        ("p = Plugin(**kw)", "p = Plugin(a=A, b=B, **kw)"),
    ],
)
def test_keywords_that_lack_are_put_into_the_call(text, after):
    assert with_values(text, "job.py", {"a": "A", "b": "B"}, call="Plugin") == after


def test_a_keyword_that_is_none_is_not_put_anywhere():
    assert with_values("p = Plugin(x=1)", "job.py", {"a": "None"}, call="Plugin") == "p = Plugin(x=1)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = 1\na = 2", "a is given more than once"),
        ("a = 1\na += 2", "a is given more than once"),
        ("run(a=1)\nrun(a=1)", "a is given more than once"),
        ("N = 4\nrun(a=N, b=N)", "gives a and b by one name"),
        ("a = 1", "gives b nowhere"),
        ("a = (", "the Python is broken at line 1"),
        ("a = 1\0", "can not be read|broken"),
    ],
)
def test_what_is_not_clear_is_refused(text, words):
    with pytest.raises(InputError, match=words):
        with_values(text, "job.py", {"a": "A", "b": "B"})
