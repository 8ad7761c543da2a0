"""Page that says which layers a profile came to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sapp_ppb.cli.text.tables import pairs_table, rendered

if TYPE_CHECKING:
    from sapp_ppb.costs import Layer, Model, RecomputeType


def model_text(model: "Model", facts: Sequence[tuple[str, str]] = ()) -> str:
    """
    Fill the page of a model: a line for each layer, then the totals and what else there is to say.

    Parameters
    ----------
    model
        Its activations are shown for every recompute type and strategy that some layer has.
    facts
        Names and values that stand before the totals.
    """
    from sapp_ppb.costs import Recompute

    types = [r for r in model.types if any(_held(layer, r) is not None for layer in model.layers)]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("layer", overflow="fold")
    table.add_column("kind")
    headings = ["count", "forward,\nms", "backward,\nms", "parameters,\nMB"]
    for heading in [*headings, *(f"activation,\n{r.label}, MB" for r in types)]:
        table.add_column(heading, justify="right", no_wrap=True)
    for layer in model.heads + model.bodies + model.tails:
        held = [_held(layer, r) for r in types]
        table.add_row(
            Text(layer.name),
            layer.kind.value,
            str(layer.count),
            _number(layer.forward_ms),
            _number(layer.backward_ms[Recompute.NONE]),
            _number(layer.parameter_mb),
            *("" if mb is None else _number(mb) for mb in held),
        )
    rows = [
        *facts,
        ("forward", f"{_number(model.total_forward_ms)} ms of one micro-batch"),
        ("backward", f"{_number(model.total_backward_ms)} ms"),
        ("parameters", f"{_number(model.total_parameter_mb)} MB, with gradients and optimizer state"),
    ]
    title = f"{model.name}: {model.body_count} BODY layers"
    page: list[RenderableType] = [Text(title), Text(), table, Text(), pairs_table(rows)]
    return rendered(page)


def _held(layer: "Layer", recompute: "RecomputeType") -> float | None:
    """MB under a type; None where the layer does not have it."""
    return layer.activation_mb[recompute] if recompute < len(layer.activation_mb) else None


def _number(value: float) -> str:
    return f"{value:,.4g}" if value < 1000 else f"{value:,.1f}"
