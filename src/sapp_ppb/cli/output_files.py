"""The files of ``--output``: their names, who writes them, and whether they may be written."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sapp_ppb.cli.guard import say
from sapp_ppb.errors import InputError
from sapp_ppb.files import alone_in

if TYPE_CHECKING:
    from sapp_ppb.plan import Outcome, Plan
    from sapp_ppb.simulator import Timeline
    from sapp_ppb.writers.frameworks.exports import Export

Writer = Callable[["Timeline", Path, bool], None]


def _timeline(timeline: "Timeline", path: Path, force: bool) -> None:
    from sapp_ppb.report.timeline_picture import draw_timeline

    draw_timeline(timeline, path, force)


def _memory(timeline: "Timeline", path: Path, force: bool) -> None:
    from sapp_ppb.report.memory_picture import draw_memory

    draw_memory(timeline, path, force)


def _stages(timeline: "Timeline", path: Path, force: bool) -> None:
    from sapp_ppb.report.stages_picture import draw_stages

    draw_stages(timeline, path, force)


def _trace(timeline: "Timeline", path: Path, force: bool) -> None:
    from sapp_ppb.report import write_trace

    write_trace(timeline, path, force)


def _page(
    outcome: "Outcome", timeline: "Timeline | None", path: Path, force: bool, tokens: int | None
) -> None:
    from sapp_ppb.report.page import write_page
    from sapp_ppb.writers import mindformers_lists, mindformers_lists_text, plan_to_json

    lists = {"Plan file": plan_to_json(outcome)}
    plan = outcome.plan
    if plan is not None:
        forms = [form for form in _frameworks(plan) if not form.unsaid(plan)]
        said = {form.title: form.written(plan, timeline) for form in forms}
        if not said:  # why there is nothing to paste
            said = {"MindFormers": mindformers_lists_text(mindformers_lists(plan))}
        lists = said | lists
    write_page(outcome, timeline, path, lists=lists, tokens=tokens, force=force)


def _frameworks(plan: "Plan") -> "list[Export]":
    """Forms of the framework that a plan is for; those of every framework where it is for none."""
    from sapp_ppb.writers.frameworks.exports import EXPORTS

    target = plan.problem.target
    return [form for form in EXPORTS.values() if form.target and target in (None, form.name)]


PLAN_FILE, PAGE_FILE = "plan.json", "report.html"
# The plan that holds best when layers vary, where it is another one.
SECOND_PLAN_FILE = "plan-p95.json"
# What is made of a timeline, in this order; a line here adds a file to --output.
_OF_A_TIMELINE: tuple[tuple[str, Writer], ...] = (
    ("timeline.png", _timeline),
    ("timeline.svg", _timeline),
    ("memory.png", _memory),
    ("memory.svg", _memory),
    ("stages.png", _stages),
    ("stages.svg", _stages),
    ("trace.json", _trace),
)


# The plan in the words of others; a framework that can not say it has none.
_CONFIGS = (
    "layers.csv",
    "mindformers.yaml",
    "megatron.sh",
    "torchtitan.toml",
    "mindspeed.sh",
    "hyperparallel.json",
    "colossalai_plan.py",
    "deepspeed_plan.py",
    "pytorch.py",
    "schedule.csv",
)
# What is made of a comparison.
COMPARISON_FILES = ("compare.json", "compare.png", "compare.svg")


def free_folder(
    output: str,
    *,
    force: bool,
    read: Path | None = None,
    names: tuple[str, ...] | None = None,
    more: tuple[str, ...] = (),
) -> Path:
    """
    Refuse a folder that can not take the files, before any time is spent on their content.

    Parameters
    ----------
    read
        Plan file that is read; it may be in the folder, and is left as it is.
    names
        Files to be written there; None for those of a plan.
    more
        Files to be written there besides.

    Raises
    ------
    InputError
        With every file that exists when ``force`` is not set.
    """
    if not output.strip():
        raise InputError("--output", [f"must name a folder (got {output!r}); this one is named ."])
    folder = Path(output)
    names = names or (PLAN_FILE, *(name for name, _ in _OF_A_TIMELINE), *_CONFIGS, PAGE_FILE)
    paths = [folder / name for name in (*names, *more) if not _is_same(folder / name, read)]
    _refuse_taken("--output", paths, force=force)
    return folder


def free_file(option: str, output: str, *, force: bool) -> Path:
    """Refuse a file that exists or can not be written, before any time is spent on its content."""
    return free_files(option, output, [Path(output)], force=force)[0]


def free_files(option: str, output: str, paths: list[Path], *, force: bool) -> list[Path]:
    """Refuse files that exist or can not be written; they are what an option's text stands for."""
    if not output.strip():
        raise InputError(option, [f"must name a file (got {output!r})"])
    _refuse_taken(option, paths, force=force)
    return paths


def _refuse_taken(option: str, paths: list[Path], *, force: bool) -> None:
    try:
        _look_at(option, paths, force=force)
    except OSError as error:  # a name that is too long, a folder that may not be looked into, links in a ring
        fault = f"can not be written ({error.strerror}); give another {option}"
        raise InputError(str(error.filename), [fault]) from None


def _look_at(option: str, paths: list[Path], *, force: bool) -> None:
    for path in paths:
        if path.is_dir():
            raise InputError(str(path), [f"is a folder where {path.name} should be; give another {option}"])
    there = [path for path in paths if _is_there(path)]
    if len(there) == 1 and not force:
        raise InputError(str(there[0]), ["the file exists; give --force to replace it"])
    if there and not force:
        names = ", ".join(path.name for path in there)
        raise InputError(str(there[0].parent), [f"{names} exist; give --force to replace them"])
    # Folders that are missing are made, in the nearest one that is there.
    nearest = next((folder for folder in paths[0].parents if _is_there(folder)), paths[0].parent)
    if not nearest.is_dir():
        raise InputError(str(nearest), [f"is no folder; give another {option}"])
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(str(nearest), [f"the folder may not be written to; give another {option}"])


def _is_there(path: Path) -> bool:
    """Whether something has the name; anything but a plain no raises OSError."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def write_folder(
    folder: Path,
    outcome: "Outcome",
    timeline: "Timeline | None",
    *,
    force: bool,
    read: Path | None = None,
    tokens: int | None = None,
) -> None:
    """
    Write the plan file, when there is a plan all that is made of its timeline, and the page.

    Each file is whole or not there, whatever happens to the next; what was written is
    said on stderr.
    """
    from sapp_ppb.writers import write_plan

    written = []
    with alone_in(folder):  # the files of two runs at once are never mixed
        try:
            if not _is_same(folder / PLAN_FILE, read):
                write_plan(outcome, folder / PLAN_FILE, force)
                written.append(PLAN_FILE)
            for name, write in _OF_A_TIMELINE:
                if timeline is not None:
                    write(timeline, folder / name, force)
                    written.append(name)
            if outcome.plan is not None:
                written += _write_configs(folder, outcome.plan, timeline, force=force, read=read)
            _page(outcome, timeline, folder / PAGE_FILE, force, tokens)
            written.append(PAGE_FILE)
        finally:
            if written:
                say(f"wrote {folder}: {', '.join(written)}")


def _write_configs(
    folder: Path, plan: "Plan", timeline: "Timeline | None", *, force: bool, read: Path | None
) -> list[str]:
    """Write the layers, and what each framework would be told that can say the plan; name the files."""
    from sapp_ppb.writers import write_text_atomic
    from sapp_ppb.writers.frameworks.exports import EXPORTS

    written = []
    for form in (EXPORTS["csv"], *_frameworks(plan)):
        path = folder / form.file_name
        if _is_same(path, read):
            continue
        if not form.unsaid(plan):
            for name, text in form.files(plan, timeline).items():
                write_text_atomic(folder / name, text, force)
                written.append(name)
        elif path.exists():
            say(f"note: {path} is of an earlier plan; {form.title} can not express this one")
    return written


def write_comparison(
    folder: Path,
    document: str,
    timelines: "dict[str, Timeline]",
    pictures: "dict[str, str]",
    *,
    force: bool,
) -> None:
    """
    Write the rows of a comparison and, where there is a plan, the picture of its timelines.

    Parameters
    ----------
    pictures
        File name of a picture of its own, for those of the timelines that have one.
    """
    from sapp_ppb.report.timeline_picture import draw_comparison
    from sapp_ppb.writers import write_text_atomic

    written = []
    with alone_in(folder):  # the files of two runs at once are never mixed
        try:
            for name in COMPARISON_FILES:
                if name.endswith(".json"):
                    write_text_atomic(folder / name, document, force)
                elif timelines:
                    draw_comparison(timelines, folder / name, force)
                else:
                    continue
                written.append(name)
            for plan, name in pictures.items():
                _timeline(timelines[plan], folder / name, force)
                written.append(name)
        finally:
            if written:
                say(f"wrote {folder}: {', '.join(written)}")


def _is_same(path: Path, other: Path | None) -> bool:
    return other is not None and path.exists() and other.exists() and path.samefile(other)
