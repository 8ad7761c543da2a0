"""``sapp-ppb schedule``: the order of a schedule, as bare CSV."""

from typing import Annotated

import typer

from sapp_ppb.cli.guard import FITS
from sapp_ppb.cli.options.order import GroupOption, OrderPath, SequenceChunks, micro_batch_group, order_file
from sapp_ppb.cli.options.problem import Interleave, MicroBatches, Stages
from sapp_ppb.cli.output import write_document

SHORT_HELP = "Print the order of a schedule."
HELP = """
Print in which order the stages run their ops: a line a stage, ops like 2F0 (forward of
micro-batch 0 in cell 2) with commas between them, as PyTorch reads it.  An order that can
not run is refused, with the ops that wait for each other.

\b
Examples:
  sapp-ppb schedule 1f1b -s 4 -mb 8
  sapp-ppb schedule interleaved -s 4 -mb 8 -i 2 > order.csv
  sapp-ppb schedule interleaved -s 4 -mb 10 -i 2 --micro-batch-group remainder-first
  sapp-ppb schedule zbv -s 4 -mb 8
  sapp-ppb schedule seq1f1b -s 4 -mb 8 --sequence-chunks 2
  sapp-ppb schedule custom -s 4 -mb 8 --order order.csv
"""


def schedule(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="gpipe, 1f1b, interleaved, interleaved-less-memory, looped-bfs, interleaved-zero-bubble, "
            "zbv, dualpipev, seq1f1b, zb-auto or custom.",
            show_default=False,
        ),
    ],
    stages: Stages,
    micro_batches: MicroBatches,
    interleave: Interleave = None,
    micro_batch_group_: GroupOption = None,
    sequence_chunks: SequenceChunks = 1,
    order: OrderPath = None,
) -> int:
    """Print an order."""
    from sapp_ppb.schedules import build_schedule

    built = build_schedule(
        name,
        stages,
        interleave,
        micro_batches,
        micro_batch_group(micro_batch_group_),
        sequence_chunks=sequence_chunks,
        order=order_file(order),
    )
    write_document(built.to_csv())
    return FITS
