"""From measurements to costs: timelines, peaks and profiles of others, and which runs to make."""

from sapp_ppb.estimation.dryrun_guide import Guide, dryrun_guide
from sapp_ppb.estimation.galvatron_model import GalvatronSizes, model_from_galvatron
from sapp_ppb.estimation.graph_chain import chain_of_graph, model_from_graph
from sapp_ppb.estimation.memory_fit import MemoryEstimate, fit_memory
from sapp_ppb.estimation.memory_model import model_of_times, with_memory
from sapp_ppb.estimation.op_model import CellLayers, OpEstimate, cells_of_split, model_from_ops
from sapp_ppb.estimation.trace_model import Measured, TraceEstimate, Wanted, model_from_scopes

__all__ = [
    "CellLayers",
    "GalvatronSizes",
    "Guide",
    "Measured",
    "MemoryEstimate",
    "OpEstimate",
    "TraceEstimate",
    "Wanted",
    "cells_of_split",
    "chain_of_graph",
    "dryrun_guide",
    "fit_memory",
    "model_from_galvatron",
    "model_from_graph",
    "model_from_ops",
    "model_from_scopes",
    "model_of_times",
    "with_memory",
]
