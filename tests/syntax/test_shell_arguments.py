"""Arguments with the variables that a script sets, and what stays unknown."""

import pytest

from sapp_ppb.syntax.shell_arguments import expand, shell_arguments


def values(script):
    return {argument.name: argument.value for argument in shell_arguments(script, "run.sh").found}


def reasons(script):
    return {a.name: a.unknown for a in shell_arguments(script, "run.sh").found if a.unknown}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("--a 1 --b=2 --c_d 3 --e", {"a": "1", "b": "2", "c-d": "3", "e": None}),
        ("P=4\nrun --a $P --b ${P}", {"a": "4", "b": "4"}),
        ("run --a ${P:-8} --b ${P-9} --c ${P:=7}", {"a": "8", "b": "9", "c": "7"}),
        ("P=${P:-8}\nrun --a $P", {"a": "8"}),
        ('P=${Q:-"8"}\nreadonly R="${P:-1}"\nrun --a $R', {"a": "8"}),
        ("P=4; run --a ${P:-8}", {"a": "4"}),  # what the script sets counts, as in the shell
        ("P=4\nrun --a $P\nP=5\nrun --b $P", {"a": "4", "b": "5"}),
        ("export L='Et*2|tL'\nrun --a \"$L\"", {"a": "Et*2|tL"}),
        ("run --a ${P:-${Q:-3}}", {"a": "3"}),
        ("A=x; B=$A-y; run --a ${B}z", {"a": "x-yz"}),
        ("run --a '$P'", {"a": "$P"}),
        ("run --a -1 --b", {"a": "-1", "b": None}),
        ('S=8\nOPT="--a $S"\nS=9\nrun $OPT', {"a": "8"}),
    ],
)
def test_values(script, expected):
    assert values(script) == expected


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("run --a $P", "is $P, which the file does not set"),
        ("run --a ${P}", "is ${P}, which the file does not set"),
        ("run --a $1", "is $1, which the file does not set"),
        ("run --a $((2*4))", "is $((2*4)), which the file does not set"),
        ("if x; then P=4; fi\nrun --a $P", "is $P, which the file does not set"),
        ("\nif x; then\nrun --a 4\nfi", "stands in a branch of the script (line 3)"),
        ("P=" + "x" * 6000 + "\nrun --a $P$P", "is longer than 10000 characters"),
    ],
)
def test_what_is_not_known_has_no_value_and_a_reason(script, reason):
    assert values(script) == {"a": None}
    assert reasons(script) == {"a": reason}


def test_variables_that_grow_out_of_each_other_are_given_up():
    script = "A=xxxxxxxxxx\n" + "A=$A$A$A$A$A$A$A$A$A$A\n" * 12 + "run --a $A"  # 10 ** 13 characters
    assert values(script) == {"a": None}


def test_defaults_that_nest_too_deep_are_given_up():
    assert expand("${A:-" * 5000 + "1" + "}" * 5000, {})[0] is None


def test_variables_that_seem_to_hold_arguments_and_are_set_elsewhere_are_named():
    script = "ARGS=(--a 1)\nrun ${ARGS[@]} ${MORE_ARGS[@]} $EXTRA_OPTS $DIR --b $FLAG_B"
    assert shell_arguments(script, "run.sh").unread == ("MORE_ARGS", "EXTRA_OPTS")


def test_lines_are_counted_from_one():
    found = shell_arguments("run \\\n --a 1 \\\n\n --b 2", "run.sh").found
    assert [argument.line for argument in found] == [2, 4]


def test_words_behind_a_value_go_up_to_the_next_flag():
    (argument, _) = shell_arguments("--a x y \\\n z --b 1", "run.sh").found
    assert [word.text for word in argument.more] == ["y", "z"]
