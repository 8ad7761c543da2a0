"""
Pipeline parallelism balancing: which layers go on which stage, recomputed or not.

Every public name is imported when it is first used, so that ``import sapp_ppb``
and ``sapp-ppb --help`` load nothing heavy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sapp_ppb.costs import Layer, LayerKind, LayerStrategy, Model, Recompute
    from sapp_ppb.plan import Outcome, Plan
    from sapp_ppb.planner import plan_pipeline
    from sapp_ppb.problem import Problem
    from sapp_ppb.readers import read_model
    from sapp_ppb.simulator import simulate

    __version__: str

__all__ = [
    "Layer",
    "LayerKind",
    "LayerStrategy",
    "Model",
    "Outcome",
    "Plan",
    "Problem",
    "Recompute",
    "__version__",
    "plan_pipeline",
    "read_model",
    "simulate",
]

_HOMES = {
    "Layer": "sapp_ppb.costs",
    "LayerKind": "sapp_ppb.costs",
    "LayerStrategy": "sapp_ppb.costs",
    "Model": "sapp_ppb.costs",
    "Outcome": "sapp_ppb.plan",
    "Plan": "sapp_ppb.plan",
    "Problem": "sapp_ppb.problem",
    "Recompute": "sapp_ppb.costs",
    "plan_pipeline": "sapp_ppb.planner",
    "read_model": "sapp_ppb.readers",
    "simulate": "sapp_ppb.simulator",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for, and keep it."""
    value: object
    if name == "__version__":
        value = _installed_version()
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, those not yet imported included."""
    return sorted({*globals(), *__all__})


def _installed_version() -> str:
    """Version of the installed distribution; ``0+unknown`` in a bare source tree."""
    from importlib.metadata import PackageNotFoundError, version  # 20 ms, only when asked

    try:
        return version("sapp-ppb")
    except PackageNotFoundError:
        return "0+unknown"
