"""The command as a shell sees it: its options, what help costs, and flags that people know."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from sapp_ppb.cli import options
from sapp_ppb.cli.main import app
from sapp_ppb.targets import TARGETS
from tests.cli.conftest import environment

# A change here breaks scripts that people have: it belongs into the changelog.
# What every verb that plans takes.
PROBLEM = {
    "model": (),
    "stages": ("--stages", "-s"),
    "micro_batches": ("--micro-batches", "-mb"),
    "interleave": ("--interleave", "-i"),
    "memory_limit": ("--memory-limit", "-mem"),
    "memory_margin_": ("--memory-margin",),
    "constant_memory": ("--constant-memory", "-mc"),
    "p2p": ("--p2p",),
    "p2p_mode_": ("--p2p-mode",),
    "schedule": ("--schedule",),
    "micro_batch_group_": ("--micro-batch-group",),
    "sequence_chunks": ("--sequence-chunks",),
    "order": ("--order",),
    "overlap_factor": ("--overlap-factor",),
    "flavour_": ("--flavour",),
    "recompute": ("--recompute",),
    "max_recompute_types": ("--max-recompute-types",),
    "recompute_working_set": ("--recompute-working-set",),
    "min_layers": ("--min-layers",),
    "target": ("--target",),
    "stage_speed": ("--stage-speed",),
    "step_extra": ("--step-extra",),
    "time_limit": ("--time-limit", "-t"),
    "gap": ("--gap",),
    "seed": ("--seed",),
}
WRITTEN = {"output": ("--output", "-o"), "force": ("--force",), "json_": ("--json",)}
OPTIONS = {
    "plan": PROBLEM
    | WRITTEN
    | {
        "threads": ("--threads",),
        "warm_start": ("--warm-start",),
        "fix": ("--fix",),
        "keep": ("--keep",),
        "reorder_stages": ("--reorder-stages",),
        "explain": ("--explain",),
        "noise": ("--noise",),
        "tokens": ("--tokens-per-micro-batch",),
        "timeline_": ("--timeline",),
    },
    "compare": PROBLEM | WRITTEN | {"plans": ()},
    "calibrate": WRITTEN | {"model": (), "runs": ()},
    "simulate": WRITTEN
    | {
        "model": (),
        "plan": (),
        "entry": ("--entry",),
        "stages": ("--stages", "-s"),
        "micro_batches": ("--micro-batches", "-mb"),
        "interleave": ("--interleave", "-i"),
        "memory_limit": ("--memory-limit", "-mem"),
        "constant_memory": ("--constant-memory", "-mc"),
        "p2p": ("--p2p",),
        "schedule": ("--schedule",),
        "micro_batch_group_": ("--micro-batch-group",),
        "min_layers": ("--min-layers",),
        "stage_speed": ("--stage-speed",),
        "step_extra": ("--step-extra",),
        "tokens": ("--tokens-per-micro-batch",),
        "timeline_": ("--timeline",),
        "emit_trace": ("--emit-trace",),
    },
    "costs trace": {
        "traces": (),
        "body": ("--body",),
        "head": ("--head",),
        "tail": ("--tail",),
        "micro_batches": ("--micro-batches", "-mb"),
        "per_layer": ("--per-layer",),
        "split": ("--split",),
        "plan": ("--plan",),
        "name": ("--name",),
        "output": ("--output", "-o"),
        "force": ("--force",),
        "json_": ("--json",),
    },
    "costs dryrun": {
        "peaks": (),
        "runs": ("--runs",),
        "fragments": ("--with-fragments",),
        "times": ("--times",),
        "micro_batches": ("--micro-batches", "-mb"),
        "constant_memory": ("--constant-memory", "-mc"),
        "name": ("--name",),
        "output": ("--output", "-o"),
        "force": ("--force",),
        "json_": ("--json",),
    },
    "costs init": {
        "path": (),
        "times": ("--times",),
        "micro_batches": ("--micro-batches", "-mb"),
        "constant_memory": ("--constant-memory", "-mc"),
        "name": ("--name",),
        "output": ("--output", "-o"),
        "force": ("--force",),
        "json_": ("--json",),
    },
    "costs hf": {
        "config": (),
        "device": ("--device",),
        "sequence_length": ("--seq",),
        "micro_batch": ("--micro-batch",),
        "tensor": ("--tp",),
        "data": ("--dp",),
        "expert": ("--ep",),
        "zero": ("--zero",),
        "sequence_parallel": ("--sequence-parallel",),
        "flash": ("--flash",),
        "dtype": ("--dtype",),
        "name": ("--name",),
        "output": ("--output", "-o"),
        "force": ("--force",),
        "json_": ("--json",),
    },
    "costs galvatron": {
        "computation": ("--computation",),
        "memory": ("--memory",),
        "layers": ("--layers", "-l"),
        "tp": ("--tp",),
        "sequence": ("--sequence",),
        "micro_batch": ("--micro-batch",),
        "sequence_parallel": ("--sequence-parallel",),
        "dp": ("--dp",),
        "zero": ("--zero",),
        "head_share": ("--head-share",),
        "name": ("--name",),
        "output": ("--output", "-o"),
        "force": ("--force",),
        "json_": ("--json",),
    },
    "costs pipedream": {
        "graph": (),
        "states_per_parameter": ("--states-per-parameter",),
        "name": ("--name",),
        "output": ("--output", "-o"),
        "force": ("--force",),
        "json_": ("--json",),
    },
    "costs csv": {
        "path": (),
        "name": ("--name",),
        "output": ("--output", "-o"),
        "force": ("--force",),
        "json_": ("--json",),
    },
    "dryrun-guide": {
        "stages": ("--stages", "-s"),
        "layers": ("--layers", "-l"),
        "recompute": ("--recompute",),
        "micro_batches": ("--micro-batches", "-mb"),
        "output": ("--output", "-o"),
        "force": ("--force",),
    },
    "sweep": {
        "model": (),
        "grid": ("--grid",),
        "devices": ("--devices",),
        "global_batch": ("--global-batch",),
        "stages": ("--stages", "-s"),
        "interleave": ("--interleave", "-i"),
        "schedule": ("--schedule",),
        "memory_limit": ("--memory-limit", "-mem"),
        "micro_batch_size": ("--micro-batch-size",),
        "model_micro_batch_size": ("--model-micro-batch-size",),
        "tensor_parallel": ("--tensor-parallel",),
        "memory_margin": ("--memory-margin",),
        "constant_memory": ("--constant-memory", "-mc"),
        "p2p": ("--p2p",),
        "p2p_mode": ("--p2p-mode",),
        "stage_speed": ("--stage-speed",),
        "step_extra": ("--step-extra",),
        "micro_batch_group": ("--micro-batch-group",),
        "sequence_chunks": ("--sequence-chunks",),
        "overlap_factor": ("--overlap-factor",),
        "flavour": ("--flavour",),
        "recompute": ("--recompute",),
        "max_recompute_types": ("--max-recompute-types",),
        "recompute_working_set": ("--recompute-working-set",),
        "min_layers": ("--min-layers",),
        "target": ("--target",),
        "time_limit": ("--time-limit", "-t"),
        "gap": ("--gap",),
        "seed": ("--seed",),
        "no_cut": ("--no-cut",),
        "backend": ("--backend",),
        "address": ("--address",),
        "workers": ("--workers",),
        "output": ("--output", "-o"),
        "force": ("--force",),
        "json_": ("--json",),
    },
    "schedule": {
        "name": (),
        "stages": ("--stages", "-s"),
        "micro_batches": ("--micro-batches", "-mb"),
        "interleave": ("--interleave", "-i"),
        "micro_batch_group_": ("--micro-batch-group",),
        "sequence_chunks": ("--sequence-chunks",),
        "order": ("--order",),
    },
    "check": {
        "config": (),
        "model": ("--model",),
        "from_": ("--from",),
        "stages": ("--stages", "-s"),
        "micro_batches": ("--micro-batches", "-mb"),
        "memory_limit": ("--memory-limit", "-mem"),
        "memory_margin_": ("--memory-margin",),
        "constant_memory": ("--constant-memory", "-mc"),
        "p2p": ("--p2p",),
        "stage_speed": ("--stage-speed",),
        "step_extra": ("--step-extra",),
        "p2p_mode_": ("--p2p-mode",),
        "schedule": ("--schedule",),
        "micro_batch_group_": ("--micro-batch-group",),
        "sequence_chunks": ("--sequence-chunks",),
        "min_layers": ("--min-layers",),
        "time_limit": ("--time-limit", "-t"),
        "seed": ("--seed",),
        "no_plan": ("--no-plan",),
        "json_": ("--json",),
    },
    "export": {
        "plan": (),
        "to": ("--to",),
        "into": ("--into",),
        "model": ("--model",),
        "python": ("--python",),
        "nearest_": ("--nearest",),
        "output": ("--output", "-o"),
        "force": ("--force",),
    },
}
# pydantic is none of ours here: typer reads a verb's words with it.
HEAVY = ("numpy", "numba", "rich", "highspy", "scipy", "llvmlite", "ruamel", "matplotlib", "joblib")


def verbs(group: Any, before=""):
    """Every verb, those of a group under its name and theirs."""
    for name, verb in group.commands.items():
        if hasattr(verb, "commands"):
            yield from verbs(verb, f"{before}{name} ")
        else:
            yield f"{before}{name}", verb


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
    assert ", ".join(TARGETS) == options.FRAMEWORKS
