"""
One colour for each kind of work, in every picture and on every page.

The kinds differ in lightness, so that they can be told apart in greyscale and by
readers who see fewer colours; the chunks of a kind are shades within its own band of
lightness, which no other kind enters.
"""

from typing import Any

from sapp_ppb.report.work import Work

# Shades of the first and of the last chunk.
_SHADES = {
    Work.FORWARD: ("#c8e6fe", "#7bc9fc"),
    Work.BACKWARD: ("#de6939", "#c65627"),
    Work.INPUT: ("#55c199", "#40ad86"),
    Work.WEIGHT: ("#7b559e", "#664289"),
    Work.RECOMPUTE: ("#5d2830", "#44121b"),
}
IDLE, PAPER = "#f4f4f4", "#ffffff"
# What stages do after their last op: hatched, so that it is taken for no kind of work.
EXTRA, EXTRA_LINES = "#e4e4e4", "#8a8a8a"
HATCHED: dict[str, Any] = {"facecolor": EXTRA, "edgecolor": EXTRA_LINES, "hatch": "/////", "linewidth": 0.0}

CONSTANT, PARAMETERS, ACTIVATIONS = "#4d4d4d", "#bdbdbd", "#4a83bd"
BETWEEN = "#b9d3ec"  # activations that are held for a part of the time
OVER_LIMIT = "#7a1f16"
LIMIT_LINE: dict[str, Any] = {"color": "#000000", "linewidth": 1.0}


def shade(work: Work, chunk: int = 0, chunks: int = 1) -> str:
    """
    Colour of a kind of work in a chunk, as ``#rrggbb``.

    Parameters
    ----------
    chunk, chunks
        The chunk, and how many a stage has; with one, the shade in the middle.

    Examples
    --------
    >>> shade(Work.FORWARD, 0, 2), shade(Work.FORWARD, 1, 2)
    ('#c8e6fe', '#7bc9fc')
    """
    first, last = (_channels(colour) for colour in _SHADES[work])
    share = chunk / (chunks - 1) if chunks > 1 else 0.5
    mixed = [round((1 - share) * a + share * b) for a, b in zip(first, last, strict=True)]
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def text_colour(work: Work) -> str:
    """Black or white, whichever is easier to read on every shade of a kind of work."""
    return "#ffffff" if work in (Work.WEIGHT, Work.RECOMPUTE) else "#000000"


def _channels(colour: str) -> tuple[int, int, int]:
    """Red, green and blue, 0 to 255, of ``#rrggbb``."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
