"""The page of an estimate: what every layer should cost, and what it was computed for."""

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from sapp_ppb.cli.text.tables import pairs_table, rendered
from sapp_ppb.costs import Recompute

if TYPE_CHECKING:
    from sapp_ppb.costs import Layer
    from sapp_ppb.costs.device import Device
    from sapp_ppb.estimation import LayerEstimate, TrainingSetup, TransformerEstimate


def estimate_text(estimate: "TransformerEstimate", setup: "TrainingSetup", device: "Device") -> str:
    """Fill the page of an estimate."""
    title = f"{estimate.model.name} on {device.name}: estimated from sizes and speeds, nothing was measured"
    return rendered(
        [
            Text(title),
            Text(),
            _costs_table(estimate),
            Text(),
            Text("activation memory of one micro-batch, MB, by recompute type"),
            _activation_table(estimate),
            Text(),
            pairs_table([*_parameter_rows(estimate), *_setup_rows(estimate, setup, device)]),
        ]
    )


def _costs_table(estimate: "TransformerEstimate") -> Table:
    table = _table(
        "parameters", "TFLOP", "forward,\nms", "backward,\nms", "with full\nrecompute", "states,\nMB"
    )
    for row in estimate.layers:
        layer = row.layer
        full = _number(layer.backward_ms[Recompute.FULL]) if Recompute.FULL in layer.considered else ""
        table.add_row(*_names(layer), *_costs(row), full, _number(layer.parameter_mb))
    return table


def _costs(row: "LayerEstimate") -> tuple[str, ...]:
    times = (row.layer.forward_ms, row.layer.backward_ms[Recompute.NONE])
    return (f"{row.parameters:,}", _number(row.flops / 1e12), *map(_number, times))


def _activation_table(estimate: "TransformerEstimate") -> Table:
    table = _table(*(r.label for r in Recompute))
    for row in estimate.layers:
        held = row.layer.activation_mb
        table.add_row(*_names(row.layer), *("" if mb is None else _number(mb) for mb in held))
    return table


def _table(*numbers: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("layer", overflow="fold")
    table.add_column("kind")
    for heading in ("count", *numbers):
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _names(layer: "Layer") -> tuple[Text, str, str]:
    return Text(layer.name), layer.kind.value, str(layer.count)


def _parameter_rows(estimate: "TransformerEstimate") -> list[tuple[str, str]]:
    """Say how many parameters there are, and how many a token meets."""
    said = f"{estimate.parameters:,}"
    if estimate.active_parameters != estimate.parameters:
        said += f", of which a token runs through {estimate.active_parameters:,}"
    rows = [("parameters", said)]
    if estimate.mtp_parameters:
        rows.append(("of MTP", f"{estimate.mtp_parameters:,} more, without copies of embedding and output"))
    return rows


def _setup_rows(
    estimate: "TransformerEstimate", setup: "TrainingSetup", device: "Device"
) -> list[tuple[str, str]]:
    """Say what the numbers hold for."""
    model = estimate.model
    sequences = "sequence" if setup.micro_batch == 1 else "sequences"
    flash = "FlashAttention" if setup.flash else "attention that keeps its scores"
    split = " and sequence" if setup.sequence_parallel and setup.tensor > 1 else ""
    beyond_a_node = device.devices_per_node + 1
    send_ms = device.send_ms(estimate.message_mb * 2**20, group=beyond_a_node)
    return [
        (
            "one micro-batch",
            f"forward {_number(model.total_forward_ms)} ms, backward {_number(model.total_backward_ms)} ms "
            "through all layers",
        ),
        (
            "of",
            f"{setup.micro_batch} {sequences} of {setup.sequence_length:,} tokens, {setup.dtype.value}, "
            f"{flash}",
        ),
        (
            "on a stage of",
            f"{setup.tensor} tensor{split} x {setup.data} data parallel devices, experts over "
            f"{setup.expert}, ZeRO {setup.zero}",
        ),
        ("a device has", f"{device.memory_mb:,.10g} MB, some of which its software takes"),
        (
            "between stages",
            f"{_number(estimate.message_mb)} MB a message, {_number(send_ms)} ms over the network (--p2p)",
        ),
        ("estimate", "times and memory are estimates and may be far off; docs/estimation.md says how far"),
    ]


def _number(value: float) -> str:
    return f"{value:,.4g}" if value < 1000 else f"{value:,.1f}"
