"""A small model on disk, and a way to run the command without a shell."""

import json
import os
import sys

import pytest
from typer.testing import CliRunner

from sapp_ppb.cli.main import app

BODY = {
    "name": "Dec",
    "type": "BODY",
    "time": 10,
    "nb_layer": 10,
    "memory_parameter": 100,
    "memory_activation": 60,
    "memory_select_rec": 45,
    "memory_recompute": 4,
}
HEAD = {"name": "Emb", "type": "HEAD", "time": 5, "nb_layer": 1, "memory_parameter": 150}
TAIL = {"name": "Out", "type": "TAIL", "time": 8, "nb_layer": 1, "memory_parameter": 120}
SIZES = ("-s", "2", "-mb", "4")
QUICK = (*SIZES, "-t", "0.2")


def one_message(result, code=2):
    """Message of a refusal: a single one, on stderr, without a traceback."""
    assert result.exit_code == code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.count("error: ") == 1
    return result.stderr


def environment() -> dict[str, str]:
    """Give a process the package even where it is not installed, and else what users have."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return usual | {"PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def run():
    """Run the command with these words."""
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def model_file(tmp_path):
    """Write the small model, with keys of its BODY changed, or with other layers."""

    def write(layers=None, **changes):
        path = tmp_path / "model.json"
        layers = [HEAD, BODY | changes, TAIL] if layers is None else layers
        path.write_text(json.dumps({"name": "tiny", "layers_description": layers}), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session", autouse=True)
def _compiled(tmp_path_factory):
    """Compile the search once, so that no test's time limit has to pay for it."""
    path = tmp_path_factory.mktemp("compile") / "model.json"
    path.write_text(json.dumps({"name": "tiny", "layers_description": [BODY]}), encoding="utf-8")
    CliRunner().invoke(app, ["plan", str(path), "-s", "2", "-mb", "4", "-t", "0.1"])
