"""Run plans in real processes, and say what they took."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sapp_ppb import Plan
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator.price import price

RUN_FORMAT, RUN_VERSION = "sapp-ppb-run", 1

# What PyTorch calls its schedules; every other one is given to it as an order.
TORCH_NAMES = {
    ScheduleName.GPIPE: "GPipe",
    ScheduleName.ONE_F_ONE_B: "1F1B",
    ScheduleName.INTERLEAVED: "Interleaved1F1B",
    ScheduleName.LOOPED_BFS: "LoopedBFS",
    ScheduleName.INTERLEAVED_ZERO_BUBBLE: "InterleavedZeroBubble",
    ScheduleName.ZBV: "ZBVZeroBubble",
    ScheduleName.DUALPIPEV: "DualPipeV",
}
# Runs that take longer than this hang.
_PATIENCE_S = 500
_ROOT = Path(__file__).parents[1]

Span = tuple[str, float, float]


@dataclass(frozen=True, kw_only=True)
class Step:
    """
    One step as it ran.

    Attributes
    ----------
    rows
        For each stage its ops in the order in which it ran them: name, start and end in
        milliseconds since the first op of all.
    """

    rows: tuple[tuple[Span, ...], ...]

    @property
    def step_ms(self) -> float:
        """From the start of the first op to the end of the last, milliseconds."""
        return max(end for row in self.rows for _, _, end in row)

    @property
    def order(self) -> list[list[str]]:
        """Names of the ops on every stage."""
        return [[name for name, _, _ in row] for row in self.rows]


@dataclass(frozen=True, kw_only=True)
class Run:
    """
    What a plan took in real processes.

    Attributes
    ----------
    plan
        The plan that ran.
    steps
        Its steps, without the first.
    """

    plan: Plan
    steps: tuple[Step, ...]

    @property
    def middle(self) -> Step:
        """The step of median time, the faster of two."""
        return sorted(self.steps, key=lambda step: step.step_ms)[(len(self.steps) - 1) // 2]

    @property
    def step_ms(self) -> float:
        """Time of the median step, milliseconds."""
        return self.middle.step_ms

    @property
    def shortest_ms(self) -> float:
        """Time of the step that was disturbed least, milliseconds."""
        return min(step.step_ms for step in self.steps)

    def document(self) -> dict[str, Any]:
        """Give the run as a "sapp-ppb-run" document, which docs/accuracy.md describes."""
        problem, costs = self.plan.problem, price(self.plan)
        return {
            "format": RUN_FORMAT,
            "version": RUN_VERSION,
            "schedule": problem.schedule_name.value,
            "stages": problem.stages,
            "interleave": problem.interleave,
            "micro_batches": problem.micro_batches,
            "micro_batch_group": problem.micro_batch_group,
            "p2p_mode": problem.p2p_mode.value,
            "flavour": problem.flavour,
            "layers_per_cell": self.plan.layers_per_cell.tolist(),
            "forward_ms": costs.forward_ms.tolist(),
            "backward_ms": costs.backward_ms.tolist(),
            "weight_ms": costs.weight_ms.tolist(),
            "steps_ms": [round(step.step_ms, 3) for step in self.steps],
            "step_ms": round(self.step_ms, 3),
            "ops": [
                {"stage": stage, "op": name, "start_ms": round(start, 3), "end_ms": round(end, 3)}
                for stage, row in enumerate(self.middle.rows)
                for name, start, end in row
            ],
        }


def run_plans(
    plans: Sequence[Plan], steps: int = 5, *, asleep: bool = True, as_order: bool = False
) -> list[Run]:
    """
    Run plans in as many processes as they have stages.

    Parameters
    ----------
    steps
        Steps to run of each plan, besides a first one that is dropped.
    asleep
        Whether an op sleeps for its time; without, nothing but the order keeps ops apart.
    as_order
        Give PyTorch our order to run rather than the name of one of its schedules.

    Returns
    -------
    list
        One run a plan.

    Raises
    ------
    RuntimeError
        With what PyTorch said, when a run fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        jobs = Path(folder, "jobs.json")
        jobs.write_text(json.dumps([_job(plan, steps, asleep, as_order) for plan in plans]), encoding="utf-8")
        _start([sys.executable, "-m", "tests_torch.ranks", str(jobs), folder])
        return [_read(plan, number, Path(folder)) for number, plan in enumerate(plans)]


def _start(command: list[str]) -> None:
    """Run a command to its end, and leave none of its ranks behind when it does not come to one."""
    with subprocess.Popen(
        command, cwd=_ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            said = process.communicate(timeout=_PATIENCE_S)[1]
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise RuntimeError(f"the ranks failed:\n{said}")


def _job(plan: Plan, steps: int, asleep: bool, as_order: bool) -> dict[str, Any]:
    """Say what the ranks need to know of a plan."""
    problem, costs = plan.problem, price(plan)
    # Where the order does not split the backward, one sleep is closer to its time than two.
    weight_ms = costs.weight_ms * problem.order.splits_backward
    named = problem.schedule_name in TORCH_NAMES and not as_order
    return {
        "schedule": TORCH_NAMES.get(problem.schedule_name),
        "order": None if named else problem.order.to_csv(),
        "stages": problem.stages,
        "micro_batches": problem.micro_batches,
        "cells_of_stage": [problem.cells_of(stage) for stage in range(problem.stages)],
        "forward_ms": (asleep * costs.forward_ms).tolist(),
        "input_ms": (asleep * (costs.backward_ms - weight_ms)).tolist(),
        "weight_ms": (asleep * weight_ms).tolist(),
        "steps": steps,
    }


def _read(plan: Plan, number: int, folder: Path) -> Run:
    """Gather what the ranks saw of one run."""
    files = [folder / f"{number}-{rank}.json" for rank in range(plan.problem.stages)]
    ranks = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return Run(plan=plan, steps=tuple(_step(rows) for rows in zip(*ranks, strict=True)))


def _step(rows: Sequence[Sequence[Span]]) -> Step:
    """Turn seconds of the clock into milliseconds since the first op."""
    origin = min(start for row in rows for _, start, _ in row)
    return Step(
        rows=tuple(
            tuple((name, 1e3 * (start - origin), 1e3 * (end - origin)) for name, start, end in row)
            for row in rows
        )
    )
