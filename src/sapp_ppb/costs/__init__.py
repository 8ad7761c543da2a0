"""What work costs: the recompute types and strategies, the layers and the model that is their chain."""

from sapp_ppb.costs.combine import (
    aggregate,
    at_micro_batch_size,
    layers_of_kind,
    split_over_sequence_chunks,
    with_backward_ratio,
)
from sapp_ppb.costs.cost import Cost
from sapp_ppb.costs.layer import Layer, LayerKind
from sapp_ppb.costs.layer_times import layer_from_times
from sapp_ppb.costs.model import Model
from sapp_ppb.costs.recompute import Recompute
from sapp_ppb.costs.strategy import LayerStrategy, RecomputeType, Strategy

__all__ = [
    "Cost",
    "Layer",
    "LayerKind",
    "LayerStrategy",
    "Model",
    "Recompute",
    "RecomputeType",
    "Strategy",
    "aggregate",
    "at_micro_batch_size",
    "layer_from_times",
    "layers_of_kind",
    "split_over_sequence_chunks",
    "with_backward_ratio",
]
