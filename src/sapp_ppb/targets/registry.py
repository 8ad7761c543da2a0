"""The frameworks that a plan can be made for."""

from sapp_ppb.errors import InputError
from sapp_ppb.targets.colossalai import COLOSSALAI
from sapp_ppb.targets.deepspeed import DEEPSPEED
from sapp_ppb.targets.hyperparallel.target import HYPERPARALLEL
from sapp_ppb.targets.megatron.target import MEGATRON
from sapp_ppb.targets.mindformers.target import MINDFORMERS
from sapp_ppb.targets.mindspeed.target import MINDSPEED
from sapp_ppb.targets.pytorch.target import PYTORCH
from sapp_ppb.targets.target import Target
from sapp_ppb.targets.torchtitan.target import TORCHTITAN

_ALL = (MINDFORMERS, MEGATRON, TORCHTITAN, MINDSPEED, HYPERPARALLEL, COLOSSALAI, DEEPSPEED, PYTORCH)
_TARGETS = {target.name: target for target in _ALL}
TARGETS = tuple(_TARGETS)


def target_named(name: str) -> Target:
    """
    Framework of a name.

    Raises
    ------
    InputError
        If it is unknown.

    Examples
    --------
    >>> target_named("megatron").title
    'Megatron-LM'
    """
    if name not in _TARGETS:
        raise InputError("target", [f"{name!r} is unknown; one of {', '.join(TARGETS)}"])
    return _TARGETS[name]


def is_nested(target: str | None) -> bool:
    """
    Whether the types of a cell must fall along the chain, each within the one before.

    MindFormers says recompute with lists that count the first layers of a cell, so what
    a layer runs must be a part of what the layer before it runs.  SELECTIVE beside COMM
    in one cell is thereby excluded.  So does Colossal-AI, with one number for a cell.

    Parameters
    ----------
    target
        Name of a framework; None plans for none, and leaves the planner free.

    Raises
    ------
    InputError
        If the framework is unknown.

    Examples
    --------
    >>> is_nested(None), is_nested("mindformers")
    (False, True)
    """
    return target is not None and target_named(target) in (MINDFORMERS, COLOSSALAI)
