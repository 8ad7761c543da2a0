"""One op, where its cell lives, and the order of ops on every stage."""

from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cached_property
from typing import NamedTuple

WHOLE = -1  # sequence chunk of an op that runs its micro-batch uncut


class OpKind(IntEnum):
    """What an op does; a full backward B is an input gradient I and a weight gradient W."""

    F = 0
    B = 1
    I = 2  # noqa: E741  the field's own letter for the input gradient
    W = 3


class Op(NamedTuple):
    """
    One micro-batch's forward, backward, input or weight gradient in one cell.

    Where micro-batches are cut along the sequence, an op runs one of the pieces:
    ``sequence_chunk`` counts them from 0, and is ``WHOLE`` where nothing is cut.

    Examples
    --------
    >>> str(Op(OpKind.F, 2, 0)), str(Op(OpKind.B, 2, 0, 1))
    ('2F0', '2B0.1')
    """

    kind: OpKind
    cell: int
    micro_batch: int
    sequence_chunk: int = WHOLE

    def __str__(self) -> str:
        whole = f"{self.cell}{self.kind.name}{self.micro_batch}"
        return whole if self.sequence_chunk == WHOLE else f"{whole}.{self.sequence_chunk}"


class Placement(Enum):
    """
    On which stage the cells of the chain live.

    LOOP puts cell j on stage j mod S as chunk j div S.  V runs chunk 0 up the
    stages and chunk 1 back down, so that the chain ends on stage 0.

    Examples
    --------
    >>> [Placement.LOOP.stage_of(cell, 3) for cell in range(6)]
    [0, 1, 2, 0, 1, 2]
    >>> [Placement.V.stage_of(cell, 3) for cell in range(6)]
    [0, 1, 2, 2, 1, 0]
    """

    LOOP = "loop"
    V = "v"

    def stage_of(self, cell: int, stages: int) -> int:
        """Stage that holds a cell."""
        chunk, position = divmod(cell, stages)
        if self is Placement.V and chunk % 2 == 1:
            return stages - 1 - position
        return position

    def cell_of(self, stage: int, chunk: int, stages: int) -> int:
        """Cell that a stage holds as its chunk-th."""
        if self is Placement.V and chunk % 2 == 1:
            return (chunk + 1) * stages - 1 - stage
        return chunk * stages + stage


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """
    The order of ops on every stage.

    Attributes
    ----------
    name
        Name under which the registry knows it.
    stages, chunks, micro_batches
        S, V and M.
    placement
        Where the cells live.
    rows
        One tuple of ops a stage, in the order in which the stage runs them.
    sequence_chunks
        k pieces into which every micro-batch is cut along the sequence.
    pairs
        Overlapped pairs, a forward and the backward right behind it that a stage may
        run together: the places of their forwards in each row; empty without any.
    """

    name: str
    stages: int
    chunks: int
    micro_batches: int
    placement: Placement
    rows: tuple[tuple[Op, ...], ...]
    sequence_chunks: int = 1
    pairs: tuple[tuple[int, ...], ...] = ()

    def __hash__(self) -> int:
        # The sizes say enough, and a hash of all ops would cost more than timing them.
        return hash((self.name, self.stages, self.chunks, self.micro_batches, self.sequence_chunks))

    @property
    def cells(self) -> int:
        """S x V, the number of cells in the chain."""
        return self.stages * self.chunks

    @property
    def units(self) -> int:
        """M x k, the number of pieces that run through every cell."""
        return self.micro_batches * self.sequence_chunks

    @cached_property
    def splits_backward(self) -> bool:
        """Whether any stage runs input and weight gradients apart."""
        return any(op[0] > OpKind.B for row in self.rows for op in row)

    def pairs_of(self, stage: int) -> tuple[int, ...]:
        """Places in a stage's row at which an overlapped pair begins."""
        return self.pairs[stage] if self.pairs else ()

    def to_csv(self) -> str:
        """
        Text form in PyTorch's notation: a line a stage, ops parted by commas.

        Examples
        --------
        >>> row = (Op(OpKind.F, 0, 0), Op(OpKind.F, 0, 1), Op(OpKind.B, 0, 0), Op(OpKind.B, 0, 1))
        >>> sizes = {"stages": 1, "chunks": 1, "micro_batches": 2}
        >>> one = Schedule(name="custom", **sizes, placement=Placement.LOOP, rows=(row,), pairs=((1,),))
        >>> print(one.to_csv(), end="")
        0F0,(0F1;0B0)OVERLAP_F_B,0B1
        """
        return "".join(
            ",".join(_entries(row, self.pairs_of(stage))) + "\n" for stage, row in enumerate(self.rows)
        )


def _entries(row: tuple[Op, ...], pairs: tuple[int, ...]) -> list[str]:
    """Text of a row's ops, those of a pair in one entry."""
    entries = [str(op) for op in row]
    for at in reversed(pairs):
        entries[at : at + 2] = [f"({entries[at]};{entries[at + 1]})OVERLAP_F_B"]
    return entries
