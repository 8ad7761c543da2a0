"""Edits of launch scripts and lists of arguments that leave every other byte as it is."""

import re
from functools import cached_property

from sapp_ppb.errors import InputError
from sapp_ppb.syntax.shell_arguments import Argument, shell_arguments
from sapp_ppb.targets.megatron.flags import SWITCHES, is_module

_ESCAPES = re.compile(r"\\+(?=[|*()])")
_NEEDS_QUOTES = re.compile(r"[^A-Za-z0-9_./-]")


class ScriptFlags:
    """
    Flags of a text, found by their place in it.

    Examples
    --------
    >>> file = ScriptFlags("run --a 1 --b=$B", "run.sh")
    >>> ScriptFlags(file.replaced("b", "2"), "run.sh").added("c", "E|L", "a")
    'run --a 1 --c "E|L" --b=2'
    """

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where

    @cached_property
    def _by_name(self) -> dict[str, list[Argument]]:
        found: dict[str, list[Argument]] = {}
        for argument in shell_arguments(self.text, self.where).found:
            found.setdefault(argument.name, []).append(argument)
        return found

    @cached_property
    def given(self) -> dict[str, object]:
        """Values by flag, of one that is given several times the last that differs."""
        values: dict[str, object] = {}
        for name, arguments in self._by_name.items():
            distinct = {argument.value for argument in arguments}
            values[name] = arguments[0].value if len(distinct) == 1 else None
        return values

    def replaced(self, name: str, value: str) -> str:
        """Text with another value wherever a flag is given."""
        text = self.text
        for argument in reversed(self._editable(name)):
            if argument.stop == 0:
                end = argument.flag.stop
                text = f"{text[:end]} {self._new(argument, value)}{text[end:]}"
            else:
                new = self._like(argument, value)
                text = text[: argument.start] + new + text[argument.stop :]
        return text

    def added(self, name: str, value: str, after: str | None) -> str:
        """Text with one more flag behind another, on a line of its own where the other has one."""
        near = after if after in self._by_name else "num-layers"
        if near not in self._by_name:
            fault = "has neither --pipeline-model-parallel-size nor --num-layers; paste the flags by hand"
            raise InputError(self.where, [fault])
        argument = self._editable(near)[0]
        start, stop = argument.flag.start, max(argument.stop, argument.flag.stop)
        written = name.replace("-", "_") if "_" in argument.flag.text.partition("=")[0] else name
        new = f"--{written}"
        if name not in SWITCHES:
            new += self._between(argument) + self._new(argument, value)
        line = self.text.rfind("\n", 0, start) + 1
        end = self.text.find("\n", stop)
        end = len(self.text) if end < 0 else end
        indent, behind = self.text[line:start], self.text[stop:end].strip()
        ending = "\r\n" if "\r\n" in self.text else "\n"
        if indent.strip() or behind not in ("", "\\"):
            return f"{self.text[:stop]} {new}{self.text[stop:]}"
        if behind:
            return f"{self.text[:stop]} \\{ending}{indent}{new}{self.text[stop:]}"
        if self.text[:line].rstrip("\r\n").endswith("\\"):
            return f"{self.text[:stop]} \\{ending}{indent}{new}{self.text[stop:]}"
        end -= self.text.endswith("\r", 0, end)
        return f"{self.text[:end]}{ending}{indent}{new}{self.text[end:]}"

    def removed(self, name: str) -> str:
        """Text without the first place of a flag, and without its line where that is empty then."""
        argument = self._editable(name)[0]
        start, stop = argument.flag.start, self._stop(argument)
        line = self.text.rfind("\n", 0, start) + 1
        end = self.text.find("\n", stop)
        end = len(self.text) if end < 0 else end
        before, behind = self.text[line:start], self.text[stop:end].strip()
        comment = behind.startswith("#") and not argument.flag.is_inner
        if before.strip() or not (behind in ("", "\\") or comment):
            return self._removed_in_line(line, start, stop)
        kept = self.text[:line]
        if not behind and (goes_on := re.search(r"[ \t]*\\(\r?\n)\Z", kept)):
            kept = kept[: goes_on.start()] + goes_on[1]
        return kept + self.text[end + 1 :]

    def _removed_in_line(self, line: int, start: int, stop: int) -> str:
        before, behind = self.text[:start], self.text[stop:]
        if self.text[line:start].strip() and (not behind or behind[0].isspace()):
            return before.rstrip(" \t") + behind
        return before + behind.lstrip(" \t")

    def _stop(self, argument: Argument) -> int:
        """End of a flag with its value or values."""
        if argument.name in SWITCHES:
            return argument.flag.stop
        stop = max(argument.stop, argument.flag.stop)
        if argument.name == "recompute-modules":
            for word in argument.more:
                if not is_module(word.text):
                    break
                stop = word.stop
        return stop

    def _editable(self, name: str) -> list[Argument]:
        """Places of a flag, none of them in a branch."""
        found = self._by_name[name]
        for argument in found:
            if argument.flag.is_conditional:
                fault = f"--{name} stands in a branch of the script (line {argument.line})"
                raise InputError(self.where, [f"{fault}; write it once, outside of branches"])
        return found

    def _between(self, argument: Argument) -> str:
        """Give what stands between a flag and its value."""
        if argument.stop == 0:
            return " "
        if "=" in argument.flag.text:
            return "="
        return self.text[argument.flag.stop : argument.start]

    def _new(self, argument: Argument, value: str) -> str:
        """Write a value beside a flag that is there."""
        if argument.flag.is_inner or not _NEEDS_QUOTES.search(value):
            return value
        return f'"{value}"'

    def _like(self, argument: Argument, value: str) -> str:
        """Write a value as the one before it is written."""
        old = self.text[argument.start : argument.stop]
        for quote in ('\\"', '"', "'"):
            if old.startswith(quote) and old.endswith(quote):
                return f"{quote}{value}{quote}"
        if escapes := _ESCAPES.search(old):
            return re.sub(r"[|*()]", lambda sign: escapes[0] + sign[0], value)
        bare = re.search(r"[|()]", old) is not None and not old.startswith("$")
        return value if bare else self._new(argument, value)
