"""Configurations to check: real ones, and an even pipeline of which every step can be computed."""

from pathlib import Path

import pytest

from tests.cli.conftest import BODY, HEAD, TAIL

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
# BODY alone, so that steps can be computed by hand: 10 layers of 10 ms forward and 20 ms backward.
ALONE = [BODY]
EVEN = """--pipeline-model-parallel-size 2 \\
--pipeline-model-parallel-layout "Et*5|t*5L" \\
--num-layers 10 --micro-batch-size 1 --global-batch-size 4 --nnodes 1 --nproc-per-node 2
"""


def layers_of(count, mtp=0, **memory):
    """HEAD, so many layers with these types, layers of multi-token prediction, TAIL."""
    body = {key: value for key, value in BODY.items() if not key.startswith("memory_select")} | memory
    more = [body | {"name": "Mtp", "nb_layer": mtp, "mtp": True}] if mtp else []
    return [HEAD, body | {"nb_layer": count}, *more, TAIL]


@pytest.fixture
def config(tmp_path):
    def write(text, name="run.sh"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write
