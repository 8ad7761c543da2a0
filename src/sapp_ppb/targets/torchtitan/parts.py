"""
The parts that torchtitan cuts a model into, and the names of their modules.

A part is one chunk of one rank.  Where no lists of modules are given, embedding and
head count as so many layers each, and all parts get equal shares.  Source:
``torchtitan/distributed/pipeline_parallel.py``, ``pipeline_llm`` and
``generate_llm_fqn_per_model_part``.
"""

import re
from collections.abc import Sequence

EMBEDDING = "tok_embeddings"
NORM = "norm"
HEADS = ("output", "lm_head")  # older and newer models
_LAYER = re.compile(r"layers\.(0|[1-9][0-9]{0,4})")
Parts = Sequence[Sequence[str]]


def layer_of(module: str) -> int | None:
    """
    Index of the layer that a module's name means; None for what is no layer.

    Examples
    --------
    >>> layer_of("layers.12"), layer_of("norm"), layer_of("layers.07")
    (12, None, None)
    """
    found = _LAYER.fullmatch(module)
    return int(found[1]) if found else None


def layers_of(part: Sequence[str]) -> tuple[int, ...]:
    """
    Layers of a part, each once, in the order in which the model runs them.

    Examples
    --------
    >>> layers_of(["tok_embeddings", "layers.1", "layers.0", "layers.1"])
    (0, 1)
    """
    return tuple(sorted({index for module in part if (index := layer_of(module)) is not None}))


def modules_of(
    layers_per_part: Sequence[int],
    head: str = HEADS[0],
    first: Sequence[str] = (EMBEDDING,),
    last: Sequence[str] | None = None,
) -> list[list[str]]:
    """
    Names of the modules of every part.

    Parameters
    ----------
    layers_per_part
        Layers of each part along the chain.
    head
        Name of the module that makes logits.
    first, last
        Modules before the layers of the first part and behind those of the last;
        None for ``last`` means norm and head.

    Examples
    --------
    >>> modules_of([1, 2])
    [['tok_embeddings', 'layers.0'], ['layers.1', 'layers.2', 'norm', 'output']]
    """
    parts, start = [], 0
    for number in layers_per_part:
        parts.append([f"layers.{index}" for index in range(start, start + number)])
        start += number
    parts[0] = [*first, *parts[0]]
    parts[-1] = [*parts[-1], *((NORM, head) if last is None else last)]
    return parts


def default_parts(*, layers: int, stages: int, single: bool, per_part: int | None, less: int) -> int:
    """
    Count the parts that torchtitan makes when it is given no lists.

    Parameters
    ----------
    layers, stages
        Layers of the model, and ranks.
    single
        Whether the schedule runs one part a rank.
    per_part
        ``pipeline_parallel_layers_per_stage``; None for one part a rank, or two.
    less
        Layers that embedding and head count as, together.

    Raises
    ------
    ValueError
        If the number does not suit the ranks or the schedule; a sentence.

    Examples
    --------
    >>> default_parts(layers=32, stages=4, single=False, per_part=None, less=2)
    8
    >>> default_parts(layers=32, stages=4, single=False, per_part=3, less=2)  # 34 / 3, rounded up
    12
    """
    if per_part is None:
        return stages * (1 if single else 2)
    parts = -(-(layers + less) // per_part)
    got = f"{layers} + {less} layers by {per_part} make {parts} parts for {stages} ranks"
    if parts % stages:
        raise ValueError(f"the parts must divide by the ranks (got {got})")
    if single and parts != stages:
        raise ValueError(f"this schedule wants one part a rank (got {got})")
    if not single and parts < 2 * stages:
        raise ValueError(f"this schedule wants at least two parts a rank (got {got})")
    return parts


def default_layers(*, layers: int, parts: int, first_less: int, last_less: int) -> tuple[int, ...]:
    """
    Layers of each part when torchtitan is given no lists.

    Of L + first + last layers every part gets an equal share, the first parts one more
    while a rest lasts; the first part then holds ``first_less`` fewer, the last one
    ``last_less`` fewer.

    Raises
    ------
    ValueError
        If there are too few layers; a sentence.

    Examples
    --------
    >>> default_layers(layers=5, parts=4, first_less=1, last_less=1)  # 7 = 2 + 2 + 2 + 1
    (1, 2, 2, 0)
    """
    if parts == 1:
        return (layers,)
    counted = layers + first_less + last_less
    share, rest = divmod(counted, parts)
    got = f"{layers} layers + {first_less} + {last_less} over {parts} parts"
    if share < 1:
        raise ValueError(f"every part must get a layer, embedding and head counted as layers (got {got})")
    if max(first_less, last_less) > share:
        raise ValueError(f"embedding and head must count as no more than the {share} of a part (got {got})")
    counts = [share + (part < rest) for part in range(parts)]
    counts[0] -= first_less
    counts[-1] -= last_less
    return tuple(counts)
