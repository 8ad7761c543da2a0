"""``sapp-ppb costs init`` and ``sapp-ppb costs dryrun``: memory of layers out of peaks of stages."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sapp_ppb.cli.costs.measured import deliver
from sapp_ppb.cli.guard import FITS, say
from sapp_ppb.cli.options.output import Force, ModelJson, ModelOutput
from sapp_ppb.cli.options.problem import MicroBatchesIfGiven
from sapp_ppb.cli.output import write_result
from sapp_ppb.cli.output_files import free_file
from sapp_ppb.cli.progress import ShareLine
from sapp_ppb.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sapp_ppb.costs import Model
    from sapp_ppb.estimation import MemoryEstimate
    from sapp_ppb.readers.older.init_yaml import InitFile, InitProfile
    from sapp_ppb.simulator import ObservedRun

INIT_SHORT_HELP = "Times and memory from an init YAML of the older SAPP tool."
INIT_HELP = """
Read an init YAML of the older SAPP tool, or the one that dryrun-guide writes: which layers were
where and recomputed how, and what each stage held at most.  Divides the peaks among constant,
parameters, activations, head and tail, and says how far the answer can be trusted.

Times come from time_config or profiling_config in the file, or from a model file of times.

\b
Examples:
  sapp-ppb costs init init.yaml -o model.json
  sapp-ppb costs init guide.yaml --times times.json -o model.json
"""
DRYRUN_SHORT_HELP = "Memory from logs of dry runs, CSV files or numbers."
DRYRUN_HELP = """
Read the peaks of runs from logs of dry runs (Used peak memory usage ...), memory_record.csv,
npu_module_mem.csv, a YAML of numbers (peak_memory_mb, max_memory_allocated) or traces of this
tool, and divide them as costs init does.  --runs says what ran: the YAML that dryrun-guide
writes, or a plan file for each run.  With several rounds give a folder or file for each, in
their order.

\b
Examples:
  sapp-ppb costs dryrun output_dryrun --runs guide.yaml --times times.json -o model.json
  sapp-ppb costs dryrun round1 round2 --runs guide.yaml --times times.json -o model.json
  sapp-ppb costs dryrun 0=first.log 3=last.log middle/stage_1 --runs guide.yaml
  sapp-ppb costs dryrun peaks.yaml --runs out/plan.json --times times.json --json
"""

Times = Annotated[
    Path | None, typer.Option("--times", metavar="MODEL.json", help="Model file that has the times.")
]
KnownConstant = Annotated[
    float | None,
    typer.Option(
        "--constant-memory", "-mc", metavar="MB", help="Constant memory of a stage, if it is known."
    ),
]
ModelName = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the model.")]


def init(
    path: Annotated[Path, typer.Argument(metavar="INIT.yaml", help="Init YAML.", show_default=False)],
    times: Times = None,
    micro_batches: MicroBatchesIfGiven = None,
    constant_memory: KnownConstant = None,
    name: ModelName = None,
    output: ModelOutput = None,
    force: Force = False,
    json_: ModelJson = False,
) -> int:
    """Read an init YAML, and write the model that it tells of."""
    from sapp_ppb.readers.older.init_yaml import read_init

    _check(output, constant_memory, force=force)
    found = read_init(path, micro_batches)
    if not any(run.peak_mb for run in found.runs):
        raise InputError(str(path), ["has no peaks; fill in memory_usage, or use sapp-ppb costs dryrun"])
    return _deliver(found, path, found.runs, times, constant_memory, name, output, force=force, json_=json_)


def dryrun(
    peaks: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN", help="Logs, CSV or YAML files, or folders of them.", show_default=False
        ),
    ],
    runs: Annotated[
        list[Path],
        typer.Option("--runs", metavar="FILE", help="What ran: an init YAML, or a plan file for each run."),
    ],
    fragments: Annotated[
        bool, typer.Option("--with-fragments", help="Take the peaks with fragments instead of without.")
    ] = False,
    times: Times = None,
    micro_batches: MicroBatchesIfGiven = None,
    constant_memory: KnownConstant = None,
    name: ModelName = None,
    output: ModelOutput = None,
    force: Force = False,
    json_: ModelJson = False,
) -> int:
    """Read peaks of runs, and write the model that they tell of."""
    from sapp_ppb.readers.measurements.peaks import read_peaks

    _check(output, constant_memory, force=force)
    found, where = _what_ran(runs, micro_batches), runs[0]
    rounds = len(found.runs)
    if rounds > 1 and len(peaks) != rounds:
        fault = f"there are {rounds} rounds; give as many folders or files, in their order (got {len(peaks)})"
        raise InputError(str(where), [fault])
    observed = []
    for run, paths in zip(found.runs, [peaks] if rounds == 1 else [[path] for path in peaks], strict=True):
        measured = {peak.stage: peak.peak_mb for peak in read_peaks(paths, fragments=fragments)}
        stages = run.plan.problem.stages
        beyond = [str(stage) for stage in measured if stage >= stages]
        if beyond:
            raise InputError("peaks", [f"are of stage {', '.join(beyond)}, and {where} has {stages} stages"])
        observed.append(replace(run, peak_mb=measured))
    return _deliver(found, where, observed, times, constant_memory, name, output, force=force, json_=json_)


def _what_ran(paths: "Sequence[Path]", micro_batches: int | None) -> "InitFile":
    """Read one init YAML, or the plan files of some runs."""
    from sapp_ppb.readers import is_yaml
    from sapp_ppb.readers.older.init_yaml import InitFile, read_init
    from sapp_ppb.readers.plans.plan_counts import read_plan_counts
    from sapp_ppb.simulator import ObservedRun

    if is_yaml(paths[0]) and len(paths) == 1:
        return read_init(paths[0], micro_batches)
    if any(is_yaml(path) for path in paths):
        raise InputError("--runs", ["is one init YAML, which holds every round, or a plan file for each run"])
    if micro_batches is not None:
        raise InputError("--micro-batches", ["stand in the plan files; leave it out"])
    plans = [read_plan_counts(path) for path in paths]
    sizes = {
        (plan.problem.stages, tuple(layer.name for layer in plan.problem.model.bodies)) for plan in plans
    }
    if len(sizes) > 1:
        raise InputError("--runs", ["must spread the same layers over as many stages, each of them"])
    return InitFile(
        runs=tuple(ObservedRun(plan=plan, peak_mb={}) for plan in plans), times=None, profile=None
    )


def _check(output: str | None, constant_mb: float | None, *, force: bool) -> None:
    """Refuse what can be refused before anything is read."""
    from sapp_ppb.costs.checks import number_fault

    if output is not None:
        free_file("--output", output, force=force)
    fault = None if constant_mb is None else number_fault("", constant_mb)
    if fault:
        raise InputError("--constant-memory", [fault.lstrip()])


def _deliver(
    found: "InitFile",
    path: Path,
    runs: "Sequence[ObservedRun]",
    times: Path | None,
    constant_mb: float | None,
    name: str | None,
    output: str | None,
    *,
    force: bool,
    json_: bool,
) -> int:
    """Fit, and write the model; without times there is none, and the page alone is printed."""
    from sapp_ppb.cli.costs.measured_pages import memory_text
    from sapp_ppb.estimation import fit_memory, with_memory

    estimate = fit_memory(runs, constant_mb=constant_mb)
    _say_zeros(estimate)
    page = memory_text(estimate, runs)
    model = _times(found, path, times, runs, name)
    if model is not None:
        deliver(with_memory(model, estimate), page, output, force=force, json_=json_)
        return FITS
    if output is not None or json_:
        fault = "has no times, which a model file needs; give --times MODEL.json, or time_config in it"
        raise InputError(str(path), [fault])
    say(f"note: {path} has no times, so there is no model file; give --times MODEL.json to make one")
    write_result(page)
    return FITS


def _say_zeros(estimate: "MemoryEstimate") -> None:
    values = zip(estimate.fit.names, estimate.fit.values.tolist(), strict=True)
    pushed = ", ".join(name for name, mb in values if mb == 0.0)
    if pushed:
        say(f"note: {pushed} would come out negative and is taken for 0, which the residuals show")


def _times(
    found: "InitFile", path: Path, times: Path | None, runs: "Sequence[ObservedRun]", name: str | None
) -> "Model | None":
    """Model of times: of a model file, or of the init YAML; None when neither has any."""
    from sapp_ppb.estimation import model_of_times
    from sapp_ppb.readers import read_model

    named = path.stem if name is None else name
    if times is not None:
        model = read_model(times)
        return model if name is None else replace(model, name=name)
    count = runs[0].plan.problem.model.body_count
    if found.times is not None:
        return model_of_times(named, count, **vars(found.times))
    return None if found.profile is None else _profiled(found.profile, path.parent, named, count)


def _profiled(profile: "InitProfile", folder: Path, name: str, count: int) -> "Model":
    """Read the timelines that an init YAML names, from its own folder on."""
    from sapp_ppb.costs import LayerKind
    from sapp_ppb.estimation import Wanted, model_from_scopes
    from sapp_ppb.readers.measurements.trace_file import read_trace, trace_files

    wanted = [Wanted(name=head, kind=LayerKind.HEAD) for head in profile.head]
    wanted += [
        Wanted(name=body, kind=LayerKind.BODY, count=count if len(profile.body) == 1 else None)
        for body in profile.body
    ]
    wanted += [Wanted(name=tail, kind=LayerKind.TAIL) for tail in profile.tail]
    scopes = []
    for path in trace_files([folder / profile.folder]):
        with ShareLine(f"reading {path.name}") as line:
            content = read_trace(path, [want.name for want in wanted], line)
        for note in content.notes:
            say(f"note: {note}")
        scopes += [content.scopes] if content.scopes is not None else []
    if not scopes:
        raise InputError(str(folder / profile.folder), ["has no trace with the layers of profiling_config"])
    estimate = model_from_scopes(scopes, wanted, profile.micro_batches, name=name)
    for note in estimate.notes:
        say(f"note: {note}")
    return estimate.model
