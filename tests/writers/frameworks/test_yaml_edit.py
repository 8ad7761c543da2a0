"""Values of a YAML change in place, and every other byte stays."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.writers.frameworks.yaml_edit import YamlEdit


def edited(text, **values):
    edit = YamlEdit(text, "x.yaml")
    for place, value in values.items():
        edit.set(place.replace("__", "."), value)
    return edit.result()


class TestValues:
    @pytest.mark.parametrize(
        ("text", "value", "result"),
        [
            ("a: 1 # c\n", 2, "a: 2 # c\n"),
            ("a:   1", 2, "a:   2"),
            ("a:\n", 2, "a: 2\n"),
            ("a:\nb: 1\n", [1, 0], "a: [1, 0]\nb: 1\n"),
            ("a: ~\n", False, "a: False\n"),
            ("a: True\n", False, "a: False\n"),
            ("a: true\n", False, "a: false\n"),
            ("a: 'x' # c\n", "1f1b", "a: '1f1b' # c\n"),
            ('a: "x"\n', "1f1b", 'a: "1f1b"\n'),
            ("a: x\n", "gpipe", "a: gpipe\n"),
            ("a: x\n", "1f1b", "a: '1f1b'\n"),
            ("a: 2\n", True, "a: True\n"),
            ("a: 1\n", True, "a: True\n"),  # 1 == True, but not in YAML
            ("a: 0\n", [0, 1], "a: [0, 1]\n"),
            ("a: [1,2]\n", [3, 4, 5], "a: [3,4,5]\n"),
            ("a: [ 1, 2 ]\n", [[3], [4]], "a: [ [ 3 ], [ 4 ] ]\n"),
            ("a: [1, 2]  # c\n", False, "a: False  # c\n"),
            ("a: &n 1\n", 2, "a: &n 2\n"),
            ("a: &n [1, 2]\n", [2], "a: &n [2]\n"),
            ("a: &n\n", 2, "a: &n 2\n"),
            ("b: &n 1\na: *n # c\n", 2, "b: &n 1\na: 2 # c\n"),
            ('"a" : 1\n', 2, '"a" : 2\n'),
            ("{a: 1, b: 2}\n", 3, "{a: 3, b: 2}\n"),
            ("? a\n: 1\n", 2, "? a\n: 2\n"),
        ],
    )
    def test_one_for_another(self, text, value, result):
        assert edited(text, a=value) == result

    @pytest.mark.parametrize(
        "text", ["a: [ 1,  2, # c\n  3 ]\n", "a:\n- 1\n- 2\n- 3\n", "a: &n\n  - 1  # one\n\n  - 2\n  - 3\n"]
    )
    def test_a_list_of_as_many_numbers_changes_number_by_number(self, text):
        assert edited(text, a=[1, 9, 3]) == text.replace("2", "9")

    def test_numbers_of_lists_of_lists(self):
        text = "a: [ [1,0],\n     [0, 1] ]\n"
        assert edited(text, a=[[2, 0], [0, 1]]) == text.replace("[1,0]", "[2,0]")
        assert (
            edited("a:\n- - 1\n  - 2\n- - 3\n  - 4\n", a=[[1, 2], [3, 5]])
            == "a:\n- - 1\n  - 2\n- - 3\n  - 5\n"
        )

    def test_a_block_of_another_shape_becomes_a_line(self):
        text = "a: # why\n  - 1\n  - 2 # two\n# end\nb: 1\n"
        assert edited(text, a=[[1], [2]]) == "a: [[1], [2]] # why\n# end\nb: 1\n"
        assert edited("a: &n\n- 1\n- 2\nb: *n\nc: 1\n", b=3) == "a: &n\n- 1\n- 2\nb: 3\nc: 1\n"
        assert edited("a: &n\n- 1\n- 2", a=False) == "a: &n False"

    def test_a_list_with_aliases_is_written_out(self):
        assert edited("n: &n 1\na: [*n, 2]\n", a=[1, 3]) == "n: &n 1\na: [1, 3]\n"

    def test_patterns_keep_their_quotes_and_their_order(self):
        text = "a:\n  'x\\.y': [ 1, 0]\n  \"z\": false # c\n"
        edit = YamlEdit(text, "x.yaml")
        edit.set("a", {r"x\.y": [2, 0], "z": True})
        assert edit.result() == text.replace("1,", "2,").replace("false", "true")

    def test_what_is_so_already_keeps_its_text(self):
        text = "a: 0x10\nb: [  1,\n2]\nc: yes\nd: 'x'\n"
        assert edited(text, a=16, b=[1, 2], c=True, d="x") == text

    def test_line_ends_marks_and_tails_stay(self):
        text = "\ufeffa: 1 # c\r\nb:\r\n  c: [1]\r\n\r\n# end\r\n"
        assert edited(text, a=2, b__c=[1, 2], b__d=3) == (
            "\ufeffa: 2 # c\r\nb:\r\n  c: [1, 2]\r\n  d: 3\r\n\r\n# end\r\n"
        )


class TestNewKeys:
    @pytest.mark.parametrize(
        ("text", "place", "result"),
        [
            ("a:\n  b: 1 # c\n\nd: 2\n", "a.x", "a:\n  b: 1 # c\n  x: 7\n\nd: 2\n"),
            ("a:\n    b: [1,\n  2]\n", "a.x", "a:\n    b: [1,\n  2]\n    x: 7\n"),
            ("a:\n  b:\n  - 1\n  # c\nd: 2\n", "a.x", "a:\n  b:\n  - 1\n  x: 7\n  # c\nd: 2\n"),
            ("a:\n  b: |\n    text\n\nd: 2\n", "a.x", "a:\n  b: |\n    text\n  x: 7\n\nd: 2\n"),
            ("a: {b: 1}\n", "a.x", "a: {b: 1, x: 7}\n"),
            ("a: {b: 1, }\n", "a.x", "a: {b: 1, x: 7, }\n"),
            ("a: {}\n", "a.x", "a: {x: 7}\n"),
            ("a: # c\nb: 1\n", "a.x", "a: # c\n  x: 7\nb: 1\n"),
            ("b: 1", "a.x", "b: 1\na:\n  x: 7"),
            ("b: 1\n# end\n", "a.b.x", "b: 1\na:\n  b:\n    x: 7\n# end\n"),
            ("a:\n  n: &n 1\n  b: *n # c\n", "a.x", "a:\n  n: &n 1\n  b: *n # c\n  x: 7\n"),
            ("{b: 1}", "a.x", "{b: 1, a: {x: 7}}"),
        ],
    )
    def test_after_the_last_one_with_its_indent(self, text, place, result):
        edit = YamlEdit(text, "x.yaml")
        edit.set(place, 7)
        assert edit.result() == result

    def test_beside_a_key_of_choice(self):
        edit = YamlEdit("a:\n  b: 1\n  c: 2\n", "x.yaml")
        edit.set("a.x", 7, beside=("none", "b"))
        assert edit.result() == "a:\n  b: 1\n  x: 7\n  c: 2\n"

    def test_several_stand_in_the_order_in_which_they_were_set(self):
        assert edited("a:\n", a__x=1, a__y=[2], b__z=True) == "a:\n  x: 1\n  y: [2]\nb:\n  z: True\n"

    def test_behind_a_value_that_was_empty(self):
        assert edited("a:\n  b:\n", a__b=1, a__c=2) == "a:\n  b: 1\n  c: 2\n"


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("a: {b: 1", "the YAML can not be read"),
            ("[" * 2000, "the YAML is nested deeper than 50 levels"),
            ("[1]\n", "must hold one YAML document, a mapping"),
            ("", "must hold one YAML document"),
            ("a: 1\n---\na: 2\n", "must hold one YAML document"),
            ("a: {b: 1}\na: {b: 2}\n", "gives 'a' more than once; keep one"),
            ("a: 1\n", "a must hold keys to be edited (got '1')"),
            ("b: &n {c: 1}\na: *n\n", "a is an alias (*); write its keys out to edit them"),
            ("a: {b: !!int 1}\n", "a value with a tag"),
            ("a: {b: &n [*n]}\n", "nested too deeply"),
        ],
    )
    def test_words(self, text, words):
        with pytest.raises(InputError, match=re.escape(words)):
            edited(text, **({"a__b": 2} if "b" in text else {"a__x": 2}))

    def test_a_value_that_others_refer_to_is_said(self):
        edit = YamlEdit("a: &n 1\nb: *n\nc: &nn 1\n", "x.yaml")
        with pytest.warns(
            FileNote, match=r"x.yaml: the value at &n changes, and so does all that refers to it"
        ):
            edit.set("a", 2)
        edit.set("c", 2)  # nothing refers to it
        assert edit.result() == "a: &n 2\nb: *n\nc: &nn 2\n"


_ROWS = st.integers(1, 3).flatmap(
    lambda n: st.lists(st.lists(st.integers(-9, 99), min_size=n, max_size=n), min_size=1, max_size=3)
)
_VALUES = st.one_of(
    st.booleans(), st.integers(-9, 99), st.lists(st.integers(0, 9), min_size=1, max_size=4), _ROWS
)


@given(_VALUES, _VALUES, st.sampled_from(["", "[ {} ]", "block", "&n {}"]), st.sampled_from(["\n", "\r\n"]))
def test_any_value_takes_the_place_of_any_other_and_nothing_else_moves(old, new, style, line_break):
    if style == "block" and isinstance(old, list):
        rows = [f"- {row}" for row in old]
        written = "\n    " + "\n    ".join(rows)
    else:
        written = str(old) if "[" in style or not style or style == "block" else style.format(old)
    head, tail = "# head\na:\n  z: 'q' # z\n  b: ", "\n  c:  1 # c\nd: [ 1 ]\n"
    text = (head + written + tail).replace("\n", line_break)
    edit = YamlEdit(text, "x.yaml")
    edit.set("a.b", new)
    result = edit.result()
    assert repr(YamlEdit(result, "x.yaml").value("a.b")) == repr(new)
    assert result.startswith(head.rstrip(" ").replace("\n", line_break))
    assert result.endswith(tail.replace("\n", line_break))
    if repr(old) == repr(new):
        assert result == text
