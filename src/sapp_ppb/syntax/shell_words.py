"""
Words of a shell script or a list of arguments, each with its place in the text.

As much of the shell as launch scripts use: quotes, comments, lines that go on, arrays,
``NAME=value``, strings that hold arguments, and branches.  Variables stay as they are
written.  A quote that is never closed counts as a character, as it does in a here-document.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sapp_ppb.errors import InputError

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_OPEN_BRANCH = frozenset({"if", "case", "for", "while", "until", "select"})
_CLOSE_BRANCH = frozenset({"fi", "esac", "done"})
_BEFORE_COMMANDS = frozenset({"then", "else", "do", "{", "&&", "||", "|", "export"})
_CLOSING = {"${": "}", "$(": ")", "`": "`"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """
    One word.

    Attributes
    ----------
    text
        What it says, without quotes; of an assignment its value.
    start, stop
        Where it stands, quotes included.
    variable
        Name that is assigned, or None.
    is_literal
        Whether it is in single quotes, in which ``$`` means nothing.
    is_inner
        Whether it stands in a longer string.
    is_conditional
        Whether it stands in a branch or loop, or hangs on a command before it.
    """

    text: str
    start: int
    stop: int
    variable: str | None = None
    is_literal: bool = False
    is_inner: bool = False
    is_conditional: bool = False


def shell_words(text: str, where: str) -> list[Word]:
    r"""
    Words of a text, those of strings that hold arguments after the string itself.

    Raises
    ------
    InputError
        If ``${``, ``$(`` or a backtick is not closed.

    Examples
    --------
    >>> [word.text for word in shell_words("ARGS=(--a 1 \\\n  --b 'x y')  # --c 3", "run.sh")]
    ['--a', '1', '--b', 'x y']
    >>> [(word.variable, word.text) for word in shell_words('OPT=" --a 1 "', "run.sh")]
    [('OPT', ' --a 1 '), (None, '--a'), (None, '1')]
    """
    return list(_Scanner(text, where).words())


class _Scanner:
    """Goes through a text once."""

    def __init__(self, text: str, where: str, start: int = 0, stop: int | None = None) -> None:
        self.text, self.where = text, where
        self.at, self.stop = start, len(text) if stop is None else stop
        self.is_inner = stop is not None
        self.in_array = False
        self.depth = 0
        self.previous = "\n"
        self.strings: list[tuple[int, int]] = []
        self.quotes = ""

    def words(self) -> Iterator[Word]:
        while self._skip():
            found = self._word()
            if found is None:
                continue
            self._count_branches(found.text if found.variable is None else "")
            yield found
            for start, stop in self.strings:
                inner = self.text[start:stop]
                if "--" in inner and any(map(str.isspace, inner)):
                    yield from self._inner(start, stop, is_conditional=found.is_conditional)
            self.previous = found.text or "''"

    def _inner(self, start: int, stop: int, *, is_conditional: bool) -> Iterator[Word]:
        for word in _Scanner(self.text, self.where, start, stop).words():
            yield Word(
                text=word.text,
                start=word.start,
                stop=word.stop,
                variable=word.variable,
                is_literal=word.is_literal,
                is_inner=True,
                is_conditional=is_conditional,
            )

    def _skip(self) -> bool:
        """Go to the next word; False at the end."""
        while self.at < self.stop:
            character = self.text[self.at]
            if character.isspace() or character == ";":
                self.previous = "\n" if character in "\n;" else self.previous
                self.at += 1
            elif goes_on := self._line_end():
                self.at += goes_on
            elif character == "#" and not self.is_inner:
                end = self.text.find("\n", self.at)
                self.at = self.stop if end < 0 else end
            elif character == ")" and self.in_array:
                self.in_array, self.at = False, self.at + 1
            else:
                return True
        return False

    def _line_end(self) -> int:
        """Length of a backslash with the line end behind it; 0 where there is none."""
        for end in ("\\\n", "\\\r\n"):
            if self.text.startswith(end, self.at):
                return len(end)
        return 0

    def _word(self) -> Word | None:
        """Read a word; None for the opening of an array."""
        start, variable = self.at, None
        match = _ASSIGNMENT.match(self.text, start, self.stop)
        if match and not self.in_array:
            self.at = match.end()
            if self.text.startswith("(", self.at):
                self.in_array, self.at = True, self.at + 1
                return None
            variable = match[1]
        self.strings, self.quotes, pieces = [], "", []
        while self.at < self.stop and not self._ends_word():
            pieces.append(self._piece())
        value_start = start if variable is None else match.end() if match else start
        whole = self.text[value_start : self.at]
        return Word(
            text="".join(pieces),
            start=start,
            stop=self.at,
            variable=variable,
            is_literal=whole.startswith("'") and self.quotes == "'",
            is_inner=self.is_inner,
            is_conditional=self.depth > 0 or (variable is not None and self.previous in ("&&", "||")),
        )

    def _ends_word(self) -> bool:
        character = self.text[self.at]
        if character.isspace() or character == ";":
            return True
        return character == ")" and self.in_array

    def _piece(self) -> str:
        """Next characters of a word, as they are meant."""
        character = self.text[self.at]
        if self.is_inner and self.text.startswith('\\"', self.at):
            return self._quoted('\\"')
        if length := self._line_end():
            self.at += length
            return ""
        if character == "\\" and self.at + 1 < self.stop:
            self.at += 2
            return self.text[self.at - 1]
        if character in "'\"":
            return self._quoted(character)
        for opening in _CLOSING:
            if self.text.startswith(opening, self.at):
                return self._substitution(opening)
        self.at += 1
        return character

    def _quoted(self, quote: str) -> str:
        """Inside of a quoted string, or the quote itself where nothing closes it."""
        start = self.at + len(quote)
        end = self._closing(quote, start)
        if end < 0:
            self.at = start
            return quote
        self.at = end + len(quote)
        self.quotes += quote[-1]
        self.strings.append((start, end))
        inside = self.text[start:end]
        if quote != '"':
            return inside
        return re.sub(r'\\(\r?\n|["\\$`])', lambda match: match[1].strip("\r\n"), inside)

    def _closing(self, quote: str, at: int) -> int:
        if quote != '"':
            return self.text.find(quote, at, self.stop)
        while at < self.stop:
            if self.text[at] == quote:
                return at
            at += 2 if self.text[at] == "\\" else 1
        return -1

    def _substitution(self, opening: str) -> str:
        """Variable or command that stands for its value, as it is written."""
        start, closing = self.at, _CLOSING[opening]
        at, depth = start + len(opening), 1
        while at < self.stop and depth:
            character = self.text[at]
            if character == closing:
                depth -= 1
            elif character == opening[-1]:
                depth += 1
            at += 1
        if depth:
            line = self.text.count("\n", 0, start) + 1
            raise InputError(self.where, [f"{opening} on line {line} is not closed; close it"])
        self.at = at
        return self.text[start:at]

    def _count_branches(self, word: str) -> None:
        if self.is_inner or (self.previous != "\n" and self.previous not in _BEFORE_COMMANDS):
            return
        if word in _OPEN_BRANCH:
            self.depth += 1
        elif word in _CLOSE_BRANCH:
            self.depth = max(0, self.depth - 1)
