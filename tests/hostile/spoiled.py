"""Hostile contents: what becomes of a good file when everything that can be wrong with it is."""

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from tests.hostile.readers import Reader

Case = tuple[str, bytes]
Place = TypeVar("Place")
# What may stand where something else must; text is a token of JSON, most of which YAML and Python take too.
ODD = (
    *("-1", "0", "-0", "-0.0", "1.5", "1e400", "-1e400", "NaN", "Infinity", "-Infinity", "nan", "inf"),
    *("1000000", "999999937", "1e15", "1e308", "5e-324", "9" * 400, "9" * 5000, "1_000", "0x1F", "010"),
    *(
        "null",
        "true",
        "[]",
        "{}",
        '""',
        '" "',
        '"x"',
        '"1"',
        '"NaN"',
        "[null]",
        "[[]]",
        '{"": null}',
        "[1, 2, 3]",
    ),
    *('"\\u0000"', '"\\u001b[31mred"', '"\\u202eltr"', '"<script>alert(1)</script>"', '"a\\nb"', '"\\ud800"'),
    *('"../../etc/passwd"', '"/dev/zero"', '"$(id)"', '"${X:-1}"', f'"{"n" * 3000}"', "[[[[[[[[[[]]]]]]]]]]"),
)
NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")


def encodings(good: bytes) -> Iterator[Case]:
    """Other encodings, and bytes that stand in no text."""
    text = good.decode("utf-8", "replace")
    yield "nothing", b""
    yield "blanks", b" \n\t\r\n" * 5
    yield "byte order mark alone", b"\xef\xbb\xbf"
    yield "byte order mark", b"\xef\xbb\xbf" + good
    yield "two byte order marks", b"\xef\xbb\xbf" * 2 + good
    yield "UTF-16", text.encode("utf-16")
    yield "UTF-16 without a mark", text.encode("utf-16-be")
    yield "UTF-32", text.encode("utf-32")
    yield "Latin-1", good.replace(b"e", b"\xe9", 3)
    yield "overlong UTF-8", b"\xc0\xaf" + good
    yield "surrogate as UTF-8", b"\xed\xa0\x80" + good
    yield "commas alone", b",\n,\n,\n"
    yield "NUL in front", b"\0" + good
    yield "NUL between", good[: len(good) // 2] + b"\0" + good[len(good) // 2 :]
    yield "NUL bytes", b"\0" * 4096
    yield "control characters", good[: len(good) // 3] + b"\x1b[2J\x07\x08\x7f" + good[len(good) // 3 :]
    yield "next-line characters", good.replace(b"\n", "\u2028\u0085".encode(), 2)
    yield "CRLF", good.replace(b"\n", b"\r\n")
    yield "CR", good.replace(b"\n", b"\r")
    yield "twice", good + good
    yield "a page of HTML", b"<!DOCTYPE html><html><body>404</body></html>"
    yield "a ZIP", b"PK\x03\x04" + bytes(range(256))
    yield "a broken gzip", b"\x1f\x8b\x08\x00" + bytes(range(256))
    yield (
        "a pickle",
        b"\x80\x04\x95\x15\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x94\x8c\x04eval\x94\x93\x94.",
    )


def truncated(good: bytes, pieces: int) -> Iterator[Case]:
    """Cut a file off at every k-th byte."""
    step = max(1, len(good) // pieces)
    yield from ((f"cut off at {at}", good[:at]) for at in range(1, len(good), step))


def with_numbers(good: bytes, odd: str) -> Case:
    """Every number replaced at once."""
    return f"every number {odd[:20]}", NUMBER.sub(lambda _: odd.encode(), good)


def replaced(reader: Reader, good: bytes, most: int) -> Iterator[tuple[str, list[bytes]]]:
    """Places of a file, with the file for each odd value there, without the place, and with it twice."""
    if reader.form in ("json", "yaml", "toml"):
        yield from _in_tree(reader.form, good, most)
    elif reader.form == "csv":
        yield from _in_cells(good, most)
    else:
        yield from _in_tokens(good, most)


def _spread(places: Iterable[Place], most: int) -> list[Place]:
    """At most so many places, evenly from all over a file."""
    all_of_them = list(places)
    return all_of_them[:: len(all_of_them) // most + 1]


def _in_tree(form: str, good: bytes, most: int) -> Iterator[tuple[str, list[bytes]]]:
    tree = tree_of(form, good)
    for path in _spread(paths(tree), most):
        whole = [dumped(form, tree, {path: odd}) for odd in ODD]
        whole.append(dumped(form, tree, {path: _GONE}))
        whole.append(dumped(form, tree, {path: _TWICE}))
        yield ".".join(map(str, path)) or "all", [text.encode("utf-8", "surrogatepass") for text in whole]


def _in_cells(good: bytes, most: int) -> Iterator[tuple[str, list[bytes]]]:
    lines = good.decode().splitlines()
    places = [(number, column) for number, line in enumerate(lines) for column in range(line.count(",") + 1)]
    for number, column in _spread(places, most):
        cells = lines[number].split(",")
        odd = [[*cells[:column], value, *cells[column + 1 :]] for value in ODD]
        odd += [cells[:column] + cells[column + 1 :], [*cells[: column + 1], *cells[column:]]]
        texts = ["\n".join([*lines[:number], ",".join(row), *lines[number + 1 :]]) for row in odd]
        yield f"line {number + 1} cell {column}", [text.encode() for text in texts]


_TOKEN = re.compile(rb'"[^"\n]*"|\'[^\'\n]*\'|[\w.]+|[^\w\s]')


def _in_tokens(good: bytes, most: int) -> Iterator[tuple[str, list[bytes]]]:
    for found in _spread(_TOKEN.finditer(good), most):
        before, behind = good[: found.start()], good[found.end() :]
        texts = [before + odd.encode() + behind for odd in ODD]
        yield f"byte {found.start()}", [*texts, before + behind, before + found[0] * 2 + behind]


_GONE, _TWICE = "\0gone", "\0twice"
Path = tuple[Any, ...]


def tree_of(form: str, good: bytes) -> Any:
    """Values of a good file."""
    text = good.decode()
    if form == "json":
        return json.loads(text)
    if form == "toml":
        import tomllib

        return tomllib.loads(text)
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(text)


def paths(tree: Any, at: Path = ()) -> Iterator[Path]:
    """Places in a tree, of long lists only the first and last."""
    yield at
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from paths(value, (*at, key))
    elif isinstance(tree, list):
        for index in sorted({*range(min(2, len(tree))), *range(max(0, len(tree) - 1), len(tree))}):
            yield from paths(tree[index], (*at, index))


def dumped(form: str, tree: Any, changes: dict[Path, str], at: Path = ()) -> str:
    """Text of a tree with other tokens at some places; JSON serves YAML too."""
    change = changes.get(at)
    if change is not None and change not in (_GONE, _TWICE):
        return change
    if isinstance(tree, dict):
        return _mapping(form, tree, changes, at)
    if isinstance(tree, list):
        entries = [
            dumped(form, value, changes, (*at, index))
            for index, value in enumerate(tree)
            for _ in range(_times(changes.get((*at, index))))
        ]
        return f"[{', '.join(entries)}]"
    return json.dumps(tree, default=str)


def _mapping(form: str, tree: dict[Any, Any], changes: dict[Path, str], at: Path) -> str:
    entries = [
        (key, dumped(form, value, changes, (*at, key)))
        for key, value in tree.items()
        for _ in range(_times(changes.get((*at, key))))
    ]
    if form == "yaml" and entries and not any(isinstance(step, int) for step in at):
        start = "\n" + "  " * len(at)  # a key a line, as people write it
        return "".join(f"{start}{_key(key)}: {value}" for key, value in entries)
    named = [(json.dumps(str(key)), value) for key, value in entries]
    if form != "toml":
        return "{" + ", ".join(f"{key}: {value}" for key, value in named) + "}"
    if at:
        return "{" + ", ".join(f"{key} = {value}" for key, value in named) + "}"
    return "\n".join(f"{key} = {value}" for key, value in named) + "\n"


def _key(key: object) -> str:
    text = str(key)
    return text if re.fullmatch(r"[\w-]+", text) else json.dumps(text)


def _times(change: str | None) -> int:
    return {_GONE: 0, _TWICE: 2}.get(change or "", 1)


MILLION = 10**6
DEEP = 10**4


def heavy(reader: Reader) -> Iterator[Case]:
    """Files that are large, deep, or become so when they are read."""
    good = reader.good[0]
    makers = {"json": _heavy_json, "yaml": _heavy_yaml, "toml": _heavy_toml, "python": _heavy_python}
    make = makers.get(reader.form, _heavy_lines)
    if reader.form == "gzip":
        yield from (
            (label, gzip.compress(text, 1)) for label, text in _heavy_json(gzip.decompress(good), 100_000)
        )
        yield "gzipped blanks", gzip.compress(b" " * 2**28, 1)
        yield "gzipped brackets", gzip.compress(b"[" * 2**26, 1)
    elif "trace" in reader.name:  # which may be of any size, and takes its time
        yield from _heavy_json(good, 100_000)
    else:
        yield from make(good)
    yield "a number of 10 MB", NUMBER.sub(b"9" * 10**7, good, count=1)
    yield "a fraction of 10 MB", NUMBER.sub(b"0." + b"3" * 10**7, good, count=1)
    yield "every number a million", NUMBER.sub(b"1000000", good)
    yield "every number ten thousand", NUMBER.sub(b"10000", good)
    yield "every number 65536", NUMBER.sub(b"65536", good)
    yield "64 MB of blanks", b" " * 2**26
    yield "64 MB of line ends", b"\n" * 2**26
    yield "a line of 60 MB", b"x" * 60_000_000
    yield "a line of 1 MB", b"x" * 1_000_000
    yield "blanks before", b" " * 900_000 + good
    yield "line ends before", b"\n" * 900_000 + good


def _heavy_json(good: bytes, most: int = MILLION) -> Iterator[Case]:
    tree = json.loads(good)
    yield "nested lists", b"[" * DEEP + b"]" * DEEP
    yield "nested lists, open", b"[" * DEEP * 100
    yield "nested objects", b'{"a":' * DEEP + b"1" + b"}" * DEEP
    yield "a million empty lists", b"[" + b"[]," * 20 * MILLION + b"1]"
    yield "a million empty objects", b"[" + b"{}," * 20 * MILLION + b"1]"
    yield "a million NaN", b"[" + b"NaN," * MILLION + b"1]"
    yield "a long key before a long list", b'{"' + b"k" * MILLION + b'": [' + b"1," * 100_000 + b"1]}"
    yield "a million keys", b"{" + b",".join(b'"k%d":1' % i for i in range(MILLION)) + b"}"
    yield "a key a million times", b"{" + b'"k":1,' * MILLION + b'"k":1}'
    for path in paths(tree):
        value = tree
        for step in path:
            value = value[step]
        name = ".".join(map(str, path)) or "all"
        if isinstance(value, list) and value:
            entry = json.dumps(value[0])
            many = min(most, 60_000_000 // (len(entry) + 1))
            text = dumped("json", tree, {path: "[" + f"{entry}," * many + entry + "]"})
            yield f"{many} entries in {name}", text.encode()
            text = dumped("json", tree, {path: "[" + f"{entry}," * 20_000 + entry + "]"})
            yield f"20000 entries in {name}", text.encode()
        elif isinstance(value, dict) and value:
            entry = json.dumps(next(iter(value.values())))
            many = min(MILLION, 60_000_000 // (len(entry) + 12))
            text = ",".join(f'"k{i}":{entry}' for i in range(many))
            yield f"{many} keys in {name}", dumped("json", tree, {path: "{" + text + "}"}).encode()
    for deep in (DEEP, 90):
        nested = "[" * deep + "]" * deep
        for path in list(paths(tree))[:12]:
            yield f"{deep} levels in {path}", dumped("json", tree, {path: nested}).encode()


def _heavy_yaml(good: bytes) -> Iterator[Case]:
    yield "nested lists", b"[" * DEEP + b"]" * DEEP
    yield "nested lists, open", b"[" * DEEP * 50
    yield "nested mappings", b"{a: " * DEEP + b"}" * DEEP
    yield "nested dashes", b"- " * DEEP + b"1"
    yield "nested blocks", b"".join(b" " * i + b"a:\n" for i in range(1300))
    yield (
        "an alias bomb",
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9)) for i in range(20)
        ),
    )
    yield (
        "an alias bomb of keys",
        b"a: &a {k: 1}\n"
        + b"".join(b"%c: &%c {p: *%c, q: *%c}\n" % (98 + i, 98 + i, 97 + i, 97 + i) for i in range(24)),
    )
    yield "a list that holds itself", b"a: &a [*a]\n"
    yield "a mapping that holds itself", b"&a {a: *a}\n"
    yield "a mapping that is its own key", b"&a {*a : 1}\n"
    yield "merge keys", b"a: &a {x: 1}\nb: &b {<<: *a}\n<<: *b\n"
    yield "tags", b"a: !!python/object/apply:os.system ['echo spoiled']\nb: !!binary aGk=\nc: !x 1\n"
    yield "a million bytes of entries", b"[" + b"1," * 500_000 + b"]"
    yield "a million bytes of lines", b"- 1\n" * 250_000
    yield "many keys", b"".join(b"k%d: 1\n" % i for i in range(90_000))
    yield "many documents", b"--- a\n" * 100_000
    yield "many anchors", b"".join(b"k%d: &a%d x\n" % (i, i) for i in range(50_000))
    yield "a long key before a long list", b"a: {" + b"k" * 1000 + b": [" + b"1," * 90_000 + b"]}"
    yield "many sixties", b"a: 1" + b":59" * 300_000
    yield "many sixties and a fraction", b"a: 1" + b":59" * 300_000 + b".5"
    yield "a long hexadecimal number", b"a: 0x" + b"f" * 900_000
    yield "long text", b'a: "' + b"\\n" * 400_000 + b'"'
    yield "long plain text", b"a: " + b"x " * 400_000
    yield "many comments", b"#x\n" * 300_000 + b"a: 1"
    yield "many directives", b"%TAG ! a\n" * 50_000 + b"---\na: 1"
    yield "a long dated number", b"a: 2001-01-01" + b"1" * 900_000
    tree = tree_of("yaml", good)
    for path in list(paths(tree))[:40]:
        value = tree
        for step in path:
            value = value[step]
        if isinstance(value, list) and value:
            entry = json.dumps(value[0])
            for many in (20_000, 900_000 // (len(entry) + 1)):
                text = dumped("yaml", tree, {path: "[" + f"{entry}," * many + entry + "]"})
                yield f"{many} entries in {path}", text.encode()
        yield f"45 levels in {path}", dumped("yaml", tree, {path: "[" * 45 + "]" * 45}).encode()


def _heavy_toml(good: bytes) -> Iterator[Case]:
    yield "nested lists", b"a = " + b"[" * DEEP + b"]" * DEEP
    yield "nested inline tables", b"a = " + b"{a = " * DEEP + b"1" + b"}" * DEEP
    yield "a deep table", b"[" + b".".join([b"a"] * DEEP) + b"]\nx = 1\n" + good
    yield "a deep key", b".".join([b"a"] * DEEP) + b" = 1\n" + good
    yield "deep keys", b"".join(b".".join([b"a"] * 500) + b".b%d = 1\n" % i for i in range(900))
    yield "deep tables", b"".join(b"[" + b".".join([b"a"] * 500) + b".b%d]\n" % i for i in range(900))
    yield "many keys", b"".join(b"k%d = 1\n" % i for i in range(90_000)) + good
    yield "many tables", b"".join(b"[t%d]\n" % i for i in range(90_000)) + good
    yield "many arrays of tables", good + b"[[t]]\n" * 150_000
    yield "a long list", b"a = [" + b"1," * 450_000 + b"]\n" + good
    yield "many parts", good.replace(b"[[", b"[" + b'["layers.1"], ' * 60_000 + b"[")
    yield "long text", b'a = "' + b"\\n" * 400_000 + b'"\n' + good
    yield "long binary number", b"a = 0b" + b"1" * 900_000 + b"\n" + good


def _heavy_python(good: bytes) -> Iterator[Case]:
    for label, opening, closing in (
        ("brackets", "[", "]"),
        ("parentheses", "(", ")"),
        ("calls", "f(", ")"),
        ("minuses", "-", "1"),
        ("nots", "not ", "1"),
        ("lambdas", "lambda: ", "1"),
        ("dicts", "{1: ", "}"),
        ("conditions", "1 if 1 else ", "1"),
        ("sums", "1+", ""),
        ("joined lists", "[1]+", ""),
        ("repeated lists", "[1]*1*", ""),
        ("attributes", "a.", "b"),
        ("names of names", "a=", "1"),
    ):
        for deep in (90, 900, DEEP):
            tail = "1" if closing == "" else closing * deep if closing in "])}" else closing
            yield f"{deep} nested {label}", f"x = {opening * deep}{tail}\n".encode() + good
            text = f"PARTS = {opening * deep}{tail}\n".encode()
            yield f"{deep} nested {label} in a setting", good + text
    yield "many elifs", b"if a: pass\n" + b"elif a: pass\n" * DEEP + good
    yield "deep blocks", b"".join(b" " * i + b"if a:\n" for i in range(99)) + b" " * 99 + b"x = 1\n"
    yield "many lines", b"x = 1\n" * 150_000 + good
    yield (
        "many functions",
        good + b"".join(b"def f%d(): f%d(); f%d()\n" % (i, i + 1, i + 1) for i in range(60)),
    )
    yield "a long hexadecimal number", b"PARTS = 0x" + b"f" * 900_000 + b"\n"
    yield (
        "a range without an end",
        b"PARTS = [i for i in range(10**9)]\nparts = [i for i in range(1000000000)]\n",
    )
    yield "a list repeated", b"parts = [1] * 100000 * 100000\nPARTS = [] * " + b"9" * 30 + b"\n"
    yield (
        "a list repeated and named",
        b"a = [1] * 90000\nb = a + a\nc = b + b\nd = c + c\nparts = d + d + d + d\n",
    )
    yield "names in a circle", b"a = b\nb = a\nparts = a\nPIPELINE_STAGES = a\n"
    yield (
        "names that double",
        b"".join(b"a%d = [*a%d, *a%d]\n" % (i + 1, i, i) for i in range(40)) + b"parts = a40\n",
    )
    yield "text of long numbers", b"a = 0x" + b"f" * 20_000 + b"\nparts = f'{a}'\nPARTS = [f'{a}']\n"


def _heavy_lines(good: bytes) -> Iterator[Case]:
    lines = good.splitlines(keepends=True)
    for number, line in enumerate(lines[:6] + lines[-2:]):
        for many in (20_000, min(MILLION, 60_000_000 // len(line))):
            yield f"line {number} {many} times", b"".join([*lines[:number], line * many, *lines[number:]])
    yield "commas", good + b"," * 60_000_000
    yield "lines of commas", good + b",\n" * 1_000_000
    yield "quotes", good + b'"' * 900_001
    yield "fewer quotes", good + b'"' * 200_001
    yield "an open quote", good + b'"' + b"x,\n" * 300_000
    yield "dollars", good + b"${" * 100_000
    yield "dollars that close", good + b"${a:-" * 20_000 + b"}" * 20_000
    yield "variables that double", b"A=x\n" + b'A="$A$A$A"\n' * 1000 + good + b" --num-layers $A\n"
    yield "many strings", good + b"'--a \"--b c\"' " * 60_000
    yield "many flags", good + b"--num-layers 4 " * 60_000
    yield "backslashes", good + b"\\" * 900_000
    yield "a long row of operators", good + b"0F0," * 15_000_000
    yield "different operators", good + b",".join(b"%dF%d" % (i % 64, i) for i in range(MILLION))
    yield (
        "numbered lines",
        b"".join([lines[0]] + [lines[-1].replace(b"0", b"%d" % i, 1) for i in range(200_000)]),
    )
