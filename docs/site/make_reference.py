"""
Write docs/reference/commands.md and docs/reference/api/ from the program itself.

Run it after a change of an option or of a public name; a test says when it is due.
"""

import ast
import inspect
import re
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from sapp_ppb.cli.main import app

REFERENCE = Path(__file__).parents[1] / "reference"
MADE = "<!-- made by docs/site/make_reference.py -->"
MEMBERS = (
    "    options:",
    "      show_root_heading: false",
    "      show_root_toc_entry: false",
    "      members:",
)
COMMANDS_HEAD = """# Commands

<!-- made by docs/site/make_reference.py -->

Every verb and option, made of what `sapp-ppb VERB --help` prints.

The result goes to stdout, everything else to stderr. Exit codes: 0 a plan that fits, 1 nothing fits or a rule
is broken, 2 bad input, 3 interrupted or no plan found in time.
"""


@dataclass(frozen=True)
class Room:
    """A page of the Python reference: its title, what it says first, and modules with their names."""

    title: str
    text: str
    modules: tuple[str, ...]


ROOMS = {
    "costs": Room("Costs", "What work costs: layers, the model that is their chain, recompute types.",
                  ("costs",)),
    "schedules": Room("Schedules", "In which order the stages run their ops.", ("schedules",)),
    "problem": Room("Problem and plan", "What is given, what is decided, and what is known of it.",
                    ("problem", "fix", "plan")),
    "simulator": Room("Simulator", "How long a plan takes, and how much it holds.", ("simulator",)),
    "planner": Room("Planner", "Which plan is best, and why.", ("planner",)),
    "estimation": Room("Estimation", "From measurements, profiles and sizes to costs.", ("estimation",)),
    "readers": Room("Readers", "Files in.", (
        "readers", "readers.frameworks.framework", "readers.config_plan", "readers.models.device_file",
        "readers.models.hf_config", "readers.older.init_yaml", "readers.measurements.trace_file",
        "readers.measurements.peaks", "readers.measurements.run_file")),
    "writers": Room("Writers", "Files out.", (
        "writers", "writers.frameworks.exports", "writers.frameworks.layer_list")),
    "targets": Room("Targets", "What a framework can say, and its rules.", ("targets", "targets.nearest")),
    "report": Room("Reports", "What a timeline looks like.", (
        "report", "report.timeline_picture", "report.memory_picture", "report.stages_picture",
        "report.choice_picture", "report.page")),
    "sweep": Room("Sweep", "Many problems.", ("sweep", "sweep.grid_options")),
    "errors": Room("Errors", "What goes wrong, in words.", ("errors",)),
}  # fmt: skip


def commands_page() -> str:
    """Page of all verbs, those of ``costs`` included."""
    group: Any = typer.main.get_command(app)
    verbs = list(_verbs(group, "sapp-ppb"))
    lines = [COMMANDS_HEAD, "| verb | does |", "|---|---|"]
    for path, command in verbs:
        verb = path.removeprefix("sapp-ppb ")
        first = re.split(r"(?<=\.)\s", _joined(command.help.split("\n\n")[0]))[0]
        lines.append(f"| [`{verb}`](#{_anchor(path)}) | {_cell(first.removesuffix('.'))} |")
    for path, command in verbs:
        lines += ["", f"## {path}", "", _help_text(command.help), "", _usage(path, command), ""]
        lines += _options_table(command)
    return "\n".join(lines) + "\n"


def _verbs(group: Any, path: str) -> list[tuple[str, Any]]:
    found = []
    for name, command in group.commands.items():
        inner = f"{path} {name}"
        found += _verbs(command, inner) if hasattr(command, "commands") else [(inner, command)]
    return found


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")


def _joined(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    """Text of a cell: outside of code an angle bracket or a bar is no Markdown there."""
    parts = _joined(text).replace("``", "`").split("`")
    escaped = [part if at % 2 else re.sub(r"([|<>*_\[\]])", r"\\\1", part) for at, part in enumerate(parts)]
    return "`".join(escaped)


def _help_text(text: str) -> str:
    """Paragraphs as they are; what must keep its lines becomes a block."""
    parts = []
    for part in text.split("\n\n"):
        kept = part.removeprefix("\b\n")
        if kept == part:
            parts.append(_cell(part))
            continue
        title, _, lines = kept.partition("\n")
        lines = "\n".join(line.removeprefix("  ") for line in lines.splitlines())
        parts.append(
            f"{_cell(title)}\n\n```\n{lines}\n```" if title.endswith(":") else f"```text\n{kept}\n```"
        )
    return "\n\n".join(parts)


def _usage(path: str, command: Any) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    needed = [param for param in command.params if param.param_type_name == "option" and param.required]
    words = [path, *(_argument(param) for param in arguments)]
    words += [" ".join(filter(None, (min(param.opts, key=len), param.metavar))) for param in needed]
    return f"```text\n{' '.join(words)} [OPTIONS]\n```"


def _argument(param: Any) -> str:
    name = (param.metavar or param.name.upper()) + ("..." if param.nargs == -1 else "")
    return name if param.required else f"[{name}]"


def _options_table(command: Any) -> list[str]:
    rows = ["| option | value | what it does | default |", "|---|---|---|---|"]
    for param in command.params:
        is_argument = param.param_type_name == "argument"
        flags = [_argument(param)] if is_argument else [*param.opts, *param.secondary_opts]
        text, said = _parted(param.help or "")
        value = "" if is_argument or param.is_flag else f"`{param.metavar}`".replace("|", " or ")
        default = said or ("required" if param.required else _default(param))
        rows.append(
            f"| {', '.join(f'`{flag}`' for flag in flags)} | {value} | {_cell(text)} | {_cell(default)} |"
        )
    return rows


def _parted(text: str) -> tuple[str, str]:
    """Help without the default that it names itself, and that default."""
    found = re.search(r"\s*\[default: (.*)\]$", text)
    return (text[: found.start()], found[1]) if found else (text, "")


def _default(param: Any) -> str:
    value = param.default
    if value is None or isinstance(value, bool) or value in ("", ()) or not param.show_default:
        return ""
    return str(value)


def api_pages() -> dict[str, str]:
    """Name of every page of the Python reference, and its text."""
    return {"index.md": _index()} | {f"{name}.md": _room(room) for name, room in ROOMS.items()}


def _index() -> str:
    package = import_module("sapp_ppb")
    rows = []
    for name in package.__all__:
        if name != "__version__":
            home = package._HOMES[name]
            page = "problem" if home.endswith((".plan", ".problem")) else home.rpartition(".")[2]
            anchor = _full_name(import_module(home), name)
            rows.append(f"| [`{name}`]({page}.md#{anchor}) | {_first_line(package, name)} |")
    rooms = [f"| [{room.title}]({name}.md) | {room.text} |" for name, room in ROOMS.items()]
    return "\n".join([
        "# Python", "", MADE, "",
        "What most programs need comes from `sapp_ppb` itself; names are loaded when they are first used.",
        "", "| name | is |", "|---|---|", *rows, "",
        "`sapp_ppb.__version__` is the version of what is installed.", "",
        "Everything else stands in its room:", "", "| page | holds |", "|---|---|", *rooms, "",
    ])  # fmt: skip


def _room(room: Room) -> str:
    parts = [f"# {room.title}", "", MADE, "", room.text]
    for short in room.modules:
        path = f"sapp_ppb.{short}"
        module = import_module(path)
        at = {name: _full_name(module, name) for name in _public(module)}
        parts += ["", f"## {path}", "", "| name | is |", "|---|---|"]
        parts += [f"| [`{name}`](#{full}) | {_first_line(module, name)} |" for name, full in at.items()]
        parts += ["", f"::: {path}", *MEMBERS]
        parts += [f"        - {name}" for name, full in at.items() if full == f"{path}.{name}"]
        for name, full in at.items():
            parts += ["", f"::: {full}"] if full != f"{path}.{name}" else []
    return "\n".join(parts) + "\n"


def _full_name(module: Any, name: str) -> str:
    """Give a function the name of its home where a file of the package has its name, which would hide it."""
    path = Path(str(module.__file__))
    hidden = path.name == "__init__.py" and name in {each.stem for each in path.parent.iterdir()}
    return f"{module.__name__}.{name}" + (f".{name}" if hidden else "")


def _public(module: Any) -> list[str]:
    """Names that a module gives away: its ``__all__``, or what it defines without an underscore."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return sorted(name for name in defined if not name.startswith("_"))


def _first_line(module: Any, name: str) -> str:
    """Tell what a name is in a sentence: its docstring's first, or what it stands for."""
    value = getattr(module, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        return _cell(str(value.__doc__).strip().split("\n\n")[0].removesuffix("."))
    if isinstance(value, str | int):
        return f"`{value!r}`"
    if isinstance(value, dict | tuple):
        return f"{type(value).__name__} of {', '.join(f'`{key}`' for key in value)}"
    return f"stands for `{_right_side(module, name)}`".replace(" | ", " or ")


def _right_side(module: Any, name: str) -> str:
    """Text of the assignment that makes a name, in the module that makes it."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return _right_side(import_module(str(node.module)), name)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.unparse(node.value)
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name and node.value:
            return ast.unparse(node.value)
    raise LookupError(f"{module.__name__} does not make {name}")


def main() -> None:
    """Write every page, and say which changed."""
    pages = {"commands.md": commands_page()} | {f"api/{name}": text for name, text in api_pages().items()}
    for name, text in pages.items():
        path = REFERENCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path}")


if __name__ == "__main__":
    sys.exit(main())
