"""
Arguments that a launch script or a list gives, variables put in where the text sets them.

``$X`` and ``${X}`` are what the text set X to last, ``${X:-d}`` is d where it sets nothing;
what the surroundings decide stays unknown, and so does what stands in a branch.
"""

import re
from dataclasses import dataclass
from itertools import takewhile

from sapp_ppb.costs.checks import shown
from sapp_ppb.syntax.shell_words import Word, shell_words

_NAME = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_BRACED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[@*]\])?(?::?[-=](.*))?", re.DOTALL)
_DEEPEST = 20
_LONGEST = 10_000
_MOST_WORDS = 32
_HOLDS_FLAGS = re.compile(r"ARG|OPT|FLAG|PARAM", re.IGNORECASE)
_HOLDS_MANY = re.compile(r"(ARGS|OPTS|OPTIONS|FLAGS|PARAMS)$", re.IGNORECASE)
Variables = dict[str, "str | None"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """
    A flag with what stands behind it.

    Attributes
    ----------
    name
        Without dashes in front, and with dashes for underscores.
    value
        Text behind it, variables put in; None when that is not known or nothing stands there.
    unknown
        Why the value is not known; empty when it is, or when nothing stands there.
    line
        Line of the flag, counted from 1.
    more
        Words behind the value, up to the next flag.
    flag
        Word that is the flag.
    start, stop
        Place of the value, quotes included; both 0 where nothing stands there.
    """

    name: str
    value: str | None
    unknown: str
    line: int
    flag: Word
    more: tuple[Word, ...] = ()
    start: int = 0
    stop: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """
    What a text gives.

    Attributes
    ----------
    found
        Arguments in the order of the text.
    unread
        Variables that seem to hold more arguments and are set elsewhere.
    """

    found: tuple[Argument, ...]
    unread: tuple[str, ...]


def shell_arguments(text: str, where: str) -> Arguments:
    """
    Arguments of a text.

    Raises
    ------
    InputError
        If ``${``, ``$(`` or a backtick is not closed.

    Examples
    --------
    >>> script = 'PP=4; run --pp_size ${PP} --layers=${N:-12} --batch $B --fp8 --gap "3 4"'
    >>> [(a.name, a.value) for a in shell_arguments(script, "run.sh").found]
    [('pp-size', '4'), ('layers', '12'), ('batch', None), ('fp8', None), ('gap', '3 4')]
    """
    words, variables = shell_words(text, where), Variables()
    found: list[Argument] = []
    unread: dict[str, None] = {}
    lines = _Lines(text)
    for index, word in enumerate(words):
        if word.variable is not None:
            value = None if word.is_conditional else expand(_text(word), variables)[0]
            variables[word.variable] = value
        elif _is_flag(word):
            behind = _behind(words[index + 1 : index + 1 + _MOST_WORDS])
            found.append(_argument(word, behind, variables, lines.line_of(word.start)))
        elif name := _held_elsewhere(word, words[index - 1] if index else None, variables):
            unread[name] = None
    arrays = set(re.findall(r"(?<!\w)(\w+)\+?=\(", text))
    return Arguments(found=tuple(found), unread=tuple(name for name in unread if name not in arrays))


def _held_elsewhere(word: Word, before: Word | None, variables: Variables) -> str | None:
    """Name of a variable that seems to hold arguments, rather than be one, and that nothing has set."""
    match = re.fullmatch(r"\$\{?(\w+)(\[[@*]\])?\}?", word.text)
    if match is None or match[1] in variables:
        return None
    # Behind a flag it may be its value; behind a switch it is not.
    many = _HOLDS_MANY if before is not None and _is_flag(before) else _HOLDS_FLAGS
    return match[1] if match[2] or many.search(match[1]) else None


def _is_flag(word: Word) -> bool:
    return word.variable is None and re.match(r"--[A-Za-z]", word.text) is not None


def _behind(words: list[Word]) -> list[Word]:
    """Words before the next flag or assignment."""
    return list(takewhile(lambda word: word.variable is None and not _is_flag(word), words))


def _text(word: Word) -> str:
    """Text of a word in which ``$`` means a variable."""
    return word.text.replace("$", "\0") if word.is_literal else word.text


def _argument(word: Word, behind: list[Word], variables: Variables, line: int) -> Argument:
    name, equals, text = word.text.partition("=")
    start = stop = 0
    if equals:
        start, stop = word.start + len(name) + 1, word.stop
        text = text.replace("$", "\0") if word.is_literal else text
    elif behind:
        start, stop, text = behind[0].start, behind[0].stop, _text(behind[0])
    value, unknown = expand(text, variables) if stop else (None, "")
    if word.is_conditional:
        value, unknown = None, f"stands in a branch of the script (line {line})"
    return Argument(
        name=name.lstrip("-").replace("_", "-"),
        value=value,
        unknown=unknown,
        line=line,
        flag=word,
        more=tuple(behind[not equals :]),
        start=start,
        stop=stop,
    )


class _Lines:
    """Line of places that come in ascending order."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.line = text, 0, 1

    def line_of(self, place: int) -> int:
        if place > self.at:
            self.line += self.text.count("\n", self.at, place)
            self.at = place
        return self.line


def expand(text: str, variables: Variables, depth: int = 0) -> tuple[str | None, str]:
    """
    Put variables into a text.

    Returns
    -------
    tuple
        The text, or None and what is not known.

    Examples
    --------
    >>> expand("${A:-${B:-7}}|$C", {"C": "x"})
    ('7|x', '')
    >>> expand("$(nproc)", {})
    (None, 'is $(nproc), which the file does not set')
    """
    pieces, at, length = [], 0, len(text)
    while length <= _LONGEST and (dollar := _next(text, at)) >= 0:
        pieces.append(text[at:dollar])
        stop = _end(text, dollar)
        value = _value(text[dollar:stop], variables, depth)
        if value is None:
            return None, f"is {shown(text[dollar:stop])[1:-1]}, which the file does not set"
        pieces.append(value)
        length += len(value)
        at = stop
    if length > _LONGEST:
        return None, f"is longer than {_LONGEST} characters"
    return "".join([*pieces, text[at:]]).replace("\0", "$"), ""


def _next(text: str, at: int) -> int:
    """Place of the next ``$`` or backtick; -1 where there is none."""
    found = [place for sign in "$`" if (place := text.find(sign, at)) >= 0]
    return min(found, default=-1)


def _end(text: str, start: int) -> int:
    """End of the substitution that begins at a place."""
    if match := _NAME.match(text, start):
        return match.end()
    pair = {"${": "{}", "$(": "()"}.get(text[start : start + 2])
    if pair is None:
        end = text.find("`", start + 1) if text[start] == "`" else start + 1
        return len(text) if end < 0 else end + 1
    depth = 0
    for at in range(start + 1, len(text)):
        depth += (text[at] == pair[0]) - (text[at] == pair[1])
        if depth == 0:
            return at + 1
    return len(text)


def _value(piece: str, variables: Variables, depth: int) -> str | None:
    """Value of ``$X`` or ``${X...}``; None when it is not known."""
    braced = _BRACED.fullmatch(piece[2:-1]) if piece.startswith("${") else None
    match = braced or _NAME.fullmatch(piece)
    if match is None or depth > _DEEPEST:
        return None
    if match[1] in variables:
        return variables[match[1]]
    default = braced[2] if braced else None
    return None if default is None else expand(_unquoted(default), variables, depth + 1)[0]


def _unquoted(text: str) -> str:
    """Text without the quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
