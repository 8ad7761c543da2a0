"""``sapp-ppb costs hf``: costs of layers from a model's sizes, without any run."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sapp_ppb.cli.costs.measured import deliver
from sapp_ppb.cli.guard import FITS
from sapp_ppb.cli.options.output import Force, ModelJson, ModelOutput
from sapp_ppb.cli.output_files import free_file
from sapp_ppb.errors import InputError

if TYPE_CHECKING:
    from sapp_ppb.costs.architecture import Architecture
    from sapp_ppb.costs.device import Device
    from sapp_ppb.estimation import DType, TrainingSetup, TransformerEstimate

SHORT_HELP = "Estimate from a Hugging Face config and a device, without any run."
HELP = """
Read the config.json of a model on Hugging Face (llama, qwen2, qwen3, qwen3_moe, mixtral,
deepseek_v3) and make a model file of estimates: times from FLOPs and bytes at the speeds of a
device, memory for the five recompute types.  docs/estimation.md has every formula, and how wrong
each can be; what was measured is better.

A device is one of a100, h100, h200, 910b or a YAML file with the same keys.

\b
Examples:
  sapp-ppb costs hf llama3.1_70b.json --device h100 --tp 8 --dp 4 --seq 8192 -o model.json
  sapp-ppb costs hf deepseek_v3.json --device mine.yaml --dp 128 --ep 64 --seq 4096 --zero 1 --json
"""
_OPTIONS = {
    "sequence_length": "--seq",
    "micro_batch": "--micro-batch",
    "tensor": "--tp",
    "data": "--dp",
    "expert": "--ep",
    "zero": "--zero",
    "sequence parallelism": "--sequence-parallel",
}


def hf(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG.json", help="Config of the model.", show_default=False)
    ],
    device: Annotated[
        str, typer.Option("--device", metavar="NAME|FILE", help="a100, h100, h200, 910b, or a YAML file.")
    ],
    sequence_length: Annotated[
        int, typer.Option("--seq", metavar="TOKENS", help="Tokens of a sequence.", show_default=False)
    ],
    micro_batch: Annotated[
        int, typer.Option("--micro-batch", metavar="N", help="Sequences of a micro-batch.")
    ] = 1,
    tensor: Annotated[int, typer.Option("--tp", metavar="N", help="Tensor-parallel devices.")] = 1,
    data: Annotated[int, typer.Option("--dp", metavar="N", help="Data-parallel devices.")] = 1,
    expert: Annotated[
        int, typer.Option("--ep", metavar="N", help="Data-parallel devices that share the experts.")
    ] = 1,
    zero: Annotated[
        int,
        typer.Option(
            "--zero",
            metavar="0..3",
            help="What the data-parallel devices share: 0 nothing, 1 optimizer states, 2 gradients too, "
            "3 weights too.",
        ),
    ] = 1,
    sequence_parallel: Annotated[
        bool,
        typer.Option(
            "--sequence-parallel/--no-sequence-parallel",
            help="Split over the sequence what tensor parallelism leaves whole.",
        ),
    ] = True,
    flash: Annotated[bool, typer.Option("--flash/--no-flash", help="Attention that keeps no scores.")] = True,
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="TYPE", help="bf16 or fp16, with fp32 optimizer states.")
    ] = "bf16",
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the model; else that of the file.")
    ] = None,
    output: ModelOutput = None,
    force: Force = False,
    json_: ModelJson = False,
) -> int:
    """Read a config, and write what its layers should cost."""
    from sapp_ppb.cli.costs.estimate_page import estimate_text
    from sapp_ppb.estimation import TrainingSetup
    from sapp_ppb.readers.models.device_file import read_device
    from sapp_ppb.readers.models.hf_config import read_hf_config

    if output is not None:
        free_file("--output", output, force=force)
    machine = read_device(device)
    try:
        setup = TrainingSetup(
            sequence_length=sequence_length,
            micro_batch=micro_batch,
            tensor=tensor,
            data=data,
            expert=expert,
            zero=zero,
            sequence_parallel=sequence_parallel,
            flash=flash,
            dtype=_dtype(dtype),
        )
        estimate = _estimate(read_hf_config(config, name), setup, machine)
    except InputError as error:
        raise _in_options(error) from None
    page = estimate_text(estimate, setup, machine)
    deliver(estimate.model, page, output, force=force, json_=json_)
    return FITS


def _estimate(
    architecture: "Architecture", setup: "TrainingSetup", device: "Device"
) -> "TransformerEstimate":
    from sapp_ppb.estimation import estimate_transformer

    return estimate_transformer(architecture, setup, device)


def _dtype(text: str) -> "DType":
    from sapp_ppb.estimation import DType

    try:
        return DType(text.lower())
    except ValueError:
        known = ", ".join(kind.value for kind in DType)
        raise InputError("--dtype", [f"{text!r} is unknown; one of {known}"]) from None


def _in_options(error: InputError) -> InputError:
    """
    Say the fields of a setup as the options that give them.

    Examples
    --------
    >>> print(_in_options(InputError("training setup", ["tensor must divide the 4 heads (got 3)"])))
    training setup: --tp must divide the 4 heads (got 3)
    """
    if not error.where.startswith("training setup"):
        return error
    words = re.compile(rf"\b({'|'.join(_OPTIONS)})\b")
    return InputError(error.where, [words.sub(lambda found: _OPTIONS[found[0]], f) for f in error.faults])
