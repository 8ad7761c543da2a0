"""Pictures: what they show, that the same timeline gives the same bytes, and what is refused."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from tempfile import TemporaryDirectory

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.image import imread

from sapp_ppb.costs import Cost, LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.report import canvas, memory_curve, memory_picture, write_trace
from sapp_ppb.report.colours import ACTIVATIONS, BETWEEN, OVER_LIMIT
from sapp_ppb.report.memory_picture import draw_memory
from sapp_ppb.report.stages_picture import draw_stages
from sapp_ppb.report.timeline_picture import draw_comparison, draw_timeline
from sapp_ppb.schedules import Placement, parse_csv
from sapp_ppb.simulator import Timeline, simulate
from tests.cli.conftest import environment
from tests.report.conftest import hand_plan, pair_plan, plans
from tests.report.test_blocks import SPLIT, split_plan

DRAW = [draw_timeline, draw_memory, draw_stages]


def equal_timeline(stages: int, chunks: int, micro_batches: int, **given) -> Timeline:
    """One layer a cell, half of them recomputed in full; f = 1, b = 2 or 3; 10 MB live or 1."""
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=stages * chunks,
        forward_ms=1,
        activation_mb={Recompute.NONE: 10, Recompute.FULL: 1},
    )
    problem = Problem(
        model=Model(name="equal", layers=(body,)),
        stages=stages,
        interleave=chunks,
        micro_batches=micro_batches,
        **given,
    )
    counts = np.zeros((1, len(Recompute), stages * chunks), dtype=int)
    counts[0, Recompute.NONE, 1::2] = counts[0, Recompute.FULL, ::2] = 1
    return simulate(Plan(problem=problem, counts=counts))


@pytest.fixture
def figure_of(monkeypatch):
    """Figure that a function draws, and the texts on it."""

    def figure_of(draw, *arguments):
        figures = []
        with monkeypatch.context() as patch, matplotlib.style.context(["default", canvas._LOOK]):
            patch.setattr(canvas, "save_picture", lambda make, *_: figures.append(make()))
            draw(*arguments, "unused.png")
        (figure,) = figures
        return figure, [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]

    return figure_of


@pytest.mark.parametrize("draw", DRAW)
def test_a_png_is_a_picture_of_the_common_width(draw, timeline, tmp_path):
    draw(timeline, tmp_path / "picture.png")
    image = imread(tmp_path / "picture.png")
    assert image.shape[1] == canvas.WIDTH_IN * canvas.DOTS_PER_IN
    assert image[..., :3].min() < 0.1  # something is drawn


@pytest.mark.parametrize("draw", DRAW)
def test_the_same_timeline_gives_the_same_svg_whatever_the_users_settings(draw, timeline, tmp_path):
    draw(timeline, tmp_path / "first.svg")
    with matplotlib.rc_context({"font.size": 30, "svg.hashsalt": None, "axes.grid": True, "figure.dpi": 50}):
        draw(timeline, tmp_path / "second.svg")
    first = (tmp_path / "first.svg").read_bytes()
    assert first == (tmp_path / "second.svg").read_bytes()
    assert ET.fromstring(first).tag == "{http://www.w3.org/2000/svg}svg"


def test_another_process_gives_the_same_svg(timeline, tmp_path):
    draw_timeline(timeline, tmp_path / "here.svg")
    words = (
        "from tests.report.conftest import hand_plan; from sapp_ppb.simulator import simulate; "
        "from sapp_ppb.report.timeline_picture import draw_timeline; "
        f"draw_timeline(simulate(hand_plan()), {str(tmp_path / 'there.svg')!r})"
    )
    subprocess.run([sys.executable, "-c", words], env=environment() | {"PYTHONHASHSEED": "7"}, check=True)
    assert (tmp_path / "here.svg").read_bytes() == (tmp_path / "there.svg").read_bytes()


@pytest.mark.parametrize("draw", DRAW)
@pytest.mark.parametrize("name", ["$x_1$ and $", r"a\frac{", "层", "<&\"'>", "x" * 1000])
def test_a_models_name_is_text_whatever_it_holds(name, draw, tmp_path):
    draw(simulate(hand_plan(name)), tmp_path / "picture.svg")
    ET.fromstring((tmp_path / "picture.svg").read_bytes())


@pytest.mark.parametrize("draw", DRAW)
@pytest.mark.parametrize("name", ["picture.pdf", "picture", "png"])
def test_another_ending_is_refused(name, draw, timeline, tmp_path):
    with pytest.raises(InputError, match=r"a picture's name must end in \.png or \.svg"):
        draw(timeline, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("draw", DRAW)
def test_a_file_that_exists_is_kept_unless_forced(draw, timeline, tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(b"mine")
    with pytest.raises(InputError, match="the file exists; give --force"):
        draw(timeline, path)
    assert path.read_bytes() == b"mine"
    draw(timeline, path, force=True)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_drawing_leaves_the_users_settings_as_they_are(timeline, tmp_path):
    before = dict(matplotlib.rcParams)
    draw_timeline(timeline, tmp_path / "picture.png")
    assert dict(matplotlib.rcParams) == before


def test_the_timeline_says_what_it_is_of_how_long_it_takes_and_what_is_lost(timeline, figure_of):
    _, texts = figure_of(draw_timeline, timeline)
    assert "hand: 4 layers on 3 stages, 3 micro-batches, 1f1b" in texts
    # 39 / 36, as worked out in tests/simulator/test_timeline.py.
    assert "makespan 25.0 ms, bubble 108.3% of useful work" in texts
    assert {"forward", "backward", "recompute", "idle"} <= set(texts)
    assert "weight gradient" not in texts


def test_what_comes_after_the_last_ops_is_hatched_and_explained(figure_of):
    # Stages end at 25, 23 and 16 ms, as drawn in conftest.py: 25 + 1, 23 + 0.5 and 16 + 10.5 = 26.5.
    timeline = simulate(hand_plan(step_extra_ms=(1.0, 0.5, 10.5)))
    for draw in (draw_timeline, draw_stages):
        figure, texts = figure_of(draw, timeline)
        assert "outside the pipeline" in texts
        assert any(text.startswith("step 26.5 ms, makespan 25.0 ms, bubble 108.3%") for text in texts)
        assert figure.axes[0].get_xlim() == (0.0, 26.5)
    figure, _ = figure_of(draw_timeline, timeline)
    (hatched,) = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    # What closes a box has no place of its own, and says 0.
    edges = set(hatched.get_path().vertices[:, 0].tolist()) - {0.0}
    assert sorted(edges) == [16.0, 23.0, 23.5, 25.0, 26.0, 26.5]


def test_nothing_is_hatched_where_nothing_comes_after(timeline, figure_of):
    figure, texts = figure_of(draw_timeline, timeline)
    assert "outside the pipeline" not in texts
    assert not any(patch.get_hatch() for patch in figure.axes[0].patches)


def test_chunks_are_explained_where_there_are_several(figure_of):
    _, texts = figure_of(draw_timeline, equal_timeline(2, 2, 4))
    assert {"forward, chunk 0 to 1", "backward, chunk 0 to 1", "recompute, chunk 0 to 1"} <= set(texts)


def test_a_long_step_is_drawn_as_shares_and_says_so(figure_of):
    # 2 x 1000 ops a stage on 1965 dots would be narrower than 4 dots: 200 columns of 10 ops.
    # b = 3 and 2: the step takes (1 + 3) 1000 and, filling and draining, 1 + 2: 4003 / 200 = 20.0 ms.
    figure, texts = figure_of(draw_timeline, equal_timeline(2, 1, 1000))
    assert any(text.endswith("; each column is the mean over 20 ms") for text in texts)
    assert [image.get_array().shape[1] for image in figure.axes[0].get_images()] == [200]
    assert not figure.axes[0].patches


def test_a_comparison_has_one_axis_of_time_for_all(timeline, figure_of):
    quicker = equal_timeline(2, 1, 3)
    figure, texts = figure_of(draw_comparison, {"before $1": timeline, "after": quicker})
    assert quicker.makespan_ms < timeline.makespan_ms == 25.0
    assert [axes.get_xlim() for axes in figure.axes] == [(0.0, 25.0), (0.0, 25.0)]
    assert {"before $1", "after"} <= set(texts)


def test_a_comparison_marks_what_exceeds_the_limit(figure_of):
    # Of 130, 222 and 110 MB, as in tests/simulator/test_timeline.py, one is above 200.
    over, within = (simulate(hand_plan(memory_limit_mb=limit)) for limit in (200, 300))
    _, texts = figure_of(draw_comparison, {"mine": over, "yours": within})
    assert {"mine, over the limit on 1 of 3 stages", "yours"} <= set(texts)


def test_a_comparison_of_nothing_is_refused(tmp_path):
    with pytest.raises(InputError, match="needs at least one timeline"):
        draw_comparison({}, tmp_path / "picture.png")


@settings(max_examples=10)
@given(plans())
def test_every_plan_can_be_drawn(plan):
    timeline = simulate(plan)
    with TemporaryDirectory() as folder:
        for draw in DRAW:
            draw(timeline, f"{folder}/{draw.__name__}.svg")
            ET.parse(f"{folder}/{draw.__name__}.svg")


def test_split_backwards_are_explained(figure_of):
    order = parse_csv((SPLIT / "ScheduleZBVZeroBubble_pp4_v2_m8.csv").read_text("utf-8"), Placement.V)
    _, texts = figure_of(draw_timeline, simulate(split_plan(order)))
    assert {"forward, chunk 0 to 1", "input gradient, chunk 0 to 1", "weight gradient, chunk 0 to 1"} <= set(
        texts
    )


def test_two_that_overlap_are_drawn_one_above_the_other(figure_of):
    figure, _ = figure_of(draw_timeline, simulate(pair_plan()))
    boxes = [box.get_extents().bounds for patch in figure.axes[0].patches[1:] for box in subpaths(patch)]
    half = canvas.ROW / 2
    assert [pytest.approx(box) for box in boxes] == [
        (0, -half, 1, 2 * half),
        (1, -half, 2.5, half),
        (1, 0, 2.5, half),
        (3.5, -half, 2, 2 * half),
    ]


def subpaths(patch):
    """Boxes of an outline."""
    return [matplotlib.path.Path(corners) for corners in patch.get_path().to_polygons()]


def test_memory_over_its_limit_is_marked_and_said(figure_of):
    # Peaks 130, 222 and 110 MB, as in tests/simulator/test_timeline.py.
    figure, texts = figure_of(draw_memory, simulate(hand_plan(memory_limit_mb=200)))
    assert "highest peak 222.0 of 200 MB on stage 1, over the limit on 1 of 3 stages" in texts
    assert {"130 MB, 65.0%", "222 MB, over by 22", "110 MB, 55.0%", "over the limit", "limit"} <= set(texts)
    assert colours_of(figure) >= {ACTIVATIONS, OVER_LIMIT}


def test_memory_within_its_limit_is_not(figure_of):
    figure, texts = figure_of(draw_memory, simulate(hand_plan(memory_limit_mb=300)))
    assert OVER_LIMIT not in colours_of(figure)
    assert "over the limit" not in texts


def test_a_limit_far_above_every_peak_does_not_flatten_the_curves(figure_of):
    figure, texts = figure_of(draw_memory, simulate(hand_plan(memory_limit_mb=1e9)))
    assert "limit" not in texts
    assert not figure.axes[0].lines


def test_the_memory_of_a_long_step_is_drawn_as_ranges_and_says_so(figure_of):
    figure, texts = figure_of(draw_memory, equal_timeline(2, 1, 1000))
    assert any("; each column is " in text for text in texts)
    (image,) = figure.axes[0].get_images()
    seen = {
        matplotlib.colors.to_hex(colour) for colour in np.unique(image.get_array().reshape(-1, 3), axis=0)
    }
    assert {ACTIVATIONS, BETWEEN} <= seen


def colours_of(figure):
    """Colours of all areas."""
    collections = figure.axes[0].collections
    return {matplotlib.colors.to_hex(colour) for one in collections for colour in one.get_facecolor()}


@settings(max_examples=20)
@given(plans(), st.integers(1, 40))
def test_the_ranges_of_columns_hold_the_peak_and_start_and_end_with_what_is_always_held(plan, columns):
    timeline = simulate(plan)
    for curve, peak_mb in zip(memory_curve(timeline), timeline.peak_memory_mb, strict=True):
        least_mb, highest_mb = memory_picture._ranges(curve, timeline.makespan_ms, columns)
        assert np.all(least_mb <= highest_mb)
        assert highest_mb.max() == pytest.approx(peak_mb, rel=1e-9)
        assert least_mb[-1] == pytest.approx(curve.constant_mb + curve.parameter_mb, rel=1e-9)


def test_bars_of_stages_are_as_long_as_what_they_stand_for(timeline, figure_of):
    figure, texts = figure_of(draw_stages, timeline)
    # Stage 1: 3 forwards of 2 ms, then 3 x 4 ms of backward, then 3 x 1 ms again: busy 21 of 25.
    spans = [patch.get_path().get_extents() for patch in figure.axes[0].patches]
    assert [span.x0 for span in spans] == [0, 3, 9]  # stages 0 and 2 begin sooner, with 3 forwards of 1
    assert [span.x1 for span in spans] == [6, 18, 21]
    assert {"36.0% busy", "84.0% busy"} <= set(texts)
    assert {"forward", "backward", "recompute", "parameters", "activations"} <= set(texts)
    assert "constant" not in texts


@pytest.mark.slow
def test_a_step_of_262_144_ops_is_drawn_in_small_files(tmp_path):
    timeline = equal_timeline(64, 4, 512, memory_limit_mb=56_000)
    for draw in DRAW:
        draw(timeline, tmp_path / f"{draw.__name__}.png")
        draw(timeline, tmp_path / f"{draw.__name__}.svg")
    write_trace(timeline, tmp_path / "trace.json")
    assert all(path.stat().st_size < 1_000_000 for path in tmp_path.glob("*.svg"))


def test_many_boxes_are_one_outline():
    outline = canvas.boxes(np.array([0.0, 2.0]), np.array([1.0, 4.0]), 0.0, 1.0)
    assert outline.get_extents().bounds == (0, 0, 4, 1)
    assert len(outline.to_polygons()) == 2


def test_an_interrupt_leaves_no_half_picture(timeline, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", interrupt)
    with pytest.raises(KeyboardInterrupt):
        draw_timeline(timeline, tmp_path / "picture.png")
    assert not list(tmp_path.iterdir())


def with_estimates(timeline: Timeline, *costs: Cost) -> Timeline:
    """Time the same plan, with costs marked as estimates."""
    problem = timeline.plan.problem
    layers = tuple(replace(layer, estimated=frozenset(costs)) for layer in problem.model.layers)
    problem = replace(problem, model=replace(problem.model, layers=layers))
    return simulate(replace(timeline.plan, problem=problem))


@pytest.mark.parametrize("draw", DRAW)
def test_estimates_are_said_on_every_picture(draw, timeline, figure_of):
    _, texts = figure_of(draw, with_estimates(timeline, *Cost))
    assert any(text.endswith("; times and memory are estimates") for text in texts)
    _, texts = figure_of(draw, with_estimates(timeline, Cost.PARAMETER))
    assert any(text.endswith("; memory is an estimate") for text in texts)
    assert not any("estimate" in text for text in figure_of(draw, timeline)[1])


def test_estimates_are_said_of_every_plan_of_a_comparison(timeline, figure_of):
    both = {"known": timeline, "guessed": with_estimates(timeline, Cost.FORWARD)}
    _, texts = figure_of(draw_comparison, both)
    assert [text for text in texts if "estimate" in text] == [
        text for text in texts if text.endswith("; times are estimates")
    ]
    assert sum("estimate" in text for text in texts) == 1


def test_a_trace_says_that_it_is_of_estimates(timeline, tmp_path):
    for drawn, known in ((with_estimates(timeline, Cost.FORWARD), True), (timeline, None)):
        write_trace(drawn, tmp_path / "trace.json", force=True)
        about = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["otherData"]
        assert about.get("estimate") is known
