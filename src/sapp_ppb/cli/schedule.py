"""``sapp-ppb schedule``: the order of a schedule, as bare CSV."""

from typing import Annotated

import typer

from sapp_ppb.cli.guard import FITS
from sapp_ppb.cli.options import GroupOption, Interleave, MicroBatches, Stages, micro_batch_group
from sapp_ppb.cli.output import write_document

SHORT_HELP = "Print the order of a schedule."
HELP = """
Print in which order the stages run their ops: a line a stage, ops like 2F0 (forward of
micro-batch 0 in cell 2) with commas between them, as PyTorch reads it.

\b
Examples:
  sapp-ppb schedule 1f1b -s 4 -mb 8
  sapp-ppb schedule interleaved -s 4 -mb 8 -i 2 > order.csv
  sapp-ppb schedule interleaved -s 4 -mb 10 -i 2 --micro-batch-group remainder-first
"""


def schedule(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="gpipe, 1f1b, interleaved or interleaved-less-memory.", show_default=False
        ),
    ],
    stages: Stages,
    micro_batches: MicroBatches,
    interleave: Interleave = 1,
    micro_batch_group_: GroupOption = None,
) -> int:
    """Print an order."""
    from sapp_ppb.schedules import build_schedule

    order = build_schedule(name, stages, interleave, micro_batches, micro_batch_group(micro_batch_group_))
    write_document(order.to_csv())
    return FITS
