"""Random changes to files: of bytes, of tokens, of lines, and of the trees of JSON and YAML."""

import gzip
import json
from random import Random
from typing import Any

from tests.hostile.readers import Reader
from tests.hostile.spoiled import _TOKEN, ODD

_PIECES = (
    *(
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\n",
        b"\t",
        b'"',
        b"'",
        b",",
        b"[",
        b"]",
        b"{",
        b"}",
        b":",
        b"-",
        b"#",
    ),
    *(b"&a ", b"*a", b"!!x ", b"<<: ", b"${X:-", b"$(", b"`", b"\\", b" -- ", b"*", b"|", b"=", b"(", b")"),
)


def mutated(reader: Reader, content: bytes, corpus: list[bytes], rng: Random) -> bytes:
    """Change a content, with pieces of others."""
    if reader.form == "gzip" and rng.random() < 0.8:
        return gzip.compress(
            _changed("json", _unpacked(content), list(map(_unpacked, corpus[-20:])), rng), 1, mtime=0
        )
    return _changed(reader.form, content, corpus, rng)


def _unpacked(content: bytes) -> bytes:
    try:
        return gzip.decompress(content)[: 2**20]
    except (OSError, EOFError, ValueError, gzip.zlib.error):  # type: ignore[attr-defined]
        return content


def _changed(form: str, content: bytes, corpus: list[bytes], rng: Random) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        ways = [_byte, _token, _token, _line, _splice]
        if form == "json":
            ways += [_tree, _tree, _tree]
        content = rng.choice(ways)(content, corpus, rng)
    return content[: 2**20]


def _byte(content: bytes, corpus: list[bytes], rng: Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    length = rng.choice((0, 0, 1, 1, 2, 8, 64))
    new = rng.choice((b"", rng.choice(_PIECES), bytes([rng.randrange(256)]), content[at : at + length] * 2))
    return content[:at] + new + content[at + length :]


def _token(content: bytes, corpus: list[bytes], rng: Random) -> bytes:
    found = list(_TOKEN.finditer(content[: 2**16]))
    if not found:
        return _byte(content, corpus, rng)
    here, there = rng.choice(found), rng.choice(found)
    odd = rng.choice(ODD).encode("utf-8", "surrogatepass")
    new = rng.choice((odd, odd, there[0], b"", here[0] * 2, odd.strip(b'"')))
    return content[: here.start()] + new + content[here.end() :]


def _line(content: bytes, corpus: list[bytes], rng: Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if not lines:
        return _byte(content, corpus, rng)
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    ways = (
        [*lines[:at], *lines[at + 1 :]],
        [*lines[: at + 1], *lines[at:]],
        [*lines[:at], lines[other], *lines[at + 1 :]],
        [*lines[:at], lines[at] * rng.choice((3, 100)), *lines[at + 1 :]],
        lines[:at],
    )
    return b"".join(rng.choice(ways))


def _splice(content: bytes, corpus: list[bytes], rng: Random) -> bytes:
    other = rng.choice(corpus)
    at, start = rng.randrange(len(content) + 1), rng.randrange(len(other) + 1)
    end = start + rng.choice((4, 32, 256, len(other)))
    return content[:at] + other[start:end] + content[at + rng.choice((0, 4, 32, len(content))) :]


def _tree(content: bytes, corpus: list[bytes], rng: Random) -> bytes:
    """Replace, delete, double or swap parts of a JSON document."""
    try:
        tree = json.loads(content)
        other = json.loads(rng.choice(corpus))
    except (ValueError, RecursionError):
        return _token(content, corpus, rng)
    holders = _holders(tree)
    if not holders:
        return rng.choice(ODD).encode("utf-8", "surrogatepass")
    holder, key = rng.choice(holders)
    way = rng.randrange(5)
    if way == 0:
        holder[key] = _odd(rng)
    elif way == 1:
        del holder[key]
    elif way == 2:
        from_holder, from_key = rng.choice(holders)
        holder[key] = json.loads(json.dumps(from_holder[from_key]))
    elif way == 3 and isinstance(holder, list):
        holder[key:key] = [holder[key]] * rng.choice((1, 2, 50))
    else:
        theirs = _holders(other) or [([other], 0)]
        from_holder, from_key = rng.choice(theirs)
        holder[key] = from_holder[from_key]
    return json.dumps(tree).encode()


def _odd(rng: Random) -> Any:
    try:
        return json.loads(rng.choice(ODD))
    except ValueError:
        return rng.choice((0.5, 2, 3, 7, 16, 64, 4096, "none", "full", "1f1b", "zbv", "custom"))


def _holders(tree: Any) -> list[tuple[Any, Any]]:
    """Every place of a tree as what holds it and its key there."""
    found: list[tuple[Any, Any]] = []
    open_: list[Any] = [tree]
    while open_ and len(found) < 5000:
        item = open_.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        for key in keys:
            found.append((item, key))
            if isinstance(item[key], dict | list):
                open_.append(item[key])
    return found
