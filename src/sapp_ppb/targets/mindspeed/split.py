"""
How MindSpeed splits decoders over cells, where it does not leave that to Megatron-LM.

``--num-layer-list 7,8,8,7`` has a number a stage, ``--pipeline-num-transformer-layers
[[0,1],[1,1]*4,[1,0]]`` a row a stage with a number a chunk, where ``*n`` repeats what is
before it; ``--noop-layers 0,47`` leaves places of an even split empty; and
``--schedules-method dualpipev`` puts two equal chunks of every stage on a V.  Source:
``unaligned_pineline_feature.py``, ``noop_layers.py`` and ``dualpipev_feature.py`` in
``mindspeed/features_manager/pipeline_parallel``, ``dualpipev_chunks.py`` in
``mindspeed/core/pipeline_parallel/dualpipev``, ``docs/en/features/dualpipev.md``, all of
MindSpeed; ``num_layer_list.py`` in ``mindspeed_llm/features_manager`` of MindSpeed-LLM.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from sapp_ppb.costs.checks import LARGEST_COUNT, shown
from sapp_ppb.errors import InputError
from sapp_ppb.targets.config import BrokenRule
from sapp_ppb.targets.megatron.layout import Cells
from sapp_ppb.targets.megatron.split import CHUNKS, PER_CHUNK, Split, SplitFlags, split_of
from sapp_ppb.targets.mindspeed.flags import DUALPIPEV, LIST, METHOD, NOOPS, ROWS

# Layers of each chunk of each stage, indexed [stage][chunk].
Rows = tuple[tuple[int, ...], ...]
_ROW = re.compile(r"\[([0-9*,]*)\](?:\*([0-9]{1,7}))?(?:,|$)")
_NUMBER = re.compile(r"([0-9]{1,7})(?:\*([0-9]{1,7}))?(?:,|$)")


def parse_list(text: str, name: str) -> tuple[int, ...]:
    """
    Whole numbers that commas divide.

    Raises
    ------
    InputError
        Where the text is something else.

    Examples
    --------
    >>> parse_list("7,8,8,7", LIST)
    (7, 8, 8, 7)
    """
    words = text.replace(" ", "").split(",")
    if not all(re.fullmatch(r"[0-9]{1,7}", word) for word in words):
        raise InputError(f"--{name}", [f"must be whole numbers with commas, such as 7,8,8,7 ({shown(text)})"])
    return tuple(map(int, words))


def parse_rows(text: str) -> Rows:
    """
    Rows of ``--pipeline-num-transformer-layers``, repetitions written out.

    MindSpeed skips what it does not know in such a text; here that is a fault.

    Raises
    ------
    InputError
        Where the text is no list of lists of whole numbers, or stands for more than a million.

    Examples
    --------
    >>> parse_rows("[[0,1],[1,1]*2,[1,0]]")
    ((0, 1), (1, 1), (1, 1), (1, 0))
    >>> parse_rows("[[1],[2*2]]")
    ((1,), (2, 2))
    """
    bare = re.sub(r"\s", "", text)
    inner = bare[1:-1] if bare.startswith("[[") and bare.endswith("]") else ""
    found = _repeated(_ROW, inner)
    rows = None if found is None else [(_repeated(_NUMBER, row), times) for row, times in found]
    if not rows or any(numbers is None for numbers, _ in rows):
        fault = f"must be a list of lists of whole numbers, such as [[0,1],[1,1]*4,[1,0]] ({shown(text)})"
        raise InputError(f"--{ROWS}", [fault])
    lengths = [sum(each for _, each in numbers or ()) * times for numbers, times in rows]
    if sum(lengths) > LARGEST_COUNT or sum(times for _, times in rows) > LARGEST_COUNT:
        fault = f"{shown(text)} stands for more than {LARGEST_COUNT} numbers"
        raise InputError(f"--{ROWS}", [fault])
    return tuple(
        tuple(int(number) for number, each in numbers or () for _ in range(each))
        for numbers, times in rows
        for _ in range(times)
    )


def _repeated(pattern: re.Pattern[str], text: str) -> list[tuple[str, int]] | None:
    """Pieces of a text and how often each is repeated; None where the text has other pieces."""
    matches = list(pattern.finditer(text))
    ends = [0, *(match.end() for match in matches)]
    if [match.start() for match in matches] != ends[:-1] or ends[-1] != len(text):
        return None
    return [(match[1], 1 if match[2] is None else int(match[2])) for match in matches]


def rows_text(rows: Rows) -> str:
    """
    Text of rows, runs of equal rows folded.

    Examples
    --------
    >>> rows_text(((0, 1), (1, 1), (1, 1), (1, 0)))
    '[[0,1],[1,1]*2,[1,0]]'
    """
    runs = [(row, len(list(run))) for row, run in groupby(rows)]
    texts = [(f"[{','.join(map(str, row))}]", count) for row, count in runs]
    return "[" + ",".join(text if count == 1 else f"{text}*{count}" for text, count in texts) + "]"


def _broken(name: str, rule: str, found: object, mend: str = "") -> BrokenRule:
    return BrokenRule(key=f"--{name.removeprefix('--')}", rule=rule, found=str(found), mend=mend)


def _cells(layers: Sequence[int], mtp_layers: int) -> Cells:
    """Letters of each cell of numbers along the chain; multi-token prediction comes last."""
    cells = ["t" * number for number in layers]
    cells[0] = "E" + cells[0]
    cells[-1] += "m" * mtp_layers + "L"
    return tuple(cells)


def split_of_list(numbers: Sequence[int], flags: SplitFlags) -> Split:
    """
    Split the model by a number a stage.

    Examples
    --------
    >>> split_of_list((1, 2), SplitFlags(stages=2, layers=3)).cells
    ('Et', 'ttL')
    >>> print(*split_of_list((1, 2), SplitFlags(stages=2, layers=4)).broken)
    --num-layer-list: the numbers must add up to --num-layers, 4 (got 3)
    """
    broken = []
    if len(numbers) != flags.stages:
        broken.append(
            _broken(LIST, f"must have a number for each of the {flags.stages} stages", len(numbers))
        )
    if flags.stages < 2:
        broken.append(_broken(LIST, "needs a pipeline of at least 2 stages", flags.stages))
    if sum(numbers) != flags.layers:
        broken.append(_broken(LIST, f"the numbers must add up to --num-layers, {flags.layers}", sum(numbers)))
    broken += [
        _broken(LIST, f"goes not with {flag}", "both", "keep one")
        for flag, value in ((PER_CHUNK, flags.per_chunk), (CHUNKS, flags.chunks))
        if value is not None
    ]
    known = sum(numbers) == flags.layers and len(numbers) == flags.stages
    cells = _cells(numbers, flags.mtp_layers) if known else None
    return Split(cells=cells, interleave=1, broken=tuple(broken))


def split_of_rows(rows: Rows, flags: SplitFlags) -> Split:
    """
    Split the model by a row a stage, with a number a chunk.

    Megatron-LM's own rules of an even split hold besides, since it asks them first.

    Examples
    --------
    >>> flags = SplitFlags(stages=2, layers=4, per_chunk=1)  # 4 / 2 / 1 = 2 chunks
    >>> split_of_rows(((0, 2), (1, 1)), flags).cells  # chunk after chunk
    ('E', 't', 'tt', 'tL')
    """
    even = split_of(flags)
    broken = [*even.broken]
    if len(rows) != flags.stages:
        broken.append(_broken(ROWS, f"must have a row for each of the {flags.stages} stages", len(rows)))
    lengths = {len(row) for row in rows}
    if not even.broken and lengths != {even.interleave}:
        found = ", ".join(map(str, sorted(lengths)))
        mend = f"{PER_CHUNK} and {CHUNKS} say how many chunks there are"
        broken.append(_broken(ROWS, f"a row must have {even.interleave} numbers, one a chunk", found, mend))
    total = sum(map(sum, rows))
    if total != flags.layers:
        broken.append(_broken(ROWS, f"the numbers must add up to --num-layers, {flags.layers}", total))
    if len(lengths) != 1 or len(rows) != flags.stages or total != flags.layers:
        return Split(cells=None, interleave=even.interleave, broken=tuple(broken))
    chunks = len(rows[0])
    chain = [row[chunk] for chunk in range(chunks) for row in rows]
    cells = _cells(chain, flags.mtp_layers) if chunks else None
    return Split(cells=cells, interleave=max(chunks, 1), broken=tuple(broken))


def split_on_a_v(flags: SplitFlags) -> Split:
    """
    Split the model evenly over the two chunks of every stage that DualPipeV has.

    Examples
    --------
    >>> split_on_a_v(SplitFlags(stages=2, layers=8)).cells
    ('Ett', 'tt', 'tt', 'ttL')
    """
    stages, layers = flags.stages, flags.layers
    broken = [
        _broken(METHOD, f"{DUALPIPEV} goes not with {flag}", "both", "leave it out")
        for flag, value in ((PER_CHUNK, flags.per_chunk), (CHUNKS, flags.chunks))
        if value is not None
    ]
    if stages < 2:
        broken.append(_broken(METHOD, f"{DUALPIPEV} needs a pipeline of at least 2 stages", stages))
    if layers < 1 or layers % (2 * stages):
        rule = f"must be a multiple of twice the {stages} stages with {DUALPIPEV}"
        broken.append(_broken("num-layers", rule, layers, "add empty places with --noop-layers"))
    if stages < 1 or layers < 1 or layers % (2 * stages):
        return Split(cells=None, interleave=2, broken=tuple(broken))
    cells = _cells([layers // (2 * stages)] * (2 * stages), flags.mtp_layers)
    return Split(cells=cells, interleave=2, broken=tuple(broken), on_a_v=True)


def with_noops(split: Split, noops: Sequence[int], layers: int) -> Split:
    """
    Leave places of a split empty, by their numbers along the chain.

    Examples
    --------
    >>> with_noops(split_of(SplitFlags(stages=2, layers=4)), (0, 3), 4).cells
    ('Ent', 'tnL')
    """
    empty = {number for number in noops if number < layers}
    split = replace(split, noops=len(empty))
    wrong = sorted(number for number in noops if number >= layers)
    if wrong:
        found = ", ".join(map(str, wrong[:4]))
        rule = f"a place must be below --num-layers, {layers}, which counts empty places too"
        return replace(split, cells=None, broken=(*split.broken, _broken(NOOPS, rule, found)))
    if split.cells is None:
        return split
    place, cells = 0, []
    for cell in split.cells:
        letters = []
        for letter in cell:
            letters.append("n" if letter == "t" and place in empty else letter)
            place += letter == "t"
        cells.append("".join(letters))
    return replace(split, cells=tuple(cells))
