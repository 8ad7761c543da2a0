"""The files of a sweep: its table, its pictures and its best plan."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sapp_ppb.cli.guard import say
from sapp_ppb.cli.output_files import free_folder, write_folder

if TYPE_CHECKING:
    from sapp_ppb.sweep import Row, Sweep

TABLE_FILE, PARQUET_FILE, BEST_FOLDER = "sweep.csv", "sweep.parquet", "best"
FRONT_FILES, CHOICE_FILES = ("pareto.png", "pareto.svg"), ("makespan.png", "makespan.svg")
_EMPTY = {
    "infeasible": "nothing fits",
    "cut": "cut by bound",
    "not-found": "not found",
    "failed": "failed",
    "skipped": "skipped",
}


def free_sweep_folder(output: str, *, force: bool) -> Path:
    """
    Refuse a folder that can not take the files; one with the rows of a sweep is the sweep's own.

    Raises
    ------
    InputError
        With every file that exists when ``force`` is not set.
    """
    from sapp_ppb.sweep.store import is_sweep

    force = force or is_sweep(Path(output))
    names = (TABLE_FILE, PARQUET_FILE, *FRONT_FILES, *CHOICE_FILES)
    folder = free_folder(output, force=force, names=names)
    free_folder(str(folder / BEST_FOLDER), force=force)
    return folder


def write_sweep(folder: Path, found: "Sweep", heading: str) -> None:
    """
    Write the table and, where the sweep came to its end, the pictures and the best plan.

    Parameters
    ----------
    heading
        What all problems have in common.
    """
    from sapp_ppb.sweep.table import can_write_parquet, to_csv, write_parquet
    from sapp_ppb.writers import write_text_atomic

    written = []
    try:
        write_text_atomic(folder / TABLE_FILE, to_csv(found.rows), force=True)
        written.append(TABLE_FILE)
        if can_write_parquet():
            write_parquet(found.rows, folder / PARQUET_FILE, force=True)
            written.append(PARQUET_FILE)
        if found.best is not None and not found.interrupted:
            written += _draw(folder, found.rows, heading)
    finally:
        if written:
            say(f"wrote {folder}: {', '.join(written)}")
    if found.best is not None and not found.interrupted:
        _write_best(folder / BEST_FOLDER, found.best)


def _draw(folder: Path, rows: "Sequence[Row]", heading: str) -> list[str]:
    from sapp_ppb.report.choice_picture import draw_choice
    from sapp_ppb.report.front_picture import PlanPoint, draw_front

    points = [
        PlanPoint(
            name=row.candidate.text,
            samples_per_s=1000 * row.candidate.global_batch / row.answer.step_ms,
            peak_memory_mb=max(row.answer.peak_memory_mb),
            on_front=row.pareto,
        )
        for row in rows
        if row.candidate is not None and row.answer.step_ms
    ]
    for name in FRONT_FILES:
        draw_front(points, heading, folder / name, force=True)
    best_ms = best_by_sizes(rows)
    for name in CHOICE_FILES:
        draw_choice(best_ms, heading, folder / name, force=True)
    return [*FRONT_FILES, *CHOICE_FILES]


def best_by_sizes(rows: "Sequence[Row]") -> dict[tuple[int, int], float | str]:
    """Milliseconds of the fastest plan for each pair of stages and chunks, or a word on why there is none."""
    found: dict[tuple[int, int], float | str] = {}
    words = list(_EMPTY.values())
    for row in rows:
        stages, chunks = row.inputs.get("stages"), row.inputs.get("interleave")
        if not isinstance(stages, int) or not isinstance(chunks, int):
            continue
        pair, step_ms = (stages, chunks), row.answer.step_ms
        known = found.get(pair)
        if step_ms is not None:
            found[pair] = min(step_ms, known) if isinstance(known, float) else step_ms
        elif not isinstance(known, float):
            word = _EMPTY[row.answer.status.value]
            found[pair] = word if known is None else min(known, word, key=words.index)
    return found


def _write_best(folder: Path, row: "Row") -> None:
    from sapp_ppb.simulator import simulate
    from sapp_ppb.sweep import outcome

    best = outcome(row)
    write_folder(folder, best, None if best.plan is None else simulate(best.plan), force=True)
