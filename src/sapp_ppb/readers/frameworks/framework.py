"""Which framework a configuration is of, told from its name and content, and its reader."""

import re
from collections.abc import Callable
from enum import StrEnum
from os import PathLike

from sapp_ppb.costs import Model
from sapp_ppb.errors import InputError
from sapp_ppb.files import opened
from sapp_ppb.plan import PLAN_FORMAT
from sapp_ppb.readers.formats.text_file import refuse_unreadable
from sapp_ppb.targets import PipelineConfig

_LOOKED_AT_BYTES = 2**22  # a configuration is smaller; of a larger file this is enough to tell


class Framework(StrEnum):
    """Whose configuration a file is; the values are those of ``--from``."""

    MINDFORMERS = "mindformers"
    MEGATRON = "megatron"
    TORCHTITAN = "torchtitan"
    MINDSPEED = "mindspeed"
    HYPERPARALLEL = "hyperparallel"
    COLOSSALAI = "colossalai"
    DEEPSPEED = "deepspeed"
    PYTORCH = "pytorch"
    CSV = "csv"
    JSON = "json"


_KNOWN = (
    "a YAML of MindFormers (with parallel_config or recompute_config), a model_config.yaml, argument list or "
    "launch script of Megatron-LM (with --pipeline-model-parallel-size) or MindSpeed (with its own flags), a "
    "TOML or Python configuration of torchtitan, a YAML (pipeline_config) or result (stage_partition) of "
    "HyperParallel's PPOptimizer, Python of Colossal-AI (HybridParallelPlugin), DeepSpeed (PARTS) or "
    "PyTorch's pipelining (PIPELINE_STAGES or split_spec) or a JSON of such names, a CSV of layers "
    "(index,name,stage,chunk,recompute) and a JSON of layers (sapp-ppb-layers)"
)
# Names that the Python or JSON of a framework has, and no other.
_LITERALS = (
    (Framework.COLOSSALAI, re.compile(r"\b(HybridParallelPlugin|num_(ckpt_)?layers_per_stage|pp_style)\b")),
    (Framework.PYTORCH, re.compile(r"\b(pipeline_stages|split_spec|torch\.distributed\.pipelining)\b", re.I)),
    (Framework.DEEPSPEED, re.compile(r"\b(deepspeed|PipelineModule|PARTS|activation_checkpoint_interval)\b")),
)
_OF_TORCHTITAN = re.compile(r"\btorchtitan\b|\bpipeline_parallel_degree\b|_per_model_part\b")
_MODEL = re.compile(r'"layers_description"\s*:')
_PLAN = re.compile(rf'"format"\s*:\s*"{PLAN_FORMAT}"')
_LAYERS = re.compile(r'"format"\s*:\s*"sapp-ppb-layers"')
_RESULT = re.compile(r'"stage_partition"\s*:')  # of HyperParallel's PPOptimizer
_INPUTS = re.compile(r"^pipeline_config\s*:", re.M)
_HEADER = re.compile(r'"?index"?\s*,\s*"?name"?\s*,\s*"?stage"?\s*,')
_MINDFORMERS = re.compile(
    r"^(parallel_config|recompute_config|swap_config)\s*:|"
    r"^model\s*:[^\n]*\n(?:[ \t#][^\n]*\n|\n)*?[ \t]+model_config\s*:",
    re.M,
)
_INIT = re.compile(r"^(time_config|profiling_config|memory_usage)\s*:", re.M)  # of the older tool
_ARGUMENTS = re.compile(r"^\s*MODEL_ARGS\s*:", re.M)
# Flags that MindSpeed has and Megatron-LM has not.
_OF_MINDSPEED = re.compile(
    r"(?<![\w-])--(pipeline-num-transformer-layers|num-layer-list|noop-layers|schedules-method|"
    r"dualpipev-dw-detach|moe-fb-overlap|enable-recompute-layers-per-pp-rank|recompute-in-(bubble|advance)|"
    r"recompute-(activation-function|norm)|swap-attention|smart-swap|adaptive-recompute-device-size|"
    r"adaptive-memory-optimization|automated-pipeline|reuse-fp32-param|use-fused-(rmsnorm|swiglu))(?![\w])"
)
_FLAGS = re.compile(
    r"(?<![\w-])--(pipeline-model-parallel-\w|num-layers(?![\w-])|recompute-(granularity|method|num-layers)|"
    r"decoder-(first|last)-pipeline-num-layers|account-for-(embedding|loss)-in-pipeline-split|"
    r"num-layers-per-virtual-pipeline-stage|global-batch-size)"
)


def framework_of(path: str | PathLike[str]) -> Framework | None:
    """
    Tell whose configuration a file is.

    Returns
    -------
    Framework or None
        None for a plan file, for what nothing is known of, and for a file that can not be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "run.sh").write_text("torchrun pretrain.py --pipeline-model-parallel-size 4")
    ...     framework_of(Path(folder, "run.sh")).value
    'megatron'
    """
    name = str(path).lower()
    if name.endswith(".toml") or ".py::" in name:
        return Framework.TORCHTITAN
    text = _beginning(path)
    if name.endswith(".py"):
        return _of_literals(text) or Framework.TORCHTITAN
    if _PLAN.search(text) or _INIT.search(text):
        return None
    for framework, is_its in (
        (Framework.JSON, _LAYERS.search),
        (Framework.HYPERPARALLEL, _RESULT.search),
        (Framework.CSV, _HEADER.match),
        (Framework.MINDSPEED, _OF_MINDSPEED.search),
        (Framework.MEGATRON, _ARGUMENTS.search),
        (Framework.MINDFORMERS, _MINDFORMERS.search),
        (Framework.MEGATRON, _FLAGS.search),
        (Framework.HYPERPARALLEL, _INPUTS.search),
    ):
        if is_its(text):
            return framework
    return _of_literals(text) if name.endswith(".json") else None


def _of_literals(text: str) -> Framework | None:
    """Tell whose names a text has; None for none, and for those of torchtitan."""
    if _OF_TORCHTITAN.search(text):
        return None
    return next((framework for framework, names in _LITERALS if names.search(text)), None)


def is_plan_file(path: str | PathLike[str]) -> bool:
    """Whether a file says of itself that it is a plan file."""
    return _PLAN.search(_beginning(path)) is not None


def _beginning(path: str | PathLike[str]) -> str:
    """Text that a file begins with; none when it can not be read, which its reader says better."""
    try:
        with opened(path) as file:
            return file.read(_LOOKED_AT_BYTES).decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
    except (OSError, ValueError):
        return ""


def read_config(
    path: str | PathLike[str],
    framework: str | None = None,
    *,
    layers: int | None = None,
    micro_batches: int | None = None,
    model: Model | None = None,
) -> PipelineConfig:
    """
    Read the configuration of any framework.

    Parameters
    ----------
    framework
        Whose it is; None to tell from the file.
    layers
        BODY layers of the model, for a framework whose configuration does not say them.
    micro_batches
        Micro-batches of a step, for a framework whose configuration does not say them.
    model
        Model whose strategies a list of layers may name; None: recompute types only.

    Raises
    ------
    InputError
        If it can not be read, or nothing tells whose it is.
    """
    if framework is not None and framework not in tuple(Framework):
        raise InputError("--from", [f"{framework!r} is unknown; one of {', '.join(Framework)}"])
    found = framework_of(path) if framework is None else Framework(framework)
    if found is None:
        raise InputError(str(path), [_not_told(path)])
    return _reader(found, layers, micro_batches, model)(path)


def _not_told(path: str | PathLike[str]) -> str:
    """Say why nobody's configuration is known; of a file that can not be read, as every reader says it."""
    if is_plan_file(path):
        return "is a plan file and no configuration; give it to sapp-ppb simulate or compare"
    if _MODEL.search(_beginning(path)):
        return "is a model file and no configuration; give it to --model"
    refuse_unreadable(path)
    return f"is no configuration that is known: these are {_KNOWN}; name the framework with --from"


def _reader(
    framework: Framework, layers: int | None, micro_batches: int | None, model: Model | None
) -> Callable[[str | PathLike[str]], PipelineConfig]:
    """Give the reader of a framework, imported only when it is asked for."""
    if framework is Framework.MINDFORMERS:
        from sapp_ppb.readers.frameworks.mindformers_config import read_mindformers

        return read_mindformers
    if framework is Framework.MEGATRON:
        from sapp_ppb.readers.frameworks.megatron_config import read_megatron

        return lambda path: read_megatron(path, micro_batches)
    if framework is Framework.MINDSPEED:
        from sapp_ppb.readers.frameworks.mindspeed_config import read_mindspeed

        return lambda path: read_mindspeed(path, micro_batches)
    if framework is Framework.HYPERPARALLEL:
        from sapp_ppb.readers.frameworks.hyperparallel_config import read_hyperparallel

        return read_hyperparallel
    if framework is Framework.TORCHTITAN:
        from sapp_ppb.readers.frameworks.torchtitan_config import read_torchtitan

        return lambda path: read_torchtitan(path, layers)
    if framework is Framework.COLOSSALAI:
        from sapp_ppb.readers.frameworks.colossalai_config import read_colossalai

        return lambda path: read_colossalai(path, layers)
    if framework is Framework.DEEPSPEED:
        from sapp_ppb.readers.frameworks.deepspeed_config import read_deepspeed

        return lambda path: read_deepspeed(path, layers)
    if framework is Framework.PYTORCH:
        from sapp_ppb.readers.frameworks.pytorch_config import read_pytorch

        return lambda path: read_pytorch(path, layers)
    from sapp_ppb.readers.frameworks.layer_list import read_layer_list

    return lambda path: read_layer_list(path, model)
