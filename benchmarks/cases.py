"""The cases of the bench: model file, pipeline, limit, seconds, and what is wanted."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sapp_ppb import Model, Problem, read_model
from sapp_ppb.costs import Recompute

EXAMPLES = Path(__file__).parent.parent / "examples"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One problem, the seconds it gets, and the makespan and gap that it should reach."""

    model: str
    stages: int
    micro_batches: int
    limit_mb: float
    seconds: float
    wanted: str
    interleave: int = 1
    min_layers: int = 1
    target: str | None = None
    varied_by: int | None = None

    @property
    def name(self) -> str:
        """Model, sizes and limit in one line."""
        extra = f" {self.target}" if self.target else ""
        extra += "" if self.varied_by is None else f" distinct layers {self.varied_by}"
        sizes = f"S{self.stages} V{self.interleave} M{self.micro_batches}"
        return f"{self.model} {sizes} {self.limit_mb:,.0f} MB{extra}"

    def problem(self) -> Problem:
        """Read the model and build the problem."""
        model = read_model(EXAMPLES / f"{self.model}.json")
        if self.varied_by is not None:
            model = varied(model, self.varied_by)
        return Problem(
            model=model,
            stages=self.stages,
            interleave=self.interleave,
            micro_batches=self.micro_batches,
            memory_limit_mb=self.limit_mb,
            min_layers_per_cell=self.min_layers,
            target=self.target,
        )


def varied(model: Model, seed: int) -> Model:
    """Give every layer of the longest BODY entry a time of its own, within 5 % of the file's."""
    numbers = np.random.default_rng(seed)
    longest = max(model.bodies, key=lambda layer: layer.count)
    layers = []
    for layer in model.layers:
        if layer.count == 1 or layer.kind is not longest.kind:
            layers.append(layer)
            continue
        for index in range(layer.count):
            factor = 1 + 0.05 * numbers.uniform(-1, 1) if layer is longest else 1.0
            layers.append(
                replace(
                    layer,
                    name=f"{layer.name}{index}",
                    count=1,
                    forward_ms=factor * layer.forward_ms,
                    backward_ms=tuple(factor * layer.backward_ms[r] for r in Recompute),
                )
            )
    return replace(model, layers=tuple(layers))


CASES = (
    Case(model="demo", stages=16, micro_batches=16, limit_mb=56_000, seconds=5, wanted="55,061.1 optimal"),
    Case(
        model="demo",
        stages=16,
        micro_batches=16,
        limit_mb=56_000,
        seconds=5,
        target="mindformers",
        wanted="55,069.2 optimal",
    ),
    *(
        Case(
            model="llama2_70b",
            stages=8,
            micro_batches=64,
            limit_mb=limit,
            seconds=5,
            wanted=f"{best} optimal",
        )
        for limit, best in (
            (40_000, "302,208"),
            (45_000, "294,441"),
            (50_000, "285,968"),
            (55_000, "280,475"),
            (60_000, "278,242"),
        )
    ),
    Case(model="moe", stages=16, micro_batches=64, limit_mb=110_000, seconds=5, wanted="143,972.64 optimal"),
    Case(model="modal", stages=16, micro_batches=32, limit_mb=45_000, seconds=30, wanted="84,589.1, 0.1 %"),
    *(
        Case(
            model="moe",
            stages=16,
            micro_batches=64,
            limit_mb=110_000,
            seconds=10,
            varied_by=seed,
            wanted="optimal",
        )
        for seed in (0, 1, 2)
    ),
    Case(
        model="moe",
        stages=16,
        interleave=2,
        micro_batches=64,
        limit_mb=150_000,
        seconds=30,
        wanted="130,991.04, 0.01 %",
    ),
    Case(
        model="llama2_70b",
        stages=16,
        interleave=2,
        micro_batches=32,
        limit_mb=56_000,
        seconds=60,
        wanted="82,000, 0.6 %",
    ),
    Case(
        model="demo",
        stages=16,
        interleave=3,
        micro_batches=16,
        limit_mb=62_000,
        seconds=30,
        wanted="41,282.1, 1 %",
    ),
    Case(
        model="modal",
        stages=16,
        interleave=2,
        micro_batches=32,
        limit_mb=56_000,
        seconds=60,
        wanted="71,100, 2.6 %",
    ),
    Case(
        model="demo192",
        stages=32,
        interleave=4,
        micro_batches=64,
        limit_mb=150_000,
        seconds=60,
        wanted="150,000, 5 %",
    ),
    Case(
        model="demo192",
        stages=64,
        interleave=4,
        micro_batches=256,
        limit_mb=150_000,
        seconds=60,
        min_layers=0,
        wanted="345,000, stated",
    ),
)
