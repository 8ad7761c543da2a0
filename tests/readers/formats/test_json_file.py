"""JSON that is not clear is refused, with its place."""

import os

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.readers import read_json
from sapp_ppb.readers.formats import json_file


def refusal(path):
    with pytest.raises(InputError) as caught:
        read_json(path)
    assert caught.value.where == str(path)
    return caught.value.faults


def written(tmp_path, content):
    path = tmp_path / "file.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_value_is_read_as_it_stands(tmp_path):
    path = written(tmp_path, '{"a": [1, 2.5, null, true, "é"], "b": {}}')
    assert read_json(path) == {"a": [1, 2.5, None, True, "é"], "b": {}}
    assert read_json(str(path)) == read_json(path)


def test_a_byte_order_mark_is_no_fault(tmp_path):
    assert read_json(written(tmp_path, b"\xef\xbb\xbf[1]")) == [1]


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    assert refusal(tmp_path / "none.json") == ("there is no such file; check the path",)


def test_a_folder_is_no_file(tmp_path):
    assert refusal(tmp_path) == ("is a folder; name a file in it",)


def test_a_path_that_can_not_exist_is_refused(tmp_path):
    assert "can not be read" in refusal(tmp_path / ("x" * 5000))[0]
    assert "can not be read" in refusal("a\0b")[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    path = written(tmp_path, "1")
    path.chmod(0)
    assert refusal(path) == ("the file may not be read; check its permissions",)


@pytest.mark.parametrize("content", ["", "  \n\t", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(tmp_path, content):
    assert refusal(written(tmp_path, content)) == ("the file is empty; it must hold JSON",)


def test_other_encodings_are_refused_with_the_first_odd_byte(tmp_path):
    assert refusal(written(tmp_path, b'{"a": "\xe9"}')) == (
        "the file is not UTF-8 text (byte 0xe9 at position 7); save it as UTF-8",
    )


def test_a_large_file_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(json_file, "LARGEST_FILE_MB", 1)
    assert refusal(written(tmp_path, b" " * (2**20 + 1))) == (
        "the file is larger than 1 MB; is it the right one?",
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"a": 1,\n "b" 2}', "the JSON is broken at line 2, column 6: expecting ':' delimiter"),
        ("[1, 2] x", "the JSON is broken at line 1, column 8: extra data"),
        ("{'a': 1}", "the JSON is broken at line 1, column 2: expecting property name"),
        ('["a\nb"]', "the JSON is broken at line 1, column 4: invalid control character"),
        ("[1,", "the JSON is broken at line 1, column"),
    ],
)
def test_broken_json_is_named_by_line_and_column(tmp_path, content, words):
    (fault,) = refusal(written(tmp_path, content))
    assert fault.startswith(words)


def test_numbers_that_are_not_finite_are_all_named_by_their_place(tmp_path):
    content = '{"a": [NaN, 1, {"b": -Infinity}], "c": 1e999, "d": %s, "e": -%s}' % (("9" * 5000,) * 2)
    assert refusal(written(tmp_path, content)) == (
        "a[0] must be a finite number (got nan)",
        "a[2].b must be a finite number (got -inf)",
        "c must be a finite number (got inf)",
        "d must be a finite number (got inf)",
        "e must be a finite number (got -inf)",
    )


def test_a_bare_value_that_is_not_finite_is_named_too(tmp_path):
    assert refusal(written(tmp_path, "NaN")) == ("the value must be a finite number (got nan)",)


def test_doubled_keys_are_all_named(tmp_path):
    content = '{"a": 1, "a": 2, "b": [{"c": 1, "d": 1, "c": 1, "d": 3}]}'
    assert refusal(written(tmp_path, content)) == (
        "the top level gives a key more than once ('a'); keep one",
        "b[0] gives a key more than once ('c', 'd'); keep one",
    )


def test_a_key_that_can_not_be_printed_does_not_break_the_message(tmp_path):
    (fault,) = refusal(written(tmp_path, r'{"\ud800\u001b": NaN}'))
    assert fault == r"'\ud800\x1b' must be a finite number (got nan)"


@pytest.mark.parametrize("depth", [102, 100_000])
def test_deep_nesting_is_refused(tmp_path, depth):
    content = "[" * depth + "]" * depth
    assert refusal(written(tmp_path, content)) == ("the JSON is nested deeper than 100 levels",)


def test_a_hundred_levels_are_read(tmp_path):
    read_json(written(tmp_path, "[" * 100 + "]" * 100))
