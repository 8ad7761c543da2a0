"""YAML that is not plain, clear and small is refused, with its place and line."""

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats import yaml_file
from sapp_ppb.readers.formats.yaml_file import read_yaml, read_yaml_document


def refusal(path):
    with pytest.raises(InputError) as caught:
        read_yaml(path)
    assert caught.value.where == str(path)
    return caught.value.faults


def written(tmp_path, content):
    path = tmp_path / "file.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_values_are_read_as_pyyaml_reads_them(tmp_path):
    path = written(
        tmp_path,
        "a: [1, -2.5, 1.e-8, ~, 'x', on, No]  # a comment\n"
        "b: {c: 2020-01-01, 1: 010, é: 1:30, =: '='}\r\n"
        "d: &four 4\ne: *four\n",
    )
    # 010 is octal and 1:30 is 1 x 60 + 30 in YAML 1.1; dates stay text.
    assert read_yaml(path) == {
        "a": [1, -2.5, 1e-8, None, "x", True, False],
        "b": {"c": "2020-01-01", "1": 8, "é": 90, "=": "="},
        "d": 4,
        "e": 4,
    }


def test_a_file_that_says_1_2_is_read_so(tmp_path):
    assert read_yaml(written(tmp_path, "%YAML 1.2\n---\n[on, 010, true]")) == ["on", 10, True]


def test_a_byte_order_mark_is_no_fault(tmp_path):
    assert read_yaml(written(tmp_path, b"\xef\xbb\xbf[1]")) == [1]


def test_an_anchor_may_be_given_again(tmp_path):
    assert read_yaml(written(tmp_path, "a: &x 1\nb: &x 2\nc: *x")) == {"a": 1, "b": 2, "c": 2}


def test_every_place_has_its_line(tmp_path):
    document = read_yaml_document(written(tmp_path, "a:\n  b:\n    - 1\n    - 2\n"))
    assert document.at("a.b[1]") == "a.b[1] (line 4)"
    assert document.at("not.there") == "not.there"


@pytest.mark.parametrize("content", ["", " \n\t", "# only a comment\n"])
def test_an_empty_file_is_refused(tmp_path, content):
    assert refusal(written(tmp_path, content)) == ("the file is empty; it must hold YAML",)


def test_files_that_can_not_be_read_are_refused(tmp_path):
    assert refusal(tmp_path / "none.yaml") == ("there is no such file; check the path",)
    assert refusal(tmp_path) == ("is a folder; name a file in it",)
    assert "the file is not UTF-8 text (byte 0xe9" in refusal(written(tmp_path, b"a: \xe9"))[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: [1,\n  b,", "the YAML is broken at line 2, column 5: expected the node content"),
        ("a:\n\t- b", "the YAML is broken at line 2, column 1: found character '\\t'"),
        ("[*b]", "the YAML is broken at line 1, column 2: found undefined alias 'b'"),
        ("a: 1\nb: \0", r"the YAML is broken at line 2: the character '\x00' is not allowed"),
        ("a: \x1b[0m", r"the YAML is broken at line 1: the character '\x1b' is not allowed"),
        ("%YAML 9.1\n---\na: 1", "the YAML is broken at line 1, column 1: found incompatible YAML"),
    ],
)
def test_broken_yaml_is_named_by_its_line(tmp_path, content, words):
    (fault,) = refusal(written(tmp_path, content))
    assert fault.startswith(words)


def test_several_documents_are_refused(tmp_path):
    assert refusal(written(tmp_path, "a: 1\n---\nb: 2")) == (
        "holds several documents, the second from line 3 on; keep one in a file",
    )


def test_all_faults_inside_are_named_at_once(tmp_path):
    content = "a: .nan\nb:\n  c: 1\n  d: [1, -.inf, 1e999]\n  c: 2\n? [1, 2]\n: 3\n<<: {e: 1}\nf: !!int abc\n"
    assert refusal(written(tmp_path, content)) == (
        "a (line 1) must be a finite number (got nan)",
        "b.d[1] (line 4) must be a finite number (got -inf)",
        "b.d[2] (line 4) must be a finite number (got inf)",
        "b (line 3) gives a key more than once ('c'); keep one",
        "the top level (line 6) has a key that is no text; write plain keys",
        "the top level (line 8) has a merge key (<<), which is not read; write the keys out",
        "f (line 9) can not be read (got 'abc')",
    )


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.system [x]", "!mine x", "!!binary aGk=", "!!set {a}"]
)
def test_a_tag_makes_no_object(tmp_path, tag):
    (fault,) = refusal(written(tmp_path, f"a:\n  b: {tag}"))
    assert fault.startswith("a.b (line 2) has the tag '")


def test_an_integer_of_thousands_of_digits_is_refused(tmp_path):
    assert refusal(written(tmp_path, "a: " + "9" * 5000))[0].startswith(
        "a (line 1) can not be read (got '999"
    )


def test_a_value_that_holds_itself_is_refused(tmp_path):
    assert refusal(written(tmp_path, "a: &a\n  - [*a]")) == (
        "a[0][0] refers to what it is a part of, from line 1 on",
    )


def test_aliases_that_blow_up_are_refused(tmp_path):
    # Nine levels of ten aliases each stand for 10^9 values.
    levels = ["a0: &a0 [" + ", ".join("x" * 10) + "]"]
    levels += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 9)]
    (fault,) = refusal(written(tmp_path, "\n".join(levels)))
    assert fault.startswith("holds more than 30,000 values, those that aliases repeat included")


@pytest.mark.parametrize("depth", [52, 10_000])
def test_deep_nesting_is_refused(tmp_path, depth):
    content = "[" * depth + "]" * depth
    assert refusal(written(tmp_path, content)) == ("the YAML is nested deeper than 50 levels",)


def test_fifty_levels_are_read(tmp_path):
    read_yaml(written(tmp_path, "[" * 50 + "]" * 50))


def test_a_large_file_is_not_read(tmp_path):
    assert yaml_file.LARGEST_FILE_MB == 1
    assert refusal(written(tmp_path, b"#" * (2**20 + 1))) == (
        "the file is larger than 1 MB; is it the right one?",
    )
