"""docs/formulation.md against the source: the same equations, in places that exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sapp_ppb

ROOT = Path(__file__).parents[1]
SOURCE = Path(sapp_ppb.__file__).parent
TEXT = (ROOT / "docs" / "formulation.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\((?:LB|[A-Z])\d+\)")
# An equation in an indented block: its number, then what it says up to the next number or an empty line.
STATED = re.compile(r"^ {4}(\((?:LB|[A-Z])\d+\)) {2}(.*(?:\n {10}.*)*)", re.MULTILINE)
ROWS = re.findall(r"^\| (.+?) \| `(.+?\.py)` \| (.+?) \|$", TEXT, re.MULTILINE)


def docstrings() -> Iterator[str]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield ast.get_docstring(node, clean=False) or ""


def test_source_and_document_number_the_same_equations():
    cited = {number for text in docstrings() for number in NUMBER.findall(text)}
    assert len(cited) > 30
    assert cited == set(NUMBER.findall(TEXT))


def test_equations_read_the_same_in_both():
    stated = {number: " ".join(text.split()) for number, text in STATED.findall(TEXT)}
    in_source = {
        number: " ".join(text.split()) for doc in docstrings() for number, text in STATED.findall(doc)
    }
    assert len(stated) > 30
    assert stated == in_source


@pytest.mark.parametrize(("equations", "file", "names"), ROWS, ids=lambda text: text[:40])
def test_the_table_names_what_there_is(equations, file, names):
    source = (SOURCE / file).read_text(encoding="utf-8")
    for name in re.findall(r"`(\w+)`", names):
        assert re.search(rf"^ *(?:def|class) {name}\b", source, re.MULTILINE), f"{equations}: {name}"


def test_the_table_places_every_equation():
    placed = " ".join(equations for equations, _, _ in ROWS)
    families = set(re.findall(r"\(([A-Z]+)\d+\)", TEXT))
    assert families == set(re.findall(r"\(([A-Z]+)\d+\)", placed))
