"""
Rules of what HyperParallel's PPOptimizer is given and of its result.

Source: ``pp_config_builder/yaml_parser.py`` (YamlOptimizationConfig),
``pp_modeling/pp_balancer.py`` and ``pp_structs.py`` in
``hyper_parallel/auto_parallel/sapp_ppb`` of mindspore-ai/hyper-parallel.
"""

from collections.abc import Mapping, Sequence

from sapp_ppb.costs import Recompute
from sapp_ppb.targets.config import BrokenRule, CellTypes

# Layers of each cell along the chain: number and type.
Partition = Sequence[Sequence[tuple[int, Recompute]]]
_PARTITION, _OFFSET = "stage_partition", "layer_offset"


def _broken(key: str, rule: str, found: object, mend: str = "") -> BrokenRule:
    return BrokenRule(key=key, rule=rule, found=str(found), mend=mend)


def partition_rules(partition: Partition, *, stages: int, chunks: int) -> list[BrokenRule]:
    """
    Rules that the layers of every cell break.

    Layer 0 is the HEAD, which the first cell holds, and the last number the TAIL, which
    the last one holds; both are never recomputed.

    Examples
    --------
    >>> none = Recompute.NONE
    >>> print(*partition_rules([[(0, none), (2, none)], [(1, none), (3, none)]], stages=2, chunks=1))
    stage_partition: the layers must follow one another along the cells (got 2 where 1 should be)
    """
    if len(partition) != stages * chunks:
        cells = f"{chunks} x {stages}"
        return [
            _broken(_PARTITION, f"must have num_of_interleave x pp_degree, {cells}, entries", len(partition))
        ]
    chain = [layer for cell in partition for layer in sorted(cell, key=lambda layer: layer[0])]
    wrong = next((k for k, (number, _) in enumerate(chain) if number != k), None)
    if wrong is not None:
        found = f"{chain[wrong][0]} where {wrong} should be"
        return [_broken(_PARTITION, "the layers must follow one another along the cells", found)]
    if len(chain) < 3 or not partition[0] or not partition[-1]:
        rule = "must hold the HEAD in its first entry, the TAIL in its last one, and a layer between them"
        return [_broken(_PARTITION, rule, f"{len(chain)} layers")]
    return [
        _broken(_PARTITION, f"the {name} is never recomputed", recompute.label)
        for name, (_, recompute) in (("HEAD", chain[0]), ("TAIL", chain[-1]))
        if recompute is not Recompute.NONE
    ]


def types_of_partition(partition: Partition, *, stages: int) -> CellTypes:
    """
    Type of each BODY layer of each cell, indexed ``[chunk][stage]``.

    Examples
    --------
    >>> none, full = Recompute.NONE, Recompute.FULL
    >>> ((first, last),) = types_of_partition([[(0, none), (1, full)], [(2, none)]], stages=2)
    >>> [recompute.label for recompute in first], last
    (['full'], ())
    """
    last = max(number for cell in partition for number, _ in cell)
    of_cell = [
        tuple(recompute for number, recompute in sorted(cell) if 0 < number < last) for cell in partition
    ]
    return tuple(tuple(of_cell[first : first + stages]) for first in range(0, len(of_cell), stages))


def offset_rules(offset: Mapping[str, Sequence[Sequence[int]]], types: CellTypes) -> list[BrokenRule]:
    """
    Rules that ``layer_offset`` breaks beside a partition: shape, and the same layers everywhere.

    An offset is what a cell has of a group less ``layers of the group // cells``, so that
    offsets of all groups and layers of a cell differ by the same number everywhere.

    Examples
    --------
    >>> none = (Recompute.NONE,)
    >>> offset_rules({"Dec": [[0, 1]]}, ((none, none * 2),))
    []
    >>> print(*offset_rules({"Dec": [[0, 0]]}, ((none, none * 2),)))
    layer_offset: must be what stage_partition has (got other layers in stage 1 chunk 0)
    """
    chunks, stages = len(types), len(types[0])
    for name, rows in offset.items():
        if len(rows) != chunks or any(len(row) != stages for row in rows):
            shape = f"{chunks} rows, one a chunk, of {stages} numbers"
            return [_broken(f"{_OFFSET}.{name}", f"must be {shape}", "another shape")]
    if not offset:
        return []
    rest = [
        [len(types[v][s]) - sum(rows[v][s] for rows in offset.values()) for s in range(stages)]
        for v in range(chunks)
    ]
    total = sum(len(cell) for row in types for cell in row)
    base = total // (chunks * stages) if len(offset) == 1 else min(map(min, rest))
    places = [f"stage {s} chunk {v}" for v in range(chunks) for s in range(stages) if rest[v][s] != base]
    if not places:
        return []
    return [_broken(_OFFSET, f"must be what {_PARTITION} has", f"other layers in {', '.join(places[:4])}")]
