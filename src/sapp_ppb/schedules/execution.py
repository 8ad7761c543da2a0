"""How a framework runs an order: when its messages leave, and what it does in another place."""

from enum import StrEnum


class P2PMode(StrEnum):
    """
    When a forward's output leaves for the next stage.

    ASYNC sends it at the forward's end.  BLOCKING is Megatron's interleaved schedule
    without ``overlap_p2p_comm``: a forward and the backward right behind it are
    followed by one exchange of both results, so the output waits for the backward.  A
    stage that runs all its forwards first has no such turns and sends each at its end.
    With one chunk a stage Megatron sends between the two, and both modes are the same.

    Source: NVIDIA Megatron-LM, core/pipeline_parallel/schedules.py, commit d98e8a64.
    """

    ASYNC = "async"
    BLOCKING = "blocking"


class Flavour(StrEnum):
    """
    Framework whose own way of running a split backward is modelled.

    TORCH leaves the input gradient out in the first cell, which nobody needs, and runs
    the whole backward there where the order has the weight gradient.

    Source: PyTorch 2.13, torch/distributed/pipelining/stage.py, ``backward_one_chunk``.
    """

    TORCH = "torch"
