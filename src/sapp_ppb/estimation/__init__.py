"""From measurements to costs: times out of timelines, memory out of peaks, and which runs to make."""

from sapp_ppb.estimation.op_model import CellLayers, OpEstimate, cells_of_split, model_from_ops
from sapp_ppb.estimation.trace_model import Measured, TraceEstimate, Wanted, model_from_scopes

__all__ = [
    "CellLayers",
    "Measured",
    "OpEstimate",
    "TraceEstimate",
    "Wanted",
    "cells_of_split",
    "model_from_ops",
    "model_from_scopes",
]
