"""
Megatron-LM's layout of a pipeline: which layers each cell holds, as one string.

``E`` is the embedding, ``t`` a decoder, ``m`` a layer of multi-token prediction and ``L``
the loss; ``|`` ends a cell, and cell k is chunk k div S of stage k mod S.  ``(...)*n``
repeats a group, which holds no other group, and after that ``x*n`` one character; commas
mean nothing.  Source: ``megatron/core/transformer/pipeline_parallel_layer_layout.py``,
which takes a list of lists of names as well.
"""

import re
from itertools import groupby

import numpy as np

from sapp_ppb.costs.checks import LARGEST_COUNT, shown
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan

# Letters of each cell, in the order of the chain.
Cells = tuple[str, ...]
LAYOUT_KEY = "--pipeline-model-parallel-layout"
LETTERS = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}
_GROUP = re.compile(r"\(([EtmL|*0-9]+)\)\*([0-9]+)")
_ONE = re.compile(r"([EtmL|])\*([0-9]+)")
_WRONG = re.compile(r"[^EtmL|]")
_ESCAPE = re.compile(r"\\+(?=[|*(),])")


def parse_layout(text: str) -> Cells:
    r"""
    Letters of each cell that a layout string stands for.

    Backslashes with which shells, and files that are handed to them, protect a layout are
    left out.

    Raises
    ------
    InputError
        Where the string is no layout, or stands for more than a million layers and cells.

    Examples
    --------
    >>> parse_layout("Et*3|(tt|)*2,m|L")
    ('Ettt', 'tt', 'tt', 'm', 'L')
    >>> parse_layout(r"Et\\*2\\||tL")
    ('Ett', '', 'tL')
    """
    unrolled = _ESCAPE.sub("", text).replace(",", "")
    for pattern in (_GROUP, _ONE):
        unrolled = _unroll(pattern, unrolled, text)
    if wrong := _WRONG.search(unrolled):
        fault = (
            f"{shown(text)} has {shown(wrong[0])} where E, t, m, L or | must stand; a repetition is written "
            "t*3 or (tt|)*2, and groups hold no other groups"
        )
        raise InputError(LAYOUT_KEY, [fault])
    return tuple(unrolled.split("|"))


def _unroll(pattern: re.Pattern[str], text: str, whole: str) -> str:
    """Write out what a pattern repeats."""
    pieces, length, done = [], 0, 0
    for match in pattern.finditer(text):
        # Eight digits are above the limit; what follows them need not be read.
        times = int(match[2].lstrip("0")[:8] or 0)
        length += len(match[1]) * times + match.start() - done
        if length > LARGEST_COUNT:
            fault = f"{shown(whole)} stands for more than {LARGEST_COUNT} layers and cells"
            raise InputError(LAYOUT_KEY, [fault])
        pieces += [text[done : match.start()], match[1] * times]
        done = match.end()
    return "".join([*pieces, text[done:]])


def cells_of_names(rows: object) -> Cells:
    """
    Letters of each cell of a layout that is a list of lists of names.

    Raises
    ------
    InputError
        Where it is none, with the first fault.

    Examples
    --------
    >>> cells_of_names([["embedding", "decoder"], [], ["Decoder", "loss"]])
    ('Et', '', 'tL')
    """
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise InputError(LAYOUT_KEY, [f"must be a list of lists of names or text (got {shown(rows)})"])
    if not rows:
        raise InputError(LAYOUT_KEY, ["must have a list of names for each cell (got [])"])
    names = [name.strip().lower() if isinstance(name, str) else name for row in rows for name in row]
    for name in names:
        if not isinstance(name, str) or name not in LETTERS:
            raise InputError(LAYOUT_KEY, [f"has {shown(name)}, which is none of {', '.join(LETTERS)}"])
    letters = iter([LETTERS[name] for name in names])
    return tuple("".join(next(letters) for _ in row) for row in rows)


def names(cells: Cells) -> list[list[str]]:
    """
    Layout as a list of lists of names.

    Examples
    --------
    >>> names(("Et", "", "tL"))
    [['embedding', 'decoder'], [], ['decoder', 'loss']]
    """
    name = {letter: name for name, letter in LETTERS.items()}
    return [[name[letter] for letter in cell] for cell in cells]


def compressed(cells: Cells) -> str:
    """
    Layout string with runs of layers and of equal cells folded where that is shorter.

    Examples
    --------
    >>> compressed(("Ettt", *["tt"] * 29, "m", "L"))  # DeepSeek-V3 on 16 stages of two chunks
    'Et*3|(tt|)*29m|L'
    >>> compressed(("E", "", "", "", "", "ttL"))
    'E||*4ttL'
    """
    text = "".join(_times(_folded(cell) + "|", len(list(run))) for cell, run in groupby(cells[:-1]))
    return text + _folded(cells[-1])


def _folded(cell: str) -> str:
    runs = [(letter, len(list(run))) for letter, run in groupby(cell)]
    return "".join(letter * count if count < 3 else f"{letter}*{count}" for letter, count in runs)


def _times(text: str, count: int) -> str:
    """Repeat a text in the shorter way, written out where both are as short."""
    short = f"{text}*{count}" if len(text) == 1 else f"({text})*{count}"
    return short if len(short) < len(text) * count else text * count


def layout_of(plan: Plan) -> Cells:
    """
    Letters of each cell of a plan: its decoders, then its layers of multi-token prediction.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=5, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> layout_of(plan_from_matrices(problem, {"Dec": {"none": [[3, 2]]}}))
    ('Ettt', 'ttL')
    """
    is_mtp = np.array([layer.is_mtp for layer in plan.problem.model.bodies])
    layers = plan.counts.sum(axis=1)
    counts = zip(layers[~is_mtp].sum(axis=0).tolist(), layers[is_mtp].sum(axis=0).tolist(), strict=True)
    cells = ["t" * decoders + "m" * mtp for decoders, mtp in counts]
    cells[0] = "E" + cells[0]
    cells[-1] += "L"
    return tuple(cells)
