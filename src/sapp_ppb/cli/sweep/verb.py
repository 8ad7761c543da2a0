"""``sapp-ppb sweep``: which pipeline to run on so many devices, planned for all at once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapp_ppb.cli.guard import FITS, NO_PLAN_IN_TIME, NOTHING_FITS, say
from sapp_ppb.cli.options.output import Force, Output
from sapp_ppb.cli.output import write_document, write_result
from sapp_ppb.cli.progress import SweepLine
from sapp_ppb.cli.sweep.options import Address, Backend, Everything, Workers, takes_grid

if TYPE_CHECKING:
    from sapp_ppb.costs import Model
    from sapp_ppb.sweep import Candidate, Grid, Sweep
    from sapp_ppb.sweep.work import Effort

SHORT_HELP = "Plan for every number of stages, chunks and more."
HELP = """
Plan every pipeline that fits so many devices and so large a batch, on all cores or on a
cluster, and print which are the fastest.  Data parallel is devices / (stages x tensor
parallel); micro-batches are the global batch / (data parallel x micro-batch size).

With -o every finished problem is kept at once: Ctrl-C loses none, and the same command goes on.

\b
Examples:
  sapp-ppb sweep llama2_70b.json --devices 128 --global-batch 512 -s 4,8,16 -i 1-3 -mem 56000,64000 -o out
  sapp-ppb sweep llama2_70b.json --devices 64 --global-batch 256 -mem 40000:64000:4000 --schedule auto
  sapp-ppb sweep llama2_70b.json --grid grid.yaml --backend dask --address tcp://10.0.0.1:8786 -o out
"""


@takes_grid
def sweep(
    model: "Model",
    grid: "Grid",
    effort: "Effort",
    no_cut: Everything = False,
    backend: Backend = "local",
    address: Address = None,
    workers: Workers = None,
    output: Output = None,
    force: Force = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print the table as JSON, and nothing else, on stdout.")
    ] = False,
) -> int:
    """Plan all problems of a grid, print and write."""
    from sapp_ppb.cli.sweep.files import free_sweep_folder, write_sweep
    from sapp_ppb.sweep import list_candidates
    from sapp_ppb.sweep.row import skipped_row
    from sapp_ppb.sweep.run import with_skipped
    from sapp_ppb.sweep.table import to_json

    folder = None if output is None else free_sweep_folder(output, force=force)
    candidates, skipped = list_candidates(model, grid)
    known = {"model": model.name, "devices": grid.devices, "global_batch": grid.global_batch}
    options = {"prune": not no_cut, "workers": workers, "folder": folder}
    found = with_skipped(
        _planned(candidates, effort, backend, address, **options),
        [skipped_row(each, known) for each in skipped],
    )
    try:
        if folder is not None:
            write_sweep(folder, found, heading=_heading(known))
    finally:  # a full disk does not take the table from the screen, nor a full pipe from the disk
        if json_:
            write_document(to_json(found.rows))
        else:
            write_result(_text(found, grid))
    if found.interrupted:
        _say_interrupted(found, len(candidates), folder)
    return exit_code(found)


def _planned(
    candidates: "list[Candidate]", effort: "Effort", backend: str, address: str | None, **options: Any
) -> "Sweep":
    from sapp_ppb.planner import needs_compiling
    from sapp_ppb.sweep import sweep
    from sapp_ppb.sweep.clusters import cluster

    if backend == "local" and needs_compiling():
        say("compiling the search, about 20 s; later runs do without")
    with SweepLine() as line, cluster(backend, address, line.say) as executor:
        return sweep(
            candidates,
            executor=executor,
            time_limit_s=effort.time_limit_s,
            gap=effort.gap,
            seed=effort.seed,
            watch=line,
            **options,
        )


def _heading(known: "dict[str, object]") -> str:
    return f"{known['model']}: {known['devices']:,} devices, global batch {known['global_batch']:,}"


def _text(found: "Sweep", grid: "Grid") -> str:
    from sapp_ppb.cli.sweep.table import sweep_text

    return sweep_text(found, grid)


def _say_interrupted(found: "Sweep", problems: int, folder: Path | None) -> None:
    done = sum(row.candidate is not None for row in found.rows)
    kept = "; give -o to keep them" if folder is None else f" and kept in {folder}; the same command goes on"
    say(f"interrupted: {done} of {problems} problems are settled{kept}")


def exit_code(found: "Sweep") -> int:
    """Say with a number whether a plan fits, none does, or that is not known."""
    from sapp_ppb.sweep import RowStatus

    if found.interrupted:
        return NO_PLAN_IN_TIME
    if found.best is not None:
        return FITS
    planned = [row for row in found.rows if row.candidate is not None]
    return (
        NOTHING_FITS if all(row.answer.status is RowStatus.INFEASIBLE for row in planned) else NO_PLAN_IN_TIME
    )
