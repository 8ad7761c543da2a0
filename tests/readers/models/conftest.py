"""Model files of one BODY layer, and what is said of them."""

import json
from typing import Any

import pytest

from sapp_ppb.errors import FileNote
from sapp_ppb.readers import read_model
from tests.readers.refusals import faults_of


@pytest.fixture
def model_file(tmp_path):
    """Write a model of one BODY layer, with keys changed, added or (...) left out."""

    def write(layer=(), top=(), more=()):
        body: dict[str, Any] = {"name": "Dec", "type": "BODY", "time": 100, "nb_layer": 4} | dict(layer)
        body = {key: value for key, value in body.items() if value is not ...}
        document: dict[str, Any] = {"name": "tiny", "layers_description": [body, *more]} | dict(top)
        path = tmp_path / "model.json"
        path.write_text(json.dumps({key: value for key, value in document.items() if value is not ...}))
        return path

    return write


def faults(path):
    return faults_of(read_model, path)


def notes(path):
    with pytest.warns(FileNote) as caught:
        read_model(path)
    return [str(note.message).removeprefix(f"{path}: ") for note in caught]


def body(path):
    (layer,) = read_model(path).bodies
    return layer
