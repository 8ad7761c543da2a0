"""Words of launch scripts: quotes, lines that go on, arrays, strings of arguments, branches."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.errors import InputError
from sapp_ppb.syntax.shell_words import shell_words


def texts(script):
    return [word.text for word in shell_words(script, "run.sh") if word.variable is None]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("--a 1 \\\n  --b 2", ["--a", "1", "--b", "2"]),
        ("--a 1 \\\r\n  --b 2\r\n", ["--a", "1", "--b", "2"]),
        ("--a 1 # --b 2\n--c 3", ["--a", "1", "--c", "3"]),
        ("--a x#y", ["--a", "x#y"]),
        ("--a 'x y' \"z w\"", ["--a", "x y", "z w"]),
        (r"--a Et\*3\|tL", ["--a", "Et*3|tL"]),
        ("--a Et*3|(tt|)*2L", ["--a", "Et*3|(tt|)*2L"]),
        ('--a "x\\"y\\$z"', ["--a", 'x"y$z']),
        ("ARGS=(\n  --a 1  # one\n  --b 2\n)\nrun", ["--a", "1", "--b", "2", "run"]),
        ("ARGS+=(--a 1)", ["--a", "1"]),
        ("a;b", ["a", "b"]),
        ("x=1; --a", ["--a"]),
        ("--a $(nproc --all) `date +%s` ${X:-1 2}", ["--a", "$(nproc --all)", "`date +%s`", "${X:-1 2}"]),
        ("echo don't --a 1", ["echo", "don't", "--a", "1"]),
    ],
)
def test_words(script, expected):
    assert texts(script) == expected


def test_a_string_that_holds_arguments_is_read_and_its_words_know_it():
    words = shell_words('OPT=" \\\n  --a 1 \\\n  --b \\"x y\\""', "run.sh")
    assert [(word.text, word.is_inner) for word in words[1:]] == [
        ("--a", True),
        ("1", True),
        ("--b", True),
        ("x y", True),
    ]


@pytest.mark.parametrize(
    "script", ["OPT=\" --a 'E|L' --b 2\"", "ARGS=(--a 'E|L' --b 2)", "--a  'E|L'\t--b 2"]
)
def test_places_are_those_of_the_text_quotes_included(script):
    found = {word.text: script[word.start : word.stop] for word in shell_words(script, "run.sh")}
    assert (found["--a"], found["E|L"], found["2"]) == ("--a", "'E|L'", "2")


@pytest.mark.parametrize(
    "script",
    [
        "if [ $X ]; then\n  --a 1\nfi\n--b 2",
        "case $X in\n 8) --a 1 ;;\nesac\n--b 2",
        "for i in 1 2; do --a 1; done; --b 2",
        "if x; then if y; then :; fi\n --a 1\nfi; --b 2",
    ],
)
def test_words_in_branches_know_it(script):
    found = {word.text: word.is_conditional for word in shell_words(script, "run.sh")}
    assert (found["--a"], found["--b"]) == (True, False)


def test_a_variable_that_hangs_on_a_command_knows_it():
    words = shell_words("X=1\n[ $Y ] && X=2", "run.sh")
    assert [word.is_conditional for word in words if word.variable == "X"] == [False, True]


def test_branch_words_that_are_arguments_open_no_branch():
    assert not any(word.is_conditional for word in shell_words("--reason if --a 1", "run.sh"))


@pytest.mark.parametrize("text", ["--a ${X", "\n--a $(b", "--a `b"])
def test_what_is_not_closed_is_refused_with_its_line(text):
    with pytest.raises(InputError, match=f"on line {text.count(chr(10)) + 1} is not closed"):
        shell_words(text, "run.sh")


@given(st.text(" \n\\\"'#;()=-aX$|*", max_size=40))
def test_any_text_is_cut_into_words_in_its_order(text):
    try:
        words = shell_words(text, "run.sh")
    except InputError:
        return
    outer = [word for word in words if not word.is_inner]
    for word, following in pairwise(outer):
        assert word.start < word.stop <= following.start


@pytest.mark.parametrize("piece", ['"', "'", '\\"', "a ", "(", "#x\n", '"--a b" ', "x=", "x=("])
def test_long_texts_take_time_in_proportion(piece):
    began = time.perf_counter()
    shell_words(piece * 40_000, "run.sh")
    assert time.perf_counter() - began < 10  # 0.1 to 0.5 s; in proportion to the square it takes minutes
