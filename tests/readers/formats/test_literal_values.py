"""Values under known names: where they stand, what is read of them, and what is not."""

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.literal_values import read_literals
from sapp_ppb.readers.formats.python_settings import Unread


def value_of(tmp_path, text, name="a", file="job.py"):
    path = tmp_path / file
    path.write_text(text, encoding="utf-8")
    return read_literals(path, [name]).values.get(name)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a = 3", 3),
        ("A: int = 3", 3),
        ("run(a=-3)", -3),
        ("kw = {'a': 'x'}", "x"),
        ("a = [1] * 2 + [3]", [1, 1, 3]),
        ("N = [1, 2]\na = [*N, 3]", [1, 2, 3]),
        # An f-string of a number is plain too.
        ("a = {f'l.{1}': P.SplitPoint.END, 2: SplitPoint.BEGINNING}", {"l.1": "END", 2: "BEGINNING"}),
        ("a = {'l.1': P.SplitPoint.END, 2: SplitPoint.BEGINNING}", {"l.1": "END", 2: "BEGINNING"}),
        ("a = 1\nrun(a=1)", 1),
        ("b = 1", None),
        ("def f(a=3):\n    pass", None),
    ],
)
def test_plain_values_are_read(tmp_path, text, value):
    assert value_of(tmp_path, text) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = args.a", "line 1 gives 'args.a'"),
        ("\na = [0] * 1000000000", "line 2 gives"),
        ("a = [[0] * 99999] * 99999", "line 1 gives"),
        ("a = " + " + ".join(["[0] * 60000"] * 3), "line 1 gives"),
        ("a = 1\na = 2", "line 2 gives another value"),
        ("if x:\n    a = 1\nelse:\n    a = 2", "gives another value"),
        ("a = 1\na += 1", "line 2 gives another value"),
        ("N = 1\nN = 2\na = N", "line 3 gives 'N'"),
        ("a = {x: 1}", "line 1 gives"),
        ("a = {**b}", "line 1 gives"),
        ("a = Point.BEGINNING", "line 1 gives"),
    ],
)
def test_what_only_running_would_show_is_told(tmp_path, text, words):
    found = value_of(tmp_path, text)
    assert isinstance(found, Unread)
    assert words in found.why


def test_names_of_json_may_be_nested_and_the_outermost_counts(tmp_path):
    assert value_of(tmp_path, '{"x": {"y": {"A": 1}}}', file="a.json") == 1
    assert value_of(tmp_path, '{"x": {"a": 1}, "a": 2}', file="a.json") == 2
    assert value_of(tmp_path, '{"a": {"a": 1}}', file="a.json") == {"a": 1}


def test_calls_and_keywords_are_named(tmp_path):
    (tmp_path / "job.py").write_text("x.Run(a=1)(b=2, **c)")
    found = read_literals(tmp_path / "job.py", [])
    assert "Run" in found.calls
    assert {"a", "b"} <= found.keywords


@pytest.mark.parametrize(
    "text", ["a = " + "-" * 100_000 + "1", "a = " + "[0]+" * 60_000 + "[0]", "a = " + "(" * 300]
)
def test_what_is_nested_too_deep_is_refused(tmp_path, text):
    with pytest.raises(InputError, match=r"nested too deep|too many nested"):
        value_of(tmp_path, text)
