"""
Every reader of a file, with good files to spoil and what is done with what it reads.

A reader takes a path.  It ends well, or with an ``InputError`` in words; anything else that
it does is a fault of ours.  What is read is also put to its first use, because that is
where a value that should have been refused does its harm.
"""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from tests.hostile import samples, uses

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
DEVICES = files("sapp_ppb.readers") / "devices"


@dataclass(frozen=True, kw_only=True)
class Reader:
    """
    One reader.

    Attributes
    ----------
    name
        For messages.
    form
        What its files are: json, yaml, toml, python, csv, text or gzip.
    file_name
        Name of the file that it is given; some readers tell a format from it.
    good
        Contents that are read without a fault.
    read
        Reads a path, and uses what it holds.
    """

    name: str
    form: str
    file_name: str
    good: tuple[bytes, ...]
    read: Callable[[Path], object]


def _bytes(*paths: str) -> tuple[bytes, ...]:
    return tuple((ROOT / path).read_bytes() for path in paths)


def _text(*texts: str) -> tuple[bytes, ...]:
    return tuple(text.encode() for text in texts)


PLAN_FILES = uses.plan_files()


def _reader(
    name: str, form: str, file_name: str, good: tuple[bytes, ...], read: Callable[[Path], object]
) -> Reader:
    return Reader(name=name, form=form, file_name=file_name, good=good, read=read)


def _configs(folder: str, suffix: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted((DATA / "configs" / folder).glob(f"*{suffix}")))


_MODELS = tuple(path.read_bytes() for path in sorted((ROOT / "examples").glob("*.json"))) + _bytes(
    "tests/data/sapp/seq.json", "tests/data/sapp/sim.json", "tests/data/sapp/test.json"
)
READERS = (
    _reader("model", "json", "model.json", _MODELS, uses.model),
    _reader("strategies", "json", "model.json", _bytes("examples/swap.json"), uses.model),
    _reader("plan", "json", "plan.json", PLAN_FILES, uses.plan),
    _reader("plan without a model", "json", "plan.json", PLAN_FILES[:1], uses.plan_counts),
    _reader("plan to compare", "json", "plan.json", PLAN_FILES[:1], uses.plan_under),
    _reader("order", "csv", "order.csv", _text(samples.CSV_ORDER), uses.order),
    _reader("manual plans", "yaml", "manual.yaml", _bytes("tests/data/sapp/manual_demo.yaml"), uses.manual),
    _reader(
        "init",
        "yaml",
        "init.yaml",
        _bytes("tests/data/sapp/init_readme.yaml", "tests/data/sapp/mem.yaml"),
        uses.init,
    ),
    _reader("peaks of a log", "text", "stage_0.log", _text(samples.LOG), uses.peaks),
    _reader(
        "peaks of a profiler",
        "csv",
        "stage_1.csv",
        _text(samples.RECORD, samples.RECORD.replace("KB", "MB").replace("1048576", "1e3")),
        uses.peaks,
    ),
    _reader(
        "peaks by hand", "yaml", "peaks.yaml", _text("peak_memory_mb: {3: 48874, 0: 20.5}\n"), uses.peaks
    ),
    _reader("peaks of a trace", "json", "trace.json", _text(samples.OWN_TRACE), uses.peaks),
    _reader("trace of scopes", "json", "trace.json", _text(samples.TRACE), uses.trace),
    _reader("trace of ops", "json", "trace.json", _text(samples.OPS, samples.OWN_TRACE), uses.trace),
    _reader(
        "gzipped trace",
        "gzip",
        "trace.json.gz",
        tuple(gzip.compress(text.encode(), mtime=0) for text in (samples.TRACE, samples.OPS)),
        uses.trace,
    ),
    _reader(
        "device",
        "yaml",
        "device.yaml",
        tuple((DEVICES / f"{name}.yaml").read_bytes() for name in ("a100", "910b")),
        uses.device,
    ),
    _reader(
        "Hugging Face",
        "json",
        "config.json",
        tuple(path.read_bytes() for path in sorted((DATA / "hf_configs").glob("*.json"))),
        uses.hf,
    ),
    _reader(
        "times of Galvatron", "json", "times.json", (uses.GALVATRON_TIMES.read_bytes(),), uses.galvatron_times
    ),
    _reader(
        "memory of Galvatron",
        "json",
        "memory.json",
        (uses.GALVATRON_MEMORY.read_bytes(),),
        uses.galvatron_memory,
    ),
    _reader(
        "graph of PipeDream",
        "text",
        "graph.txt",
        _bytes("tests/data/profiles/pipedream/vgg16_graph.txt"),
        uses.graph,
    ),
    _reader("table of costs", "csv", "layers.csv", _bytes("tests/data/profiles/layers.csv"), uses.layers_csv),
    _reader("measured steps", "csv", "steps.csv", _text("plan,step_ms\nplan.json,123.5\n"), uses.measured),
    _reader(
        "real runs",
        "json",
        "run.json",
        _bytes("tests/data/runs/1f1b-2-stages.json", "tests/data/runs/zbv-2-stages.json"),
        uses.measured,
    ),
    _reader(
        "MindFormers",
        "yaml",
        "run.yaml",
        (*_text(samples.MINDFORMERS), *_configs("mindformers", ".yaml")),
        uses.config,
    ),
    _reader(
        "Megatron-LM YAML",
        "yaml",
        "model_config.yaml",
        (*_text(samples.LAYOUT), *_configs("megatron", ".yaml")),
        uses.config,
    ),
    _reader("Megatron-LM script", "text", "run.sh", _text(samples.SHELL), uses.config),
    _reader(
        "Megatron-LM arguments",
        "json",
        "arguments.json",
        _text(samples.ARGUMENTS),
        uses.config_of("megatron"),
    ),
    _reader(
        "torchtitan TOML",
        "toml",
        "job.toml",
        (*_text(samples.TOML), *_configs("torchtitan", ".toml")),
        uses.config,
    ),
    _reader("torchtitan Python", "python", "job.py", _text(samples.TITAN), uses.config_of("torchtitan")),
    _reader("DeepSpeed", "python", "job.py", _text(samples.DEEPSPEED), uses.config_of("deepspeed")),
    _reader("Colossal-AI", "python", "job.py", _text(samples.COLOSSALAI), uses.config_of("colossalai")),
    _reader("PyTorch", "python", "job.py", _text(samples.PYTORCH), uses.config_of("pytorch")),
    _reader("order of PyTorch", "csv", "order.csv", _text(samples.PYTORCH_ORDER), uses.pytorch_order),
    _reader("PyTorch JSON", "json", "job.json", _text(samples.PYTORCH_JSON), uses.config_of("pytorch")),
    _reader("MindSpeed", "text", "run.sh", _text(samples.MINDSPEED), uses.config_of("mindspeed")),
    _reader(
        "HyperParallel", "yaml", "pp.yaml", _text(samples.HYPERPARALLEL), uses.config_of("hyperparallel")
    ),
    _reader(
        "result of HyperParallel", "json", "pp.json", _text(samples.RESULT), uses.config_of("hyperparallel")
    ),
    _reader("grid", "yaml", "grid.yaml", _text(samples.GRID_FILE), uses.grid),
    _reader("rows of a sweep", "text", "begun.jsonl", (uses.rows_file(),), uses.rows),
    _reader("into MindSpeed", "text", "run.sh", _text(samples.MINDSPEED_PLAIN), uses.into("mindspeed")),
    _reader("list of layers", "csv", "layers.csv", _text(samples.LAYER_LINES), uses.config),
    _reader("JSON of layers", "json", "layers.json", _text(samples.LAYER_JSON), uses.config),
    _reader("into MindFormers", "yaml", "run.yaml", _text(samples.MINDFORMERS), uses.into("mindformers")),
    _reader(
        "into Megatron-LM YAML", "yaml", "model_config.yaml", _text(samples.LAYOUT), uses.into("megatron")
    ),
    _reader("into Megatron-LM script", "text", "run.sh", _text(samples.PLAIN_SHELL), uses.into("megatron")),
    _reader(
        "into torchtitan",
        "toml",
        "job.toml",
        (*_text(samples.TOML), *_configs("torchtitan", ".toml")),
        uses.into("torchtitan"),
    ),
    _reader("into DeepSpeed", "python", "job.py", _text(samples.DEEPSPEED_OWN), uses.into("deepspeed")),
    _reader("into Colossal-AI", "python", "job.py", _text(samples.COLOSSALAI), uses.into("colossalai")),
    _reader("into PyTorch", "python", "job.py", _text(samples.PYTORCH), uses.into("pytorch")),
)
# Readers of what another file names: a copy, or a table that a configuration is not known without.
INDIRECT = {"rows of a sweep", "order of PyTorch"}
BY_NAME = {reader.name: reader for reader in READERS}
