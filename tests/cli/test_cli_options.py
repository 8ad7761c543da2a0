"""The command as a shell sees it: its options, what help costs, and flags that people know."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from sapp_ppb.cli.main import app
from sapp_ppb.cli.options.problem import FRAMEWORKS
from sapp_ppb.targets import TARGETS
from tests.cli.conftest import environment
from tests.cli.verbs import HEAVY, OPTIONS, verbs


def test_the_verbs_and_their_options_are_these():
    found = {
        name: {
            option.name: tuple(text for text in option.opts if text.startswith("-"))
            for option in verb.params
            if option.name != "help"
        }
        for name, verb in verbs(typer.main.get_command(app))
    }
    assert found == OPTIONS


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["plan", "--help"],
        ["simulate", "-h"],
        ["schedule", "--help"],
        ["compare", "-h"],
        ["sweep", "-h"],
        ["costs", "trace", "-h"],
    ],
)
def test_help_imports_nothing_heavy(words):
    program = (
        "import sys\n"
        "from sapp_ppb.cli.main import main\n"
        f"sys.argv = ['sapp-ppb', *{words}]\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        f"print(sorted(set({HEAVY}) & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True
    )
    assert "Usage: sapp-ppb" in done.stdout
    assert done.stderr.strip() == "[]"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("words", [["--help"], ["plan", "--help"], ["--version"]])
def test_help_that_can_not_be_written_is_one_message(words):
    # It was a traceback: typer prints its help itself, and knows only pipes that were closed.
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sapp_ppb", *words],
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("error: stdout: the ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", OPTIONS)
def test_every_help_has_examples(verb, run):
    assert f"sapp-ppb {verb} " in run(*verb.split(), "--help").stdout.split("Examples:")[1]


def test_version(run):
    assert run("--version").stdout.startswith("sapp-ppb ")


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("-lf", "path of the model file after the verb"),
        ("-lm", "--schedule interleaved-less-memory"),
        ("-naive", "compared with even splits"),
        ("-manual", "sapp-ppb compare"),
        ("-seq", "--sequence-chunks"),
        ("-init", "sapp-ppb costs init"),
        ("-train", "check the YAML with 'sapp-ppb check TRAIN.yaml --model MODEL.json'"),
        ("-dump", "sapp-ppb costs"),
        ("-cm", "sapp-ppb costs dryrun"),  # it is --compute_memory there, out of logs
        ("-O", "--time-limit"),
    ],
)
@pytest.mark.parametrize("before", [[], ["plan", "model.json", "-s", "4"]])
def test_flags_of_the_older_tool_are_refused_with_what_to_do(flag, words, before):
    result = CliRunner().invoke(app, [*before, flag, "1"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {flag} is a flag of the older tool: ")
    assert words in result.stderr


def test_a_flag_of_the_older_tool_with_its_value_attached_is_refused_too(run):
    result = run("plan", "model.json", "-O2")
    assert result.stderr.startswith("error: -O is a flag of the older tool: ")


def test_flags_without_a_verb_are_told_about_verbs(run):
    result = run("-s", "16", "-mb", "32")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "a verb must come before -s" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["plan"], "MODEL.json"),
        (["plan", "model.json", "-s", "2"], "--micro-batches"),
        (["plan", "model.json", "-s", "two", "-mb", "4"], "--stages"),
        (["plan", "model.json", "-s", "2", "-mb", "4", "--stage", "3"], "--stages"),
    ],
)
def test_usage_faults_are_said_on_stderr(words, said, run):
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_the_help_names_every_framework():
    assert ", ".join(TARGETS) == FRAMEWORKS
