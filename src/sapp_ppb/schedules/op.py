"""One op, where its cell lives, and the order of ops on every stage."""

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple


class OpKind(IntEnum):
    """What an op does; a full backward B is an input gradient I and a weight gradient W."""

    F = 0
    B = 1
    I = 2  # noqa: E741  the field's own letter for the input gradient
    W = 3


class Op(NamedTuple):
    """
    One micro-batch's forward, backward, input or weight gradient in one cell.

    Examples
    --------
    >>> str(Op(OpKind.F, 2, 0))
    '2F0'
    """

    kind: OpKind
    cell: int
    micro_batch: int

    def __str__(self) -> str:
        return f"{self.cell}{self.kind.name}{self.micro_batch}"


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
    """

    name: str
    stages: int
    chunks: int
    micro_batches: int
    placement: Placement
    rows: tuple[tuple[Op, ...], ...]

    @property
    def cells(self) -> int:
        """S x V, the number of cells in the chain."""
        return self.stages * self.chunks

    def to_csv(self) -> str:
        """
        Text form in PyTorch's notation: a line a stage, ops parted by commas.

        Examples
        --------
        >>> row = (Op(OpKind.F, 0, 0), Op(OpKind.B, 0, 0))
        >>> sizes = {"stages": 1, "chunks": 1, "micro_batches": 1}
        >>> one = Schedule(name="1f1b", **sizes, placement=Placement.LOOP, rows=(row,))
        >>> print(one.to_csv(), end="")
        0F0,0B0
        """
        return "".join(",".join(map(str, row)) + "\n" for row in self.rows)
