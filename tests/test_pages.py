"""What a reader may copy from a page is run, and what a page shows is what is printed."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise, takewhile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sapp_ppb import Problem, plan_pipeline, read_model
from sapp_ppb.cli.main import app
from sapp_ppb.report import canvas
from sapp_ppb.writers import write_plan
from tests.cli.conftest import BODY, HEAD, TAIL, environment
from tests.cli.verbs import OPTIONS
from tests.pages import DOCS, ROOT, Block, blocks, pages

LLAMA = ROOT / "examples" / "llama2_70b.json"
DATA = ROOT / "tests" / "data"
YOURS = "needs timelines, logs or peaks of a run of your own"
CLUSTER = "needs a Dask or Ray cluster; tests/sweep/test_clusters.py starts one"
# What is not run, page by page: how the command begins, and why.  Its options are checked all the same.
NOT_RUN = {
    "reference/commands.md": {"sapp-ppb": "the examples of the help texts, of files of your own"},
    "measuring.md": {
        "sapp-ppb costs trace": YOURS,
        "sapp-ppb costs dryrun": YOURS,
        "sapp-ppb plan model.json": "of the model that those commands make",
    },
    "calibrating.md": {"sapp-ppb calibrate llama2_70b.json run1/": YOURS},
    "sweeps.md": {
        "sapp-ppb sweep model.json --grid grid.yaml --backend": CLUSTER,
    },
}
# Programs that are not ours to run, by page and how they begin, and why.
NOT_OURS = {
    "frameworks/colossalai.md": {"plugin =": "needs Colossal-AI"},
    "frameworks/deepspeed.md": {"from deepspeed": "needs DeepSpeed", "net =": "needs DeepSpeed"},
    "frameworks/hyperparallel.md": {"import json": "needs HyperParallel"},
    "frameworks/pytorch.md": {"from functools": "needs PyTorch", "for index": "needs PyTorch"},
    "frameworks/torchtitan.md": {"config.parallelism": "needs torchtitan"},
}
# Lines for a shell that are no commands of ours: how they begin, and why they are not run.
OF_THE_SHELL = {
    "pip install .": "installs; tests of packaging do",
    "python3 -m venv": "installs",
    ". .venv/bin/activate": "installs",
    "mkdir ": "makes the folder in which the test runs",
    "cd ": "the same",
    "git ": "tags and pushes a release",
    ".venv/bin/twine ": "uploads a release",
    "sapp-ppb --version": "says what is installed",
    "torchrun ": "needs PyTorch",
    "colossalai run": "needs Colossal-AI",
    "bash ": "starts a training",
    "dask ": CLUSTER,
    "ray ": CLUSTER,
    "export MS_": "settings of MindSpore",
    "python run_pipeline_balance.py": "the older tool",
}
# Pages whose commands make pictures of long steps, and so take more than a few seconds.
SLOW = {
    "README.md",
    "frameworks.md",
    "frameworks/megatron.md",
    "migrating.md",
    "planning.md",
    "special-layers.md",
    "sweeps.md",
    "tutorial.md",
}


def tiny(path: Path) -> None:
    """Write a model of ten small layers."""
    document = {"name": "tiny", "layers_description": [HEAD, BODY, TAIL]}
    path.write_text(json.dumps(document), encoding="utf-8")


def text(content: str) -> Callable[[Path], None]:
    """Give this text as a file."""

    def write(path: Path) -> None:
        path.write_text(content, encoding="utf-8")

    return write


def block_of(page: str, start: str) -> Callable[[Path], None]:
    """Give the block of a page that begins so as a file."""
    return text(next(block.text for block in blocks(DOCS / page) if block.text.startswith(start)))


def llama_plan(stages: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        problem = Problem(model=read_model(LLAMA), stages=stages, micro_batches=16)
        write_plan(plan_pipeline(problem, time_limit_s=0.5), path)

    return write


MEGATRON = "MODEL_ARGS:\n  --num-layers: 96\n  --pipeline-model-parallel-size: 16\n"
MINDSPEED = """torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py \\
    --num-layers 98 \\
    --noop-layers 0,97 \\
    --pipeline-model-parallel-size 16 \\
    --micro-batch-size 1 \\
    --global-batch-size 32
"""
COLOSSALAI = """plugin = HybridParallelPlugin(
    tp_size=1,
    pp_size=2,
    num_microbatches=8,
)
"""
# Files that a page takes for given: what they are here.
GIVEN: dict[str, dict[str, Path | Callable[[Path], None]]] = {
    "calibrating.md": {
        "llama2_70b.json": LLAMA,
        "steps.csv": block_of("calibrating.md", "plan,step_ms"),
        "runs/8-stages.json": llama_plan(8),
        "runs/16-stages.json": llama_plan(16),
    },
    "devices.md": {"llama2_70b.json": LLAMA},
    "noise.md": {"llama2_70b.json": LLAMA},
    "estimation.md": {
        "llama3.1_70b.json": DATA / "hf_configs" / "llama3.1_70b_config.json",
        "deepseek_v3.json": DATA / "hf_configs" / "deepseek_v3_config.json",
    },
    "frameworks.md": {
        "MODEL.json": LLAMA,
        "pretrain.yaml": block_of("frameworks/mindformers.md", "parallel_config"),
        "model_config.yaml": text(MEGATRON),
    },
    "frameworks/colossalai.md": {"MODEL.json": tiny, "train.py": text(COLOSSALAI)},
    "frameworks/deepspeed.md": {"MODEL.json": tiny},
    "frameworks/megatron.md": {
        "train.sh": block_of("frameworks/megatron.md", "MODEL_PARALLEL_ARGS"),
        "model_config.yaml": text(MEGATRON),
    },
    "frameworks/mindformers.md": {"run.yaml": block_of("frameworks/mindformers.md", "parallel_config")},
    "frameworks/mindspeed.md": {"train.sh": text(MINDSPEED)},
    "frameworks/plain.md": {"MODEL.json": tiny},
    "frameworks/pytorch.md": {"MODEL.json": tiny},
    "frameworks/torchtitan.md": {
        "MODEL.json": tiny,
        "job.toml": block_of("frameworks/torchtitan.md", "[parallelism]"),
    },
    "measuring.md": {"init.yaml": DATA / "sapp" / "init_demo.yaml"},
    "profiles.md": {
        "times.json": DATA / "profiles" / "galvatron" / "computation_profiling_bf16_llama2-7b_all.json",
        "memory.json": DATA / "profiles" / "galvatron" / "memory_profiling_bf16_llama2-7b_all.json",
        "graph.txt": DATA / "profiles" / "pipedream" / "gnmt_graph.txt",
        "layers.csv": DATA / "profiles" / "layers.csv",
    },
    "sweeps.md": {"model.json": LLAMA, "grid.yaml": block_of("sweeps.md", "devices:")},
    "tutorial.md": {
        "layers.csv": block_of("tutorial.md", "name,kind"),
        "train.sh": block_of("tutorial.md", "torchrun"),
    },
}
# Commands that say no by their exit code, as the page says: the limit is exceeded, nothing fits.
SAY_NO = {
    "frameworks.md": ["sapp-ppb check"],
    "frameworks/mindformers.md": ["sapp-ppb check run.yaml"],
    "planning.md": ["-mem 20000"],
    "tutorial.md": ["-mem 12000"],
}


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix() if page.is_relative_to(DOCS) else page.name


def why_not(page: Path, command: str) -> str | None:
    reasons = NOT_RUN.get(name_of(page), {})
    return next((why for start, why in reasons.items() if command.startswith(start)), None)


COMMANDS = [(page, command) for page in pages() for block in blocks(page) for command in block.commands]
PROGRAMS = [
    (page, block, following)
    for page in pages()
    for block, following in pairwise([*blocks(page), Block("", "")])
    if block.language == "python"
]
RUN = sorted({page for page, command in COMMANDS if not why_not(page, command)})


def test_there_are_commands_and_programs():
    assert len(COMMANDS) > 150
    assert len(RUN) > 20
    assert sum("sapp_ppb" in block.text for _, block, _ in PROGRAMS) >= 5


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=lambda value: str(value)[-60:])
def test_a_command_has_options_of_the_tool(page, command):
    words = command.split()[1:]
    if words == ["--version"]:
        return
    verb = next(known for known in (" ".join(words[:2]), words[0]) if known in OPTIONS)
    known = {flag for flags in OPTIONS[verb].values() for flag in flags}
    flags = {word for word in words if re.fullmatch(r"--?[a-z][a-z0-9-]*", word)}
    assert flags <= known


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Make a folder that has the repository's data, and takes what the commands write."""
    for name in ("tests", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def give_files(page: Path, place: Path) -> None:
    for name, source in GIVEN.get(name_of(page), {}).items():
        path = place / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(source, Path):
            shutil.copy(source, path)
        else:
            source(path)


def words_of(command: str, *, is_shown: bool) -> list[str]:
    """Words of a command; of a search whose result is not shown the time is short."""
    words = []
    for word in command.split()[1:]:
        words += sorted(map(str, Path().glob(word))) if "*" in word else [word.strip("\"'")]
    if "-o" in words and Path(words[words.index("-o") + 1]).exists():
        words.append("--force")
    if words[0] not in ("plan", "compare", "sweep", "check") or is_shown:
        return words
    limit = "0.1" if words[0] == "sweep" else "0.5"
    if "-t" in words:
        words[words.index("-t") + 1] = limit
        return words
    return [*words, "-t", limit]


def run(page: Path, command: str, *, is_shown: bool) -> str:
    """Run a command of a page, and give what it prints."""
    if ">" in command:
        pytest.fail(f"{command}: give it a reason in NOT_RUN, it goes into a file")
    result = CliRunner().invoke(app, words_of(command, is_shown=is_shown))
    may = any(part in command for part in SAY_NO.get(name_of(page), []))
    assert result.exit_code == 0 or (may and result.exit_code == 1), (command, result.stdout, result.stderr)
    return result.stdout


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if name_of(page) in SLOW else []) for page in RUN],
    ids=name_of,
)
def test_the_commands_of_a_page_run_and_print_what_is_shown(page, place, monkeypatch):
    # Drawing takes most of the time and is tested in tests/report.
    monkeypatch.setattr(
        canvas, "save_picture", lambda figure, path, force: Path(path).write_bytes(b"picture")
    )
    give_files(page, place)
    printed: list[str] = []
    found = blocks(page)
    programs = {id(following) for block, following in pairwise(found) if block.language == "python"}
    # What is shown of a page's commands stands in blocks without a language.
    shown = [
        block for block in found if not block.language and not block.commands and id(block) not in programs
    ]
    for block in found:
        later = takewhile(lambda other: not other.commands, found[found.index(block) + 1 :])
        is_shown = any(other in shown for other in later)
        for command in block.commands:
            if not why_not(page, command) and not command.endswith("--version"):
                printed += run(page, command, is_shown=is_shown).splitlines()
        if block in shown:
            known = {line.rstrip() for line in printed}
            assert [line for line in block.text.splitlines() if line.rstrip() not in known] == []


@pytest.mark.parametrize(
    ("page", "block", "following"),
    [each for each in PROGRAMS if "sapp_ppb" in each[1].text and name_of(each[0]) not in NOT_OURS],
    ids=lambda value: name_of(value) if isinstance(value, Path) else "",
)
def test_a_program_prints_what_is_shown(page, block, following):
    ran = subprocess.run(
        [sys.executable, "-c", block.text],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    if not following.language and not following.commands and following.before == "```":
        assert ran.stdout == following.text


def test_every_other_program_has_a_reason_not_to_be_run():
    for page, block, _ in PROGRAMS:
        reasons = NOT_OURS.get(name_of(page), {})
        ours = "sapp_ppb" in block.text and not reasons
        assert ours or any(block.text.startswith(start) for start in reasons), (page, block.text)


def test_every_line_for_a_shell_is_known():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in pages():
        for block in blocks(page):
            lines = re.sub(r"\\\n\s*", "", block.text).splitlines()
            if block.language == "sh" or (block.commands and not block.language):
                for line in lines:
                    known = line.startswith(("sapp-ppb ", *OF_THE_SHELL)) or not line.strip()
                    known |= line.startswith("  ")  # goes on
                    known |= line.startswith("make ") and line.split()[1] in targets
                    assert known, (page, line)


def test_every_reason_is_needed():
    for page, reasons in NOT_RUN.items():
        commands = [command for at, command in COMMANDS if name_of(at) == page]
        for start in reasons:
            assert any(command.startswith(start) for command in commands), (page, start)
    for page in GIVEN:
        assert (DOCS / page).exists()


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_somewhere(page):
    """Anchors are those of code hosts: small letters, no signs but hyphens."""
    content = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link, anchor in re.findall(r"\]\(\s*(?!https?://)([^)#\s]*)(?:#([^)\s]*))?\)", content):
        target = page.parent / link if link else page
        assert target.exists(), link
        if anchor and not anchor.startswith("sapp_ppb"):
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {
                re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
            }
            assert anchor in slugs, (link, anchor)
