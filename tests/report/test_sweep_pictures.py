"""Pictures of a sweep: what they show, the same bytes, and what is refused."""

import xml.etree.ElementTree as ET

import matplotlib
import pytest
from matplotlib.image import imread

from sapp_ppb.errors import InputError
from sapp_ppb.report import canvas
from sapp_ppb.report.choice_picture import draw_choice
from sapp_ppb.report.front_picture import PlanPoint, draw_front

POINTS = [
    PlanPoint(name="4 stages $x$", samples_per_s=3.0, peak_memory_mb=900.0, on_front=True),
    PlanPoint(name="8 stages", samples_per_s=2.0, peak_memory_mb=700.0, on_front=True),
    PlanPoint(name="2 stages", samples_per_s=1.0, peak_memory_mb=800.0, on_front=False),
]
BEST: dict[tuple[int, int], float | str] = {
    (4, 1): 200.0,
    (8, 1): 150.0,
    (4, 2): "cut by bound",
    (8, 2): "nothing fits",
}


def front(path, **given):
    draw_front(POINTS, "m: 8 devices", path, **given)


def choice(path, **given):
    draw_choice(BEST, "m: 8 devices", path, **given)


@pytest.fixture
def figure_of(monkeypatch):
    """Figure that a function draws, and the texts on it."""

    def figure_of(draw):
        figures = []
        with monkeypatch.context() as patch, matplotlib.style.context(["default", canvas._LOOK]):
            patch.setattr(canvas, "save_picture", lambda make, *_: figures.append(make()))
            draw("unused.png")
        (figure,) = figures
        return figure, [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]

    return figure_of


@pytest.mark.parametrize("draw", [front, choice])
def test_a_png_is_a_picture_and_the_same_svg_comes_twice(draw, tmp_path):
    draw(tmp_path / "one.png")
    assert imread(tmp_path / "one.png").shape[1] == canvas.WIDTH_IN * canvas.DOTS_PER_IN
    draw(tmp_path / "one.svg")
    draw(tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert ET.parse(tmp_path / "one.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize("draw", [front, choice])
def test_a_file_that_exists_is_kept_unless_forced(draw, tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(b"mine")
    with pytest.raises(InputError, match="the file exists"):
        draw(path)
    draw(path, force=True)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_the_front_is_joined_from_the_least_memory_on_and_named(figure_of):
    figure, texts = figure_of(front)
    others, line = figure.axes[0].lines
    assert (list(others.get_xdata()), list(others.get_ydata())) == ([800], [1])
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([700, 900], [2, 3])
    assert {"8 stages", "4 stages $x$", "m: 8 devices"} <= set(texts)
    assert "2 stages" not in texts
    assert "3 plans, 2 of them on the front: no other is as fast with as little memory" in texts


def test_one_plan_is_a_front_of_its_own(figure_of):
    figure, _ = figure_of(lambda path: draw_front(POINTS[:1], "m", path))
    assert figure.axes[0].get_xlim()[0] < 900 < figure.axes[0].get_xlim()[1]


def test_a_field_says_its_time_or_why_there_is_none(figure_of):
    figure, texts = figure_of(choice)
    # 200 / 150 = 1.333.
    assert {"200\nx 1.333", "150\nx 1.000", "cut by bound", "nothing fits"} <= set(texts)
    (image,) = figure.axes[0].get_images()
    ratios = image.get_array()
    assert ratios.tolist() == [[pytest.approx(4 / 3), 1.0], [None, None]]


def test_nothing_to_draw_is_refused(tmp_path):
    with pytest.raises(InputError, match="needs at least one plan"):
        draw_front([], "m", tmp_path / "a.png")
    with pytest.raises(InputError, match="needs at least one plan"):
        draw_choice({(1, 1): "cut"}, "m", tmp_path / "a.png")
