"""A cell of a pipeline that does nothing but take its time, forwards and backwards."""

import time

import torch


def nap(milliseconds: float) -> None:
    """Sleep; nothing at all for 0 ms, for which the system would still switch tasks."""
    if milliseconds > 0:
        time.sleep(milliseconds / 1e3)


class Sleep(torch.autograd.Function):
    """Hand a tensor on unchanged after a sleep, and its gradient after another one."""

    @staticmethod
    def forward(ctx, tensor, forward_ms, backward_ms):
        """Sleep the forward's time."""
        nap(forward_ms)
        ctx.backward_ms = backward_ms
        return tensor.clone()

    @staticmethod
    def backward(ctx, gradient):
        """Sleep the backward's time."""
        nap(ctx.backward_ms)
        return gradient, None, None


class SleepingCell(torch.nn.Module):
    """
    Stand-in for the layers of one cell.

    The input and the weight sleep in nodes of their own and meet in a product, so
    that PyTorch can run the two gradients apart: I takes ``input_ms``, W takes
    ``weight_ms``, and B both.

    Parameters
    ----------
    forward_ms, input_ms, weight_ms
        Times of F, I and W.
    first
        Whether the cell is the first of the chain.  Its input has no gradient, and
        autograd would leave out what leads to it, were it not a product with a parameter.
    """

    def __init__(self, *, forward_ms: float, input_ms: float, weight_ms: float, first: bool) -> None:
        super().__init__()
        self.times_ms = (forward_ms, input_ms, weight_ms)
        self.gate = torch.nn.Parameter(torch.ones(())) if first else None
        self.weight = torch.nn.Parameter(torch.ones(()))

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        """Take the forward's time."""
        forward_ms, input_ms, weight_ms = self.times_ms
        given = tensor if self.gate is None else tensor * self.gate
        return Sleep.apply(given, forward_ms, input_ms) * Sleep.apply(self.weight, 0.0, weight_ms)
