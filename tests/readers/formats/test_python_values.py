"""Plain values are read; what only running would show is not, and nothing is run."""

import ast

import pytest

from sapp_ppb.readers.formats.python_values import NotPlainError, PlainValues


def value_of(source, **constants):
    nodes = {name: ast.parse(text, mode="eval").body for name, text in constants.items()}
    return PlainValues(constants=nodes).of(ast.parse(source, mode="eval").body)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("-3", -3),
        ("('a', None, True)", ["a", None, True]),
        ("[['x'], *[[f'layers.{i}'] for i in range(2, 4)]]", [["x"], ["layers.2"], ["layers.3"]]),
        ("[f'{i}{j}' for i in range(2)]", None),
        ("list(f'{i}' for i in range(2))", None),
        ("(f'layers.{i}' for i in range(0, 4, 2))", ["layers.0", "layers.2"]),
    ],
)
def test_plain_values(source, expected):
    if expected is None:
        with pytest.raises(NotPlainError):
            value_of(source)
    else:
        assert value_of(source) == expected


def test_names_of_the_module_stand_for_their_values():
    assert value_of("[*HEAD, f'layers.{N}']", HEAD="['tok_embeddings']", N="7") == [
        "tok_embeddings",
        "layers.7",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "__import__('os').getcwd()",
        "a + b",
        "unknown",
        "-'x'",
        "[*3]",
        "[i for i in range('x')]",
        "[i for i in range()]",
        "[i for i in range(9) if i]",
        "[i for i in items]",
        "f'{3!r}'",
        "f'{3:>4}'",
        "[i for i in range(10**9)]",
        "[i for i in range(1000000000)]",
    ],
)
def test_other_expressions_are_not_read(source):
    with pytest.raises(NotPlainError):
        value_of(source)


def test_names_that_grow_without_end_are_not_followed():
    with pytest.raises(NotPlainError):
        value_of("A", A="[*A, 1]")
    doubling = {f"N{i}": f"[*N{i + 1}, *N{i + 1}]" for i in range(18)}
    with pytest.raises(NotPlainError):  # 2^18 values
        value_of("N0", **doubling, N18="[1]")
    with pytest.raises(NotPlainError):  # 2^10 x 8 characters
        value_of("N0", **{f"N{i}": f"f'{{N{i + 1}}}{{N{i + 1}}}'" for i in range(10)}, N10="'12345678'")
