"""Whatever a damaged copy of a profile holds, it is read or refused in words."""

import json
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.errors import InputError, Note
from sapp_ppb.estimation import GalvatronSizes, model_from_galvatron, model_from_graph
from sapp_ppb.readers import read_galvatron, read_layers_csv, read_operator_graph

DATA = Path(__file__).parents[1] / "data" / "profiles"
TIMES = DATA / "galvatron" / "computation_profiling_bf16_llama2-7b_all.json"
MEMORY = DATA / "galvatron" / "memory_profiling_bf16_llama2-7b_all.json"
GRAPH = DATA / "pipedream" / "gnmt_graph.txt"
TABLE = DATA / "layers.csv"
SIZES = GalvatronSizes(layers=(32,), tp=2, micro_batch=8)
ODD = ["", "\t", "\n", ",", " -- ", "-1", "nan", "1e400", '"', "[", "]", "{", "null", "node4", "\0", "é", "٣"]
VALUES = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    *(st.just([]), st.just({}), st.just({"2048": {}}), st.just({"2": 1.0}), st.just([[1]])),
)


def read_damaged(reader, content, folder):
    """Read a text, and take a refusal for an answer; any other error is a fault of ours."""
    path = folder / "copy"
    path.write_text(content, encoding="utf-8")
    with warnings.catch_warnings(category=Note, action="ignore"):
        try:
            return reader(path)
        except InputError:
            return None


def changed(draw, text):
    start = draw(st.integers(0, len(text)))
    end = min(len(text), start + draw(st.integers(0, 40)))
    return text[:start] + draw(st.sampled_from(ODD)) + (text[end:] if draw(st.booleans()) else "")


READERS = {
    "graph": (GRAPH, lambda path: model_from_graph(read_operator_graph(path), name="m")),
    "table": (TABLE, lambda path: read_layers_csv(path, name="m")),
    "times": (TIMES, lambda path: model_from_galvatron(read_galvatron(path, MEMORY), SIZES, name="m")),
    "memory": (MEMORY, lambda path: model_from_galvatron(read_galvatron(TIMES, path), SIZES, name="m")),
}


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_a_damaged_text(name, data, tmp_path_factory):
    source, reader = READERS[name]
    text = changed(data.draw, source.read_text(encoding="utf-8"))
    read_damaged(reader, text, tmp_path_factory.mktemp("damaged"))


def places(value, at=()):
    """Every place of a document."""
    yield at
    for key, inside in value.items() if isinstance(value, dict) else ():
        yield from places(inside, (*at, key))


@pytest.mark.parametrize("name", ["times", "memory"])
@given(data=st.data())
def test_a_value_that_is_another(name, data, tmp_path_factory):
    source, reader = READERS[name]
    document = json.loads(source.read_text(encoding="utf-8"))
    at = data.draw(st.sampled_from([place for place in places(document) if place]))
    inside = document
    for key in at[:-1]:
        inside = inside[key]
    if data.draw(st.booleans()):
        inside[at[-1]] = data.draw(VALUES)
    else:
        inside[data.draw(st.text(max_size=3))] = inside.pop(at[-1])
    read_damaged(reader, json.dumps(document), tmp_path_factory.mktemp("damaged"))


def test_what_is_not_damaged_is_read(tmp_path):
    for source, reader in READERS.values():
        assert read_damaged(reader, source.read_text(encoding="utf-8"), tmp_path) is not None
