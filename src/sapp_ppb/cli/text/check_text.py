"""The page of a check: what the file says, which rules it breaks, what it takes, what would gain."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sapp_ppb.cli.text.tables import pairs_table, rendered, stages_table, widest_bar
from sapp_ppb.costs import Recompute
from sapp_ppb.report.summary import counts_text, gap_words, limit_text, summary_rows, target_text
from sapp_ppb.targets import BrokenRule, CellTypes, PipelineConfig
from sapp_ppb.writers.check_file import Checked
from sapp_ppb.writers.frameworks.exports import EXPORTS

if TYPE_CHECKING:
    from sapp_ppb.simulator import Timeline

_LONGEST_TEXT = 80  # lines worth printing to be pasted


def check_text(checked: Checked) -> str:
    """Fill the page of a check."""
    config, timeline = checked.config, checked.timeline
    page: list[RenderableType] = [Text(_plain(_title(config))), Text(_sizes(config))]
    if timeline is not None:
        page += _price(checked, timeline)
    elif config.types is not None:
        page += [Text(), _layers_table(config.types)]
    for heading, sentences in (
        ("rules broken", _told_once(checked.broken)),
        ("not known", list(dict.fromkeys(checked.unknown))),
        ("notes", list(dict.fromkeys(config.notes))),
    ):
        if sentences:
            page += [
                Text(),
                Text(heading, style="bold"),
                *(Text(f"  {_plain(words)}") for words in sentences),
            ]
    if not checked.broken and not checked.unknown:
        page += [Text(), Text("no rule is broken")]
    if checked.unpriced is not None:
        page += [Text(), Text(_plain(f"not priced: {checked.unpriced}"))]
    page += [Text(_plain(line)) for line in _planner(checked)]
    return rendered(page) + _to_paste(checked)


def _told_once(broken: Sequence[BrokenRule]) -> list[str]:
    """Say each rule once, with every key that breaks it in the same way."""
    keys: dict[BrokenRule, list[str]] = {}
    for rule in broken:
        named = keys.setdefault(replace(rule, key=""), [])
        if rule.key not in named:
            named.append(rule.key)
    return [str(replace(rule, key=", ".join(named))) for rule, named in keys.items()]


def _plain(words: str) -> str:
    """Text with nothing in it that steers a terminal: a file may hold any character."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)


def _title(config: PipelineConfig) -> str:
    form = EXPORTS.get(config.target)
    return f"{config.target if form is None else form.title}: {config.where}"


def _sizes(config: PipelineConfig) -> str:
    """Say the sizes on one line, those that are not known too."""
    chunks = [] if config.interleave == 1 else [f"{config.interleave} chunks a stage"]
    group = config.micro_batch_group
    mtp = f", {config.mtp_layers} of them for multi-token prediction" if config.mtp_layers else ""
    limit = config.memory_limit_mb
    return ", ".join(
        [
            _number(config.stages, "stage"),
            *chunks,
            _number(config.micro_batches, "micro-batch"),
            *([] if config.schedule is None else [config.schedule.value]),
            *([] if group is None else [f"groups of {group}"]),
            *([] if config.sequence_chunks == 1 else [f"{config.sequence_chunks} sequence chunks"]),
            _number(config.layers, "layer") + mtp,
            *([] if limit is None else [f"a limit of {limit_text(limit)} MB"]),
        ]
    )


def _number(number: int | None, word: str) -> str:
    plural = f"{word}es" if word.endswith("ch") else f"{word}s"
    return f"unknown {plural}" if number is None else f"{number} {word if number == 1 else plural}"


def _layers_table(types: CellTypes) -> Table:
    """Give each stage a row with the layers of its chunks."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("stage", justify="right")
    for chunk in range(len(types)):
        table.add_column(f"chunk {chunk}" if len(types) > 1 else "layers", overflow="fold")
    known = sorted({*Recompute, *(r for row in types for cell in row for r in cell)})
    for stage, cells in enumerate(zip(*types, strict=True)):
        words = [counts_text([cell.count(r) for r in known], known) for cell in cells]
        table.add_row(str(stage), *words)
    return table


def _price(checked: Checked, timeline: "Timeline") -> list[RenderableType]:
    from sapp_ppb.simulator import timed

    rows = summary_rows(timed(timeline), timeline)
    return [
        Text(),
        stages_table(timeline, widest_bar(timeline)),
        Text(),
        pairs_table([row for row in rows if row[0] != "status" or timeline.stages_over]),
    ]


def _planner(checked: Checked) -> list[str]:
    """Say what the planner would gain, and what it would change."""
    if checked.unplanned is not None:
        return ["", f"planner: {checked.unplanned}"]
    outcome = checked.better
    if outcome is None or checked.timeline is None:
        return []
    if outcome.plan is None:
        return [
            "",
            "planner: no plan fits the memory; 'sapp-ppb plan' with the same sizes says what would do",
        ]
    proof, free = gap_words(outcome), outcome.without_target
    cost = [] if free is None else [f"  {target_text(outcome, free)}"]
    if not checked.is_better:
        said = f"planner: nothing shorter was found; its plan of {outcome.step_ms:,.1f} ms is {proof}"
        return ["", said, *cost]
    share = checked.shorter
    fits = "" if checked.timeline.fits_memory else ", and fits"
    words = f"{share:.1%} shorter" if share > 0 else f"{-share:.1%} longer"
    return [
        "",
        f"planner: {outcome.step_ms:,.1f} ms, {words}{fits}; {proof}",
        f"  {_changes(checked)}",
        *cost,
    ]


def _changes(checked: Checked) -> str:
    """Say how many layers move, and how many are recomputed more or fewer."""
    more = checked.more_recomputed
    recomputed = "as many" if more == 0 else f"{more} more" if more > 0 else f"{-more} fewer"
    layers = "1 layer" if checked.moved_layers == 1 else f"{checked.moved_layers} layers"
    return f"moves {layers}, recomputes {recomputed}"


def _to_paste(checked: Checked) -> str:
    """Give the planner's plan in the framework's words, where it is worth taking."""
    text = checked.text_to_paste
    if text is None or not checked.is_better:
        return ""
    if len(text.splitlines()) > _LONGEST_TEXT:
        return "'sapp-ppb plan' with the same sizes and -o writes it\n"
    return f"\nto paste:\n{text}"
