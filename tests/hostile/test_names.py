"""Names may hold anything that can be printed, and nothing that is written takes them for more than text."""

import ast
import json
import shlex
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Outcome, Status, StoppedBy, plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.report import trace_events
from sapp_ppb.report.page import page_text
from sapp_ppb.simulator import simulate
from sapp_ppb.writers import model_to_json, plan_to_json
from sapp_ppb.writers.frameworks.exports import EXPORTS

HARMLESS = "Decoder"
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>&amp;&lt;",
    "--><!--",
    "\" onload='alert(1)' x=`",
    "]]></style></title></textarea>",
    "$\\frac{1}{0}$ $$ \\alpha^",
    "[bold red]x[/bold red] [link=file:///etc/passwd]",
    "$(touch /tmp/x) `id` ${HOME} ; rm -rf ~ # ' \"",
    "'''\"\"\" + __import__('os').system('id') \\",
    "=cmd|' /C calc'!A0, \"x\"",
    "a: &b *b !!python/object {x: [1, #",
    "{0} {model} %s %(x)s {{",
    "\u05d0\u05d1\u05d2 \u0627\u0644 \u4e2d\u6587 e\u0301 \U0001f600",
    "n" * 3000,
)
REFUSED = (
    "\x1b[2J\x1b[31m",
    "a\nb",
    "a\0b",
    "a\r",
    "\x9b31m",
    "\u202eevil",
    "\u2066x",
    "a\u2028b",
    "\ud800",
    "\x07",
)
names = pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name[:16]))


def plan_of(name):
    body = layer_from_times(
        name=name, kind=LayerKind.BODY, count=4, forward_ms=1, activation_mb=dict.fromkeys(Recompute, 1.0)
    )
    problem = Problem(model=Model(name=name, layers=(body,)), stages=2, micro_batches=2)
    return plan_from_matrices(problem, {name: {"full": [[2, 2]]}})


def outcome_of(timeline):
    return Outcome(
        problem=timeline.plan.problem,
        plan=timeline.plan,
        status=Status.FEASIBLE,
        stopped_by=StoppedBy.BUDGET,
        makespan_ms=timeline.makespan_ms,
        peak_memory_mb=timeline.peak_memory_mb,
        bubble=timeline.bubble,
    )


class Tags(HTMLParser):
    """Tags of a page with the names of their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, *(name for name, _ in attrs)))

    def handle_endtag(self, tag):
        self.found.append(tag)

    def handle_comment(self, data):
        self.found.append("comment")


def page_of(name):
    timeline = simulate(plan_of(name))
    return page_text(outcome_of(timeline), timeline, lists={name: name})


@names
def test_a_page_has_the_same_tags_whatever_the_names(name):
    assert Tags(page_of(name)).found == Tags(page_of(HARMLESS)).found


@names
def test_a_picture_is_one_whatever_the_names(name, tmp_path):
    from sapp_ppb.report.timeline_picture import draw_comparison

    timeline = simulate(plan_of(name))
    path = tmp_path / "timeline.svg"
    draw_comparison({name: timeline, HARMLESS: timeline}, path)
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.parse(path).iter()}
    assert not tags & {"script", "a", "image", "foreignObject", "img"}


@names
def test_a_trace_is_json_whatever_the_names(name):
    json.loads("[" + ",".join(trace_events(simulate(plan_of(name)))) + "]")


@names
def test_the_table_steers_no_terminal(name):
    from sapp_ppb.cli.text.tables import outcome_text

    timeline = simulate(plan_of(name))
    text = outcome_text(outcome_of(timeline), timeline)
    assert all(line.isprintable() for line in text.splitlines())
    assert text.count("\n") < 200
    assert name[:12] in text


@names
def test_files_hold_the_name_as_text(name):
    plan = plan_of(name)
    assert list(json.loads(plan_to_json(outcome_of(simulate(plan))))["counts"]) == [name]
    assert json.loads(model_to_json(plan.problem.model))["name"] == name


@names
@pytest.mark.parametrize("form", EXPORTS)
def test_configurations_say_the_same_whatever_the_names(name, form):
    text, plain = (EXPORTS[form].text(plan_of(each)) for each in (name, HARMLESS))
    assert all(line.isprintable() for line in text.splitlines())
    if form == "csv":
        return  # a table of names, of which the test below reads one
    if form == "json":
        assert json.loads(text)["layers"][0]["name"] == name
    elif EXPORTS[form].file_name.endswith(".py"):
        assert len(ast.parse(text).body) == len(ast.parse(plain).body)
    elif EXPORTS[form].file_name.endswith(".sh"):
        assert len(shlex.split(text, comments=True)) == len(shlex.split(plain, comments=True))
    elif EXPORTS[form].file_name.endswith(".json"):
        assert type(json.loads(text)) is type(json.loads(plain))
    else:
        assert uncommented(text) == uncommented(plain)


def uncommented(text):
    return [line for line in text.splitlines() if not line.startswith("#")]


@names
def test_a_list_of_layers_is_read_back(name, tmp_path):
    import csv

    text = EXPORTS["csv"].text(plan_of(name))
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["name"] for row in rows] == [name] * 4


@pytest.mark.parametrize("name", REFUSED, ids=ascii)
def test_a_name_that_steers_a_terminal_is_refused(name):
    with pytest.raises(InputError, match="name must be text without control characters") as caught:
        plan_of(name)
    assert all(line.isprintable() for line in str(caught.value).splitlines())


@pytest.mark.parametrize(
    "words", [("plan", "-s", "2", "-mb", "2", "-t", "0.1"), ("check",), ("costs", "csv")]
)
def test_a_path_steers_no_terminal(words, tmp_path):
    from typer.testing import CliRunner

    from sapp_ppb.cli.main import app

    folder = tmp_path / "\x1b[31m\u202e<b>"
    folder.mkdir()
    path = folder / "model.json"
    for text in (
        model_to_json(plan_of(HARMLESS).problem.model),
        "--pipeline-model-parallel-size 2",
        "{",
        "name,kind",
    ):
        path.write_text(text, encoding="utf-8")
        result = CliRunner().invoke(app, [words[0], str(path), *words[1:]])
        for line in (result.stdout + result.stderr).splitlines():
            assert line.isprintable(), ascii(line)
