"""``sapp-ppb export``: a plan in the words of a framework, to paste or into its file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sapp_ppb.cli.guard import FITS, NOTHING_FITS, say
from sapp_ppb.cli.options.output import Force
from sapp_ppb.cli.options.problem import FRAMEWORKS
from sapp_ppb.cli.output import write_document
from sapp_ppb.cli.output_files import free_files
from sapp_ppb.errors import InputError
from sapp_ppb.files import is_folder

if TYPE_CHECKING:
    from sapp_ppb.plan import Plan
    from sapp_ppb.targets.nearest import Nearest
    from sapp_ppb.writers.frameworks.exports import Export

_LARGEST_MB = 0.25  # of a configuration; parsing takes seconds a MB
_SHOWN_LINES = 60
SHORT_HELP = "Write a plan for a framework."
HELP = """
Write a plan file in the words of a framework, checked by the framework's own rules: to stdout,
to a new file with --output, or with --into into a configuration that exists, of which only the
keys of the plan change.  Needs no model file; with --model lists of layers name the HEAD and TAIL.

A plan that the framework can not express is refused with every reason and with the nearest plan
of the same split that it can; --nearest writes that one.  Exits with 1 then.

\b
Examples:
  sapp-ppb export out/plan.json --to mindformers --into pretrain.yaml
  sapp-ppb export out/plan.json --to megatron
  sapp-ppb export out/plan.json --to csv -o layers.csv
"""


def export(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.json", help="Plan file.", show_default=False)],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="NAME",
            help=f"{FRAMEWORKS}, csv or json.  [default: what --into is of]",
        ),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option("--into", metavar="FILE", help="Configuration to edit: only the plan's keys change."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="MODEL.json", help="Model file of the plan.")
    ] = None,
    python: Annotated[
        bool, typer.Option("--python", help="Write statements of Python, for torchtitan's newer releases.")
    ] = False,
    nearest_: Annotated[
        bool,
        typer.Option("--nearest", help="Write the nearest plan that can be said, where this one can not."),
    ] = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="File to write, or a folder.")
    ] = None,
    force: Force = False,
) -> int:
    """Write a plan for a framework, or say why that can not be."""
    from sapp_ppb.writers import write_text_atomic

    if into is not None and output is not None:
        raise InputError("--into", ["edits a file, and --output writes a new one; give one of the two"])
    form = _form(to, into)
    if python:
        form = _in_python(form, into)
    is_several = output is not None and (output.endswith(os.sep) or is_folder(output))
    paths = [Path(output or "")] if not is_several else [Path(output or "", name) for name in form.file_names]
    if output is not None:
        free_files("--output", output, paths, force=force)
    chosen = _sayable(
        _plan(plan, model, form), form, plan, take_nearest=nearest_, is_priced=model is not None
    )
    if chosen is None:
        return NOTHING_FITS
    if into is not None:
        _edit(into, chosen, form)
    elif output is not None:
        for path, text in zip(paths, _texts(chosen, form, is_priced=model is not None), strict=False):
            write_text_atomic(path, text, force)
            say(f"wrote {path}")
    else:
        write_document(_texts(chosen, form, is_priced=model is not None)[0])
    return FITS


def _texts(plan: "Plan", form: "Export", *, is_priced: bool) -> list[str]:
    """Texts of a plan's files, with what it takes and holds where its model is known and that is said."""
    from sapp_ppb.simulator import simulate

    timeline = simulate(plan) if is_priced and form.timed_text is not None else None
    return list(form.files(plan, timeline).values())


def _form(to: str | None, into: Path | None) -> "Export":
    """Form to write; that of the file to edit where none is named."""
    from sapp_ppb.readers.frameworks.framework import framework_of
    from sapp_ppb.writers.frameworks.exports import EXPORTS, export_named

    if to is None and into is None:
        raise InputError("--to", [f"says what to write, and is missing; one of {', '.join(EXPORTS)}"])
    if to is None:
        found = framework_of(into or "")
        if found is None:
            raise InputError(str(into), ["does not tell whose configuration it is; give --to"])
        to = found.value
    form = export_named(to)
    if into is not None and form.into is None:
        raise InputError("--into", [f"edits a framework's configuration; write {to} with --output"])
    return form


def _in_python(form: "Export", into: Path | None) -> "Export":
    """Give a form that writes statements in place of a file's text."""
    from dataclasses import replace

    from sapp_ppb.writers.frameworks.torchtitan import torchtitan_text

    if form.name != "torchtitan" or into is not None:
        raise InputError("--python", ["goes with --to torchtitan and without --into; leave it out"])
    return replace(form, text=lambda plan: torchtitan_text(plan, python=True))


def _plan(path: Path, model: Path | None, form: "Export") -> "Plan":
    """Read a plan file, with its model or without."""
    from sapp_ppb.readers import read_model, read_plan
    from sapp_ppb.readers.plans.plan_counts import bodies_alone, read_plan_counts

    if model is None:
        plan = read_plan_counts(path)
        if form.target is None:
            say("note: without --model the list has BODY layers only, no HEAD and no TAIL")
            return bodies_alone(plan)
        return plan
    known = read_plan(path, read_model(model)).plan
    if known is None:
        raise InputError(str(path), ["holds no plan, because none fits; give one that has a plan"])
    return known


def _sayable(
    plan: "Plan", form: "Export", path: Path, *, take_nearest: bool, is_priced: bool
) -> "Plan | None":
    """Give the plan, or the nearest that can be said where that is asked for; else say why not."""
    from sapp_ppb.targets.nearest import nearest

    unsaid = form.unsaid(plan)
    if not unsaid:
        return plan
    say(f"error: {path}: {form.title} can not express this plan")
    for reason in unsaid:
        say(f"  {reason}")
    found = None if form.target is None else nearest(plan, form.target)
    if found is None:
        if form.target is not None:
            say(
                "nearest: none with this split; plan for it with "
                f"'sapp-ppb plan MODEL.json ... --target {form.name}'"
            )
        return None
    say(f"nearest: {_nearest_words(found)}; {_price(found) if is_priced else 'it may not fit the memory'}")
    if take_nearest:
        return found.plan
    say(f"  --nearest writes it; 'sapp-ppb plan MODEL.json ... --target {form.name}' finds the best one")
    return None


def _nearest_words(found: "Nearest") -> str:
    layers = "1 layer" if found.differing == 1 else f"{found.differing} layers"
    words = f"{found.words}, which" if found.words else "the lists that"
    return f"{words} {'differs' if found.words else 'differ'} in {layers}"


def _price(found: "Nearest") -> str:
    """Say what the nearest plan takes and holds."""
    from sapp_ppb.report.words import memory_text, step_text
    from sapp_ppb.simulator import simulate

    timeline = simulate(found.plan)
    return f"{step_text(timeline)}; {memory_text(timeline)}"


def _edit(path: Path, plan: "Plan", form: "Export") -> None:
    """Put a plan into a file, and say which lines that changes."""
    from sapp_ppb.readers.formats.text_file import read_text
    from sapp_ppb.writers import write_text_atomic

    before = read_text(path, largest_mb=_LARGEST_MB, format_name="a configuration", keep_mark=True)
    assert form.into is not None, "a form that edits"  # noqa: S101
    after = form.into(before, plan, str(path))
    if after == before:
        say(f"{path} says this plan already; nothing changed")
        return
    write_text_atomic(path, after, force=True)
    lines = _changed_lines(before, after)
    say(f"edited {path}:")
    for line in lines[:_SHOWN_LINES]:
        say(f"  {line}")
    if len(lines) > _SHOWN_LINES:
        say(f"  and {len(lines) - _SHOWN_LINES} more lines")


def _changed_lines(before: str, after: str) -> list[str]:
    r"""
    List lines that are gone and lines that are new, each with its number and a sign.

    Examples
    --------
    >>> _changed_lines("a: 1\nb: 2\n", "a: 1\nb: 3\n")
    ['2 - b: 2', '2 + b: 3']
    """
    from difflib import SequenceMatcher

    old, new = before.splitlines(), after.splitlines()
    lines = []
    for tag, low, high, start, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            lines += [f"{low + at + 1} - {line}" for at, line in enumerate(old[low:high])]
            lines += [f"{start + at + 1} + {line}" for at, line in enumerate(new[start:stop])]
    return lines
