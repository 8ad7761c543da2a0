"""TOML that is read, and what is refused with its place."""

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.toml_file import read_toml


def read(tmp_path, content):
    path = tmp_path / "job.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_toml(path)


def test_tables_are_read_whatever_else_they_hold(tmp_path):
    text = "\ufeff[training]\r\nmax_norm = inf # no clipping\r\n[[a.b]]\r\nc = 'x'\r\n"
    assert read(tmp_path, text) == {"training": {"max_norm": float("inf")}, "a": {"b": [{"c": "x"}]}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[a]\nb = \n", r"the TOML is broken at line 2, column 5: invalid value"),
        ("a = 1\na = 2", "the TOML is broken at its end: cannot overwrite a value|line 2"),
        ("[a", "the TOML is broken at"),
        ("a = " + "9" * 5000, "an integer that is too large"),
        ("a = " + "[" * 60 + "]" * 60, "nested deeper than 50 levels"),
        ("a = " + "[" * 90_000 + "]" * 90_000, "nested deeper than 50 levels"),
        (b"a = '\xff'", "is not UTF-8 text"),
        ("  \n", "the file is empty; it must hold TOML"),
        ("#" * (2**20 + 1), "is larger than 1 MB"),
    ],
)
def test_what_is_no_toml_is_refused_with_its_place(tmp_path, content, words):
    with pytest.raises(InputError, match=words):
        read(tmp_path, content)
