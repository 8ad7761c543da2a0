"""From measurements and profiles of others to costs, and which runs to make; without any, estimates."""

from sapp_ppb.estimation.calibration import CalibratedRun, Calibration, calibrate
from sapp_ppb.estimation.dryrun_guide import Guide, dryrun_guide
from sapp_ppb.estimation.galvatron_model import GalvatronSizes, model_from_galvatron
from sapp_ppb.estimation.graph_chain import chain_of_graph, model_from_graph
from sapp_ppb.estimation.memory_fit import MemoryEstimate, fit_memory
from sapp_ppb.estimation.memory_model import model_of_times, with_memory
from sapp_ppb.estimation.op_model import CellLayers, OpEstimate, cells_of_split, model_from_ops
from sapp_ppb.estimation.setup import DType, TrainingSetup
from sapp_ppb.estimation.step_times import measured_step
from sapp_ppb.estimation.trace_model import Measured, TraceEstimate, Wanted, model_from_scopes
from sapp_ppb.estimation.transformer_model import LayerEstimate, TransformerEstimate, estimate_transformer

__all__ = [
    "CalibratedRun",
    "Calibration",
    "CellLayers",
    "DType",
    "GalvatronSizes",
    "Guide",
    "LayerEstimate",
    "Measured",
    "MemoryEstimate",
    "OpEstimate",
    "TraceEstimate",
    "TrainingSetup",
    "TransformerEstimate",
    "Wanted",
    "calibrate",
    "cells_of_split",
    "chain_of_graph",
    "dryrun_guide",
    "estimate_transformer",
    "fit_memory",
    "measured_step",
    "model_from_galvatron",
    "model_from_graph",
    "model_from_ops",
    "model_from_scopes",
    "model_of_times",
    "with_memory",
]
