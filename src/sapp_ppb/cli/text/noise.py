"""What ``plan --noise`` prints: how the plan and its runners-up hold, and which holds best."""

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sapp_ppb.cli.text.tables import rendered
from sapp_ppb.report.words import step_word

if TYPE_CHECKING:
    from sapp_ppb.planner import NoisyPlan, Robustness


def noise_text(found: "Robustness") -> str:
    """Fill the part of the page that says how plans hold when layers vary."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    table.add_column("layers a stage, chunk by chunk", overflow="fold")
    step = step_word(found.chosen.plan.problem)
    for heading in (f"{step},\nms", "median,\nms", "95th per-\ncentile, ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    best = found.best_at_p95
    for number, each in enumerate(found.plans):
        table.add_row(
            "the plan" if number == 0 else f"runner-up {number}",
            split_text(each),
            *(f"{ms:,.1f}" for ms in (each.step_ms, each.median_ms, each.p95_ms)),
            style="bold" if each is best else None,
        )
    percent = f"{100 * found.noise:.3g} %"
    title = f"when the times of layers vary, with a standard deviation of {percent} ({found.draws} draws)"
    page: list[RenderableType] = [Text(), Text(title), table, Text(_verdict(found))]
    return rendered(page)


def split_text(each: "NoisyPlan") -> str:
    """Layers of every stage, a chunk after the other, and how many are recomputed or under a strategy."""
    rows = each.plan.per_chunk_and_stage(each.plan.layers_per_cell).tolist()
    again = each.plan.recomputed_layers
    words = [f"{again} recomputed"] if again else []
    words += [f"{layers} {name}" for name, layers in each.plan.strategy_layers.items()]
    return ", ".join([" | ".join(" ".join(map(str, row)) for row in rows), *words])


def _verdict(found: "Robustness") -> str:
    """Say which plan is best at the 95th percentile, and what it costs in the median."""
    best, chosen = found.best_at_p95, found.chosen
    if best is chosen:
        return "the plan is also the best of these at the 95th percentile"
    number = next(at for at, each in enumerate(found.plans) if each is best)
    gained, paid = 1 - best.p95_ms / chosen.p95_ms, best.median_ms / chosen.median_ms - 1
    offsets = " | ".join(" ".join(f"{n:d}" for n in row) for row in best.plan.offset.tolist())
    return (
        f"runner-up {number} is {gained:.2%} shorter at the 95th percentile, for {paid:+.2%} in the median; "
        f"its offsets: {offsets}"
    )
