"""
Measured against simulated step times: ``make accuracy``.

Without options the configurations of ``tests_torch/configurations.py`` run in real
processes; their runs are kept, and the table of docs/accuracy.md is made from them.
``--stored`` makes the table from the runs that are kept, and needs no PyTorch.
"""

import argparse
import json
import re
import statistics
import sys
from pathlib import Path

import numpy as np

from sapp_ppb import Model, Plan, Problem, simulate
from sapp_ppb.costs import LayerKind, Recompute, layer_from_times
from sapp_ppb.estimation import calibrate
from sapp_ppb.schedules import Flavour, P2PMode, ScheduleName
from sapp_ppb.simulator import MeasuredStep

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "tests" / "data" / "runs"
PAGE = ROOT / "docs" / "accuracy.md"
BEGIN, END = "<!-- made by benchmarks/accuracy.py -->", "<!-- end of what is made -->"

HEAD = (
    "| run | S | V | M | layers a cell | simulated, ms | measured, ms | ratio | shortest step's ratio "
    "| calibrated, ms | ratio | ratio when left out |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|",
)


def plan_of_run(run):
    """
    Plan that a run document stands for: a cell's work is one layer of its own.

    Parameters
    ----------
    run
        A "sapp-ppb-run" document; docs/accuracy.md says what it holds.
    """
    times = zip(run["forward_ms"], run["backward_ms"], run["weight_ms"], strict=True)
    layers = [
        layer_from_times(
            name=f"cell {cell}",
            kind=LayerKind.BODY,
            forward_ms=forward,
            backward_ms=backward,
            weight_grad_ms=weight,
        )
        for cell, (forward, backward, weight) in enumerate(times)
    ]
    problem = Problem(
        model=Model(name="run", layers=tuple(layers)),
        stages=run["stages"],
        interleave=run["interleave"],
        micro_batches=run["micro_batches"],
        schedule=ScheduleName(run["schedule"]),
        micro_batch_group=run["micro_batch_group"],
        p2p_mode=P2PMode(run["p2p_mode"]),
        flavour=None if run["flavour"] is None else Flavour(run["flavour"]),
    )
    counts = np.zeros((problem.cells, len(Recompute), problem.cells), dtype=np.int64)
    counts[:, Recompute.NONE] = np.eye(problem.cells, dtype=np.int64)
    return Plan(problem=problem, counts=counts)


def read_runs(folder=RUNS):
    """Documents of the runs that are kept, by the names of their files."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def row(name, run, calibrated):
    """One row of the table, and its ratios: uncalibrated, calibrated, and left out of the calibration."""
    simulated = simulate(plan_of_run(run)).makespan_ms
    ratio, shortest = run["step_ms"] / simulated, min(run["steps_ms"]) / simulated
    layers = " ".join(map(str, run["layers_per_cell"]))
    sizes = f"{run['stages']} | {run['interleave']} | {run['micro_batches']}"
    text = (
        f"| {name} | {sizes} | {layers} | {simulated:,.1f} | {run['step_ms']:,.1f} "
        f"| {ratio:.3f} | {shortest:.3f} "
    )
    ratios = [run["step_ms"] / ms for ms in (calibrated.after_ms, calibrated.left_out_ms)]
    text += f"| {calibrated.after_ms:,.1f} | {ratios[0]:.3f} | {ratios[1]:.3f} |"
    return text, (ratio, *ratios)


def table(runs):
    """Lines of the table, and what they come to."""
    steps = [
        MeasuredStep(name=name, plan=plan_of_run(run), step_ms=run["step_ms"]) for name, run in runs.items()
    ]
    found = calibrate(steps)
    rows = [row(*each, calibrated) for each, calibrated in zip(runs.items(), found.runs, strict=True)]
    ratios = [of_run[0] for _, of_run in rows]
    return [
        *HEAD,
        *(text for text, _ in rows),
        "",
        f"{len(rows)} configurations: median ratio {statistics.median(ratios):.3f}, "
        f"smallest {min(ratios):.3f}, largest {max(ratios):.3f}.",
        "",
        f"Calibrated, with {found.op_overhead_ms:.3f} ms an op and {found.hop_ms:.3f} ms a hop, the median "
        f"error falls from {found.median_before:.1%} to {found.median_after:.1%}; of runs that are left out "
        f"of the calibration it is {found.median_left_out:.1%}.",
    ]


def page_with(lines):
    """Text of docs/accuracy.md with another table in it."""
    page = PAGE.read_text(encoding="utf-8")
    made = "\n".join([BEGIN, *lines, END])
    return re.sub(f"{BEGIN}.*{END}", lambda _: made, page, flags=re.DOTALL)


def run_everything(steps):
    """Run every configuration, and keep what it took in place of what was kept."""
    sys.path.insert(0, str(ROOT))  # the real runs are in no package
    from tests_torch.configurations import OTHERS, PROMISED
    from tests_torch.real_runs import run_plans

    plans = PROMISED | OTHERS
    runs = run_plans(list(plans.values()), steps)
    RUNS.mkdir(exist_ok=True)
    for old in RUNS.glob("*.json"):
        old.unlink()
    for name, run in zip(plans, runs, strict=True):
        file = RUNS / f"{re.sub('[^a-z0-9]+', '-', name)}.json"
        file.write_text(text_of(run.document()), encoding="utf-8")


def text_of(document):
    """Write a run document with one op a line, so that changes can be read."""
    ops = ",\n".join("  " + json.dumps(op) for op in document["ops"])
    rest = json.dumps({key: value for key, value in document.items() if key != "ops"})
    return rest[:-1] + ', "ops": [\n' + ops + "\n]}\n"


def main():
    """Print the table; keep it and its runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--stored", action="store_true", help="make the table from the runs that are kept")
    parser.add_argument(
        "--steps", type=int, default=5, help="steps to run besides the first, which is dropped"
    )
    options = parser.parse_args()
    if not options.stored:
        run_everything(options.steps)
    lines = table(read_runs())
    print("\n".join(lines))
    PAGE.write_text(page_with(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
