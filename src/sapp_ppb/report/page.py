"""The page of a plan: one HTML file that needs no network and no other file."""

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from os import PathLike

from sapp_ppb.errors import InputError
from sapp_ppb.files import whole_file
from sapp_ppb.plan import Outcome
from sapp_ppb.report.blocks import timeline_blocks
from sapp_ppb.report.critical_path import find_waits
from sapp_ppb.report.memory_curve import memory_curve
from sapp_ppb.report.page_data import page_data
from sapp_ppb.report.page_parts import Sections, infeasible_sections, part, plan_sections
from sapp_ppb.simulator import Timeline

# In the order in which they need one another.
_SCRIPTS = ("numbers", "view", "timeline", "memory", "page")


def write_page(
    outcome: Outcome,
    timeline: Timeline | None,
    path: str | PathLike[str],
    *,
    lists: Mapping[str, str] | None = None,
    tokens: int | None = None,
    force: bool = False,
) -> None:
    """
    Write the page of an outcome.

    Parameters
    ----------
    outcome
        The answer to a problem; of one without a plan the page says why nothing fits.
    timeline
        Its plan as the simulator times it; None without a plan.
    path
        File to write; missing folders are made.
    lists
        Texts to copy, by the name of what takes them; none when left out.
    tokens
        Tokens of a micro-batch; None leaves out what they come to a second.
    force
        Replace a file that exists.

    Raises
    ------
    InputError
        If the file exists and ``force`` is not set, or if it can not be written.
    """
    text = page_text(outcome, timeline, lists=lists, tokens=tokens)
    with whole_file(path, force) as file:
        file.write(text.encode("utf-8"))


def page_text(
    outcome: Outcome,
    timeline: Timeline | None,
    *,
    lists: Mapping[str, str] | None = None,
    tokens: int | None = None,
) -> str:
    """
    Text of the page: the same for equal outcomes.

    Only the page's own script and style run: their hashes are in its policy, and
    names stand in it as text alone.

    Raises
    ------
    InputError
        If the outcome has a plan and there is no timeline of it.
    """
    if outcome.plan is None:
        return _filled(infeasible_sections(outcome), data=None)
    if timeline is None:
        raise InputError("page", ["a plan needs its timeline; give simulate(outcome.plan)"])
    waits = find_waits(timeline)
    data = page_data(timeline, timeline_blocks(timeline), waits, memory_curve(timeline))
    return _filled(plan_sections(outcome, timeline, waits, lists or {}, tokens), data)


def _filled(sections: Sections, data: Mapping[str, object] | None) -> str:
    """Put everything into the one file."""
    style = part("page.css").template
    script = "".join(part(f"{name}.js").template for name in _SCRIPTS)
    return part("page.html").substitute(
        title=sections.title,
        body=sections.body,
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        data=_json(data),
        version=_version(),
    )


def _hash(text: str) -> str:
    """Hash as a content security policy writes it."""
    return "sha256-" + b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii")


def _json(data: object) -> str:
    """JSON that no HTML parser takes for markup."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _version() -> str:
    try:
        return version("sapp-ppb")
    except PackageNotFoundError:
        return "of a source tree"
