"""Draw the pictures of docs/tutorial.md and docs/schedules.md by the project's own report code."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from sapp_ppb import Model, Problem, Recompute, plan_pipeline, simulate
from sapp_ppb.costs import LayerKind, layer_from_times
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.readers import read_layers_csv
from sapp_ppb.report.memory_picture import draw_memory
from sapp_ppb.report.timeline_picture import draw_timeline
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator import Timeline

IMAGES = Path(__file__).parents[1] / "images"
TUTORIAL = Path(__file__).parents[1] / "tutorial.md"
DRAWN = {
    "gpipe": {},
    "1f1b": {},
    "interleaved": {"interleave": 2},
    "interleaved-less-memory": {"interleave": 2},
    "looped-bfs": {"interleave": 2},
    "interleaved-zero-bubble": {},
    "zbv": {"interleave": 2},
    "dualpipev": {"interleave": 2, "overlap_factor": 0.5},
    "seq1f1b": {"sequence_chunks": 2},
    "zb-auto": {},
}


def schedule_timeline(name: str) -> Timeline:
    """Time a schedule as the table of docs/schedules.md does: 4 equal stages, 8 micro-batches."""
    given = DRAWN[name]
    chunks = int(given.get("interleave", 1))
    layer = layer_from_times(
        name="part",
        kind=LayerKind.BODY,
        count=4 * chunks,
        forward_ms=1 / chunks,
        activation_mb={Recompute.NONE: 1 / chunks},
    )
    problem = Problem(
        model=Model(name="equal stages", layers=(layer,)),
        stages=4,
        interleave=chunks,
        micro_batches=8,
        schedule=ScheduleName(name),
        sequence_chunks=int(given.get("sequence_chunks", 1)),
        overlap_factor=float(given.get("overlap_factor", 0)),
    )
    return simulate(plan_from_matrices(problem, {"part": {"none": [[1] * 4] * chunks}}))


def tutorial_timeline() -> Timeline:
    """Plan the model of the tutorial as the tutorial does."""
    table = TUTORIAL.read_text(encoding="utf-8").split("```csv\n")[1].split("```")[0]
    with TemporaryDirectory() as folder:
        path = Path(folder, "layers.csv")
        path.write_text(table, encoding="utf-8")
        model = read_layers_csv(path, name="layers")
    problem = Problem(model=model, stages=4, micro_batches=16, memory_limit_mb=24_000)
    plan = plan_pipeline(problem).plan
    assert plan is not None
    return simulate(plan)


def save(draw: object, timeline: Timeline, path: Path) -> None:
    """Draw a picture with no more colours than it needs, which makes it a fifth as large."""
    with TemporaryDirectory() as folder:
        drawn = Path(folder, path.name)
        draw(timeline, drawn)  # type: ignore[operator]
        with Image.open(drawn) as picture:
            small = picture.convert("RGB").resize((1400, round(1400 * picture.height / picture.width)))
            small.quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size:,} bytes")


def main() -> None:
    """Draw all of them."""
    (IMAGES / "schedules").mkdir(parents=True, exist_ok=True)
    for name in DRAWN:
        save(draw_timeline, schedule_timeline(name), IMAGES / "schedules" / f"{name}.png")
    timeline = tutorial_timeline()
    save(draw_timeline, timeline, IMAGES / "tutorial_timeline.png")
    save(draw_memory, timeline, IMAGES / "tutorial_memory.png")


if __name__ == "__main__":
    sys.exit(main())
