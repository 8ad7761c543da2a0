"""What the page says, as HTML: every text that comes from outside is escaped in this file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from math import isinf
from string import Template

from sapp_ppb.plan import Outcome, Status
from sapp_ppb.report.colours import EXTRA, shade
from sapp_ppb.report.critical_path import Waits
from sapp_ppb.report.limits import Part, limit_rows, step_parts
from sapp_ppb.report.page_data import MOST_OPS, is_thinned
from sapp_ppb.report.reasons import Reason, Why, reasons_of_kinds
from sapp_ppb.report.summary import (
    cell_text,
    gap_words,
    limit_text,
    share_text,
    shortage_rows,
    summary_rows,
    title_text,
)
from sapp_ppb.report.words import EXTRA_NAME, added_text
from sapp_ppb.report.work import Work
from sapp_ppb.schedules import OpKind
from sapp_ppb.simulator import Timeline

# A gap that is good news, and has its colour.
_NEAR = 0.01


@dataclass(frozen=True, kw_only=True)
class Sections:
    """Title and body of a page, both HTML."""

    title: str
    body: str


@cache
def part(name: str) -> Template:
    """Text of a file of the page, with places to fill."""
    return Template((files("sapp_ppb.report") / "page" / name).read_text(encoding="utf-8"))


def plan_sections(
    outcome: Outcome, timeline: Timeline, waits: Waits, lists: Mapping[str, str], tokens: int | None
) -> Sections:
    """Say all that is known of a plan, in the order in which docs/reading-a-report.md explains it."""
    sections = [
        ("summary", "Summary", _summary(outcome, timeline, tokens)),
        ("timeline", "Timeline", _timeline(timeline)),
        ("memory", "Memory", _memory(timeline)),
        ("stages", "Stages", _stages(timeline)),
        ("lists", "The plan, to copy", _lists(lists)),
        ("recompute", "Why layers are recomputed", _recompute(timeline)),
        ("limits", "What limits this plan", _limits(timeline, waits)),
    ]
    return _page(outcome, [section for section in sections if section[2]])


def infeasible_sections(outcome: Outcome) -> Sections:
    """Say why nothing fits, and what would."""
    rows = shortage_rows(outcome, outcome.shortage) if outcome.shortage else []
    said = "<p class='verdict bad'>No plan fits the memory.</p>" + _pairs(rows)
    return _page(outcome, [("summary", "Summary", said)])


def _page(outcome: Outcome, sections: Sequence[tuple[str, str, str]]) -> Sections:
    name, asked = outcome.problem.model.name, title_text(outcome)
    links = "".join(f"<a href='#{key}'>{heading}</a>" for key, heading, _ in sections)
    head = (
        f"<header><h1>{_text(name)}</h1><p>{_text(asked.removeprefix(f'{name}: '))}</p>"
        + (f"<nav aria-label='Sections'>{links}</nav>" if len(sections) > 1 else "")
        + "</header>"
    )
    body = "".join(
        f"<section id='{key}' aria-labelledby='{key}-heading'><h2 id='{key}-heading'>{heading}</h2>"
        f"{content}</section>"
        for key, heading, content in sections
    )
    return Sections(title=escape(f"{name} - pipeline plan"), body=f"{head}<main>{body}</main>")


def _text(text: str) -> str:
    """Text from outside: no markup, and a direction of its own."""
    return f"<bdi>{escape(text)}</bdi>"


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Names and their values."""
    return "<dl>" + "".join(f"<dt>{escape(n)}</dt><dd>{_text(value)}</dd>" for n, value in rows) + "</dl>"


def _table(label: str, headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int]) -> str:
    """Table of cells that are HTML, in a box that scrolls by itself; the first of a row is its heading."""
    right = set(numbers)
    mark = [" class='number'" if column in right else "" for column in range(len(headings))]
    head = "".join(f"<th scope='col'{m}>{escape(h)}</th>" for m, h in zip(mark, headings, strict=True))
    body = "".join(
        f"<tr><th scope='row'{mark[0]}>{first}</th>"
        + "".join(f"<td{m}>{cell}</td>" for m, cell in zip(mark[1:], rest, strict=True))
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f"<div class='scroll' tabindex='0' role='region' aria-label='{escape(label)}'><table>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _bar(share: float, kind: str) -> str:
    """Draw a share of 1 as a bar."""
    width = max(0.0, min(share, 1.0)) * 100
    return (
        f"<svg class='bar {kind}' viewBox='0 0 100 1' preserveAspectRatio='none' aria-hidden='true'>"
        f"<rect width='{width:.1f}' height='1'/></svg>"
    )


def _swatch(colour: str) -> str:
    return f"<svg class='swatch' aria-hidden='true'><rect width='100%' height='100%' fill='{colour}'/></svg>"


def _summary(outcome: Outcome, timeline: Timeline, tokens: int | None) -> str:
    over, plan = timeline.stages_over, timeline.plan
    words = "exceeds the memory limit" if over else gap_words(outcome)
    near = outcome.status is Status.OPTIMAL or (outcome.gap is not None and outcome.gap <= _NEAR)
    tone = "bad" if over else "good" if near else ""
    tiles = (
        (f"{timeline.step_ms:,.1f} ms", "one step", ""),
        (words, "memory" if over else "guarantee", tone),
        (f"{max(timeline.peak_memory_mb):,.0f} MB", "highest peak of a stage", ""),
        (f"{plan.recomputed_layers:,} of {plan.problem.model.body_count:,}", "layers recomputed", ""),
        *((f"{layers:,}", f"layers under {name}", "") for name, layers in plan.strategy_layers.items()),
        (f"{timeline.bubble.total:.1%}", "bubble, of useful work", ""),
    )
    shown = "".join(
        f"<li><b class='{tone}'>{escape(value)}</b> <span>{escape(name)}</span></li>"
        for value, name, tone in tiles
    )
    return f"<ul class='tiles'>{shown}</ul>" + _pairs(summary_rows(outcome, timeline, tokens))


def _timeline(timeline: Timeline) -> str:
    """Place the controls and the drawing, which the script fills."""
    problem, thinned = timeline.plan.problem, is_thinned(timeline)
    recomputed, added = timeline.plan.mixed_types > 0, added_text([timeline.plan])
    kinds = {op.kind for row in problem.order.rows for op in row}
    works = [work for kind, work in _WORKS.items() if kind in kinds]
    works += [Work.RECOMPUTE] if recomputed else []
    return part("timeline.html").substitute(
        split=" Parts of a backward are I, the gradient of the input, and W, that of the weights."
        if OpKind.W in kinds
        else "",
        shades=" Chunks are shades, the first the lightest." if problem.interleave > 1 else "",
        thinned=_thinned(timeline) if thinned else "",
        recompute=_SHOW_RECOMPUTE if recomputed else "",
        find="" if thinned else _FIND,
        legend="".join(
            f"<li>{_swatch(shade(work))}{escape(added) if work is Work.RECOMPUTE else work.value}</li>"
            for work in works
        )
        + (f"<li>{_swatch(EXTRA)}{EXTRA_NAME}</li>" if timeline.extra_ms else ""),
        click="Click a stage to see its memory below." if thinned else "Click an op to keep it.",
    )


_WORKS = {OpKind.F: Work.FORWARD, OpKind.B: Work.BACKWARD, OpKind.I: Work.INPUT, OpKind.W: Work.WEIGHT}
_SHOW_RECOMPUTE = "<label><input type='checkbox' id='show-recompute' checked> Recompute</label>"
_FIND = "<label>Find op <input id='find' size='8' placeholder='0F0' autocomplete='off'></label>"


def _thinned(timeline: Timeline) -> str:
    ops = sum(map(len, timeline.start_ms))
    return (
        f"<p class='note'>{ops:,} ops are more than the {MOST_OPS:,} that this page draws one by one. Each "
        "cell of the picture is a mean over <span id='bin-ms'></span> ms; the ops of the longest path are "
        "drawn over it, and trace.json has every op.</p>"
    )


def _memory(timeline: Timeline) -> str:
    """Place the choice of a stage and the drawing, which the script fills."""
    stages = range(timeline.plan.problem.stages)
    return part("memory.html").substitute(
        stages="".join(f"<option value='{stage}'>stage {stage}</option>" for stage in stages)
    )


def _stages(timeline: Timeline) -> str:
    problem = timeline.plan.problem
    limits, one = problem.limit_per_stage_mb, problem.interleave == 1
    limited = not isinf(limits[0])
    headings = ["stage"] + (["layers"] if one else [f"chunk {c}" for c in range(problem.interleave)])
    uneven = problem.stage_speed is not None
    headings += (
        (["speed"] if uneven else [])
        + ["busy", "", "peak, MB"]
        + (["limit, MB", "of limit", ""] if limited else [])
    )
    rows = []
    for stage, (busy_ms, peak) in enumerate(zip(timeline.busy_ms, timeline.peak_memory_mb, strict=True)):
        busy, limit = busy_ms / timeline.makespan_ms, limits[stage]
        used = peak / limit if limit > 0 else float(peak > 0)
        row = [str(stage)]
        row += [_text(cell_text(timeline.plan, stage, chunk)) for chunk in range(problem.interleave)]
        row += [f"{problem.speed_per_stage[stage]:.10g}"] if uneven else []
        row += [f"{busy:.1%}", _bar(busy, "busy"), f"{peak:,.0f}"]
        if limited:
            kind = "over" if stage in timeline.stages_over else "held"
            row += [limit_text(limit), share_text(used), _bar(used, kind)]
        rows.append(row)
    first = 1 + problem.interleave + uneven
    return _table("Stages", headings, rows, [0, first - uneven, first, *range(first + 2, first + 5)])


def _lists(lists: Mapping[str, str]) -> str:
    return "".join(
        f"<figure><figcaption>{_text(name)} <button type='button' class='copy' aria-label='Copy for "
        f"{escape(name)}'>Copy</button></figcaption><pre tabindex='0'>{escape(text)}</pre></figure>"
        for name, text in lists.items()
    )


def _recompute(timeline: Timeline) -> str:
    """Table of what would happen if a layer were recomputed less."""
    reasons = reasons_of_kinds(timeline.plan)
    if not reasons:
        return "<p>No layer is recomputed.</p>"
    total, all_layers = sum(reason.count for reason in reasons), timeline.plan.problem.model.body_count
    needed = sum(reason.count for reason in reasons if reason.why is Why.MEMORY)
    said = "each is needed" if needed == total else f"{needed:,} of these are needed for memory"
    headings = ["stage", "layer", "recomputed", "one of them as"]
    headings += ["would need, MB", "at op", "over the limit by, MB"]
    rows = [_reason_row(reason, thinned=is_thinned(timeline)) for reason in reasons]
    under = "".join(f" or under {_text(name)}" for name in timeline.plan.strategy_layers)
    return (
        f"<p>{total:,} of {all_layers:,} layers are recomputed{under}; {said}: a row says what would happen "
        "if one layer of its stage were recomputed less, in the chunk where that adds least.</p>"
        + _table("Why layers are recomputed", headings, rows, [0, 4, 6])
    )


def _reason_row(reason: Reason, *, thinned: bool) -> tuple[str, ...]:
    """Row of one reason; its op can be clicked where the page has it."""
    op = str(reason.op)
    return (
        str(reason.stage),
        _text(reason.layer),
        escape(f"{reason.count:,} {reason.recompute.label}"),
        "-" if reason.less is None else escape(reason.less.label),
        f"{reason.needed_mb:,.1f}",
        op if thinned else f"<button type='button' class='op' data-op='{op}'>{op}</button>",
        f"{reason.over_mb:,.1f}" if reason.why is Why.MEMORY else reason.why.value,
    )


def _limits(timeline: Timeline, waits: Waits) -> str:
    parts = step_parts(timeline)
    rows = [_part_row(part, timeline.makespan_ms) for part in parts]
    return (
        _pairs(limit_rows(timeline, waits))
        + "<h3>Where the step goes, averaged over the stages</h3>"
        + _table("Where the step goes", ["part", "ms", "of the step", ""], rows, [1, 2])
    )


def _part_row(part: Part, makespan_ms: float) -> tuple[str, str, str, str]:
    share = part.ms / makespan_ms
    kind = "useful" if not part.remedy else "lost"
    return (
        part.name,
        f"{round(part.ms, 1) + 0.0:,.1f}",
        f"{round(100 * share, 1) + 0.0:.1f}%",
        _bar(share, kind),
    )
