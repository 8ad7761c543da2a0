"""The numbers behind the drawings of the page, as plain lists for JSON."""

import math

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.problem import Problem
from sapp_ppb.report.blocks import Blocks
from sapp_ppb.report.colours import EXTRA, EXTRA_LINES, shade, text_colour
from sapp_ppb.report.critical_path import Waits, overlapped_forwards
from sapp_ppb.report.memory_curve import StageMemory
from sapp_ppb.report.summary import cell_text
from sapp_ppb.report.work import Work, work_shares
from sapp_ppb.schedules import OpKind
from sapp_ppb.simulator import Timeline
from sapp_ppb.simulator.price import price, price_rule, without_recompute

Floats = NDArray[np.float64]

# A browser draws more, but the page would grow by 20 bytes an op; the trace has them all.
MOST_OPS = 50_000
_MOST_BINS, _MOST_BINS_IN_ALL = 1_200, 40_000
_DIGITS = 8  # of the makespan, and of the highest peak: finer than a pixel at the strongest zoom


def is_thinned(timeline: Timeline) -> bool:
    """Whether the page shows means over spans of time and not every op."""
    return sum(map(len, timeline.start_ms)) > MOST_OPS


def page_data(
    timeline: Timeline, blocks: Blocks, waits: Waits, curves: tuple[StageMemory, ...]
) -> dict[str, object]:
    """
    Gather what the drawings need; linear in ops.

    An op is named by one number, ``((micro_batch * k + sequence chunk) * cells + cell) * 4
    + kind``, with k sequence chunks.  Up to
    50,000 ops each is listed with its start and what it waited for; above,
    ``bins`` holds what share of each of many equal spans of time every stage spends on
    what, in percent, and the most that it holds in it.  Ops of the longest path are
    always listed.

    Parameters
    ----------
    timeline
        The plan and its times.
    blocks, waits, curves
        What is derived from it, as ``timeline_blocks()``, ``find_waits()`` and
        ``memory_curve()`` give them.

    Returns
    -------
    dict
        Milliseconds and MB, rounded to 8 digits of the largest.
    """
    problem, plan = timeline.plan.problem, timeline.plan
    costs = price(plan)
    added = costs.backward_ms - without_recompute(plan).backward_ms
    again = added * price_rule(problem)[OpKind.B, :, 1]
    limits = problem.limit_per_stage_mb
    names = _names(blocks, problem)
    thinned = is_thinned(timeline)
    whole = timeline.makespan_ms
    return {
        "makespan_ms": whole,
        "step_ms": timeline.step_ms,
        "extra_ms": [_rounded(np.array(span), timeline.step_ms) for span in timeline.extra_ms],
        "extra_colours": [EXTRA, EXTRA_LINES],
        "stages": problem.stages,
        "chunks": problem.interleave,
        "cells": [
            {"stage": stage, "chunk": chunk, "layers": cell_text(plan, stage, chunk)}
            for chunk, stage in _places(problem)
        ],
        "sequence_chunks": problem.sequence_chunks,
        "duration_ms": _rounded(costs.price_list(problem), whole),
        "recompute_ms": _rounded(np.maximum(again, 0.0), whole),
        "limit_mb": None if math.isinf(limits[0]) else list(limits),
        "peak_mb": list(timeline.peak_memory_mb),
        "colours": {work.value: _shades(work, problem.interleave) for work in Work},
        "text_colours": {work.value: text_colour(work) for work in Work},
        "path": names[waits.path].tolist(),
        "path_start_ms": _rounded(blocks.start_ms[waits.path], whole),
        "path_end_ms": _rounded(blocks.end_ms[waits.path], whole),
        "ops": None if thinned else _ops(timeline, blocks, waits, curves, names),
        "bins": _bins(timeline, blocks, curves) if thinned else None,
    }


def _places(problem: Problem) -> list[tuple[int, int]]:
    """Chunk and stage of every cell, along the chain."""
    cells, placement = range(problem.cells), problem.order.placement
    return [(cell // problem.stages, placement.stage_of(cell, problem.stages)) for cell in cells]


def _shades(work: Work, chunks: int) -> list[str]:
    return [shade(work, chunk, chunks) for chunk in range(chunks)]


def _names(blocks: Blocks, problem: Problem) -> NDArray[np.int64]:
    piece = blocks.micro_batch * problem.sequence_chunks + np.maximum(blocks.sequence_chunk, 0)
    return (piece * problem.cells + blocks.cell) * len(OpKind) + blocks.kind


def _rounded(values: Floats, largest: float) -> list[float]:
    """
    Round to the digits that are worth their bytes.

    Examples
    --------
    >>> _rounded(np.array([1 / 3, 5000.0]), 5000.0)  # 8 digits of 5000.0000 leave 4 behind the point
    [0.3333, 5000.0]
    """
    behind = _DIGITS - 1 - math.floor(math.log10(largest)) if largest > 0 else 0
    return [round(value, behind) + 0.0 for value in values.tolist()]


def _ops(
    timeline: Timeline,
    blocks: Blocks,
    waits: Waits,
    curves: tuple[StageMemory, ...],
    names: NDArray[np.int64],
) -> dict[str, object]:
    """List every op, stage by stage, and what its stage holds after each change."""
    highest = max(timeline.peak_memory_mb)
    pairs = overlapped_forwards(blocks)
    return {
        "pair": pairs.tolist(),
        "pair_ms": _rounded((blocks.end_ms - blocks.start_ms)[pairs], timeline.makespan_ms),
        "row_length": [len(row) for row in timeline.start_ms],
        "name": names.tolist(),
        "start_ms": _rounded(blocks.start_ms, timeline.makespan_ms),
        "waited_for": waits.waited_for.tolist(),
        "memory_ms": [_rounded(curve.time_ms, timeline.makespan_ms) for curve in curves],
        "memory_mb": [_rounded(curve.memory_mb, highest) for curve in curves],
    }


def _bins(timeline: Timeline, blocks: Blocks, curves: tuple[StageMemory, ...]) -> dict[str, object]:
    """Thin every stage to equal spans of time: what share of each goes to what, and the most held in it."""
    count = max(1, min(_MOST_BINS, _MOST_BINS_IN_ALL // len(curves)))
    shares = work_shares(blocks, count, timeline.makespan_ms)
    edges = np.linspace(0.0, timeline.makespan_ms, count + 1)
    highest = max(timeline.peak_memory_mb)
    return {
        "count": count,
        "percent": {work.value: _percent(share) for work, share in shares.items()},
        "idle_percent": _percent(1.0 - sum(shares.values(), np.zeros(1))),
        "memory_mb": [_rounded(_highest(curve, edges), highest) for curve in curves],
    }


def _percent(share: Floats) -> list[list[int]]:
    return np.rint(100 * share).astype(int).tolist()  # type: ignore[no-any-return]


def _highest(curve: StageMemory, edges: Floats) -> Floats:
    """
    Find the most that a stage holds in each span between edges.

    Examples
    --------
    >>> curve = StageMemory(constant_mb=0, parameter_mb=1, time_ms=np.array([0.0, 1.0, 1.5]),
    ...                     memory_mb=np.array([1.0, 9.0, 2.0]))
    >>> _highest(curve, np.array([0.0, 2.0, 4.0])).tolist()  # 9 from 1 to 1.5, then 2
    [9.0, 2.0]
    """
    at_edge = np.searchsorted(curve.time_ms, edges[:-1], side="right") - 1
    most = curve.memory_mb[at_edge]
    spans = np.clip(np.searchsorted(edges, curve.time_ms, side="right") - 1, 0, len(most) - 1)
    np.maximum.at(most, spans, curve.memory_mb)
    return most
