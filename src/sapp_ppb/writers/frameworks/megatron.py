"""A plan in the flags of Megatron-LM: as lines to paste, or put into a file that exists."""

from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.targets.megatron.flags import GROUP_SIZE, OTHER_RECOMPUTE, OTHER_SPLITS, RECOMPUTE, SPLIT
from sapp_ppb.targets.megatron.layout import compressed, layout_of
from sapp_ppb.targets.megatron.target import recompute_words, unsaid
from sapp_ppb.writers.frameworks.flag_file import (
    flag_form,
    flags_to_drop,
    put_flags,
    refuse_other_model,
    same_layout,
)

_LAYOUT = "pipeline-model-parallel-layout"
# What a layout replaces, and what says recompute in older words.
_REPLACED = (*SPLIT[4:], GROUP_SIZE, *RECOMPUTE)


def megatron_flags(plan: Plan) -> dict[str, str]:
    """
    Values of the flags that say a plan, without dashes in front.

    The micro-batch group stands among them where it is not Megatron-LM's default, the
    number of stages.

    Raises
    ------
    InputError
        Where Megatron-LM can not say the plan, with the reasons.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=5, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> megatron_flags(plan_from_matrices(problem, {"Dec": {"none": [[3, 2]]}}))
    {'pipeline-model-parallel-size': '2', 'pipeline-model-parallel-layout': 'Et*3|ttL'}
    """
    if faults := unsaid(plan):
        raise InputError("plan", faults)
    problem = plan.problem
    flags = {"pipeline-model-parallel-size": str(problem.stages), _LAYOUT: compressed(layout_of(plan))}
    group = problem.micro_batch_group
    if problem.interleave > 1 and isinstance(group, int) and group != problem.stages:
        flags[GROUP_SIZE] = str(group)
    words = (recompute_words(plan) or "").split()
    return flags | {
        flag.removeprefix("--"): value for flag, value in zip(words[::2], words[1::2], strict=True)
    }


def megatron_text(plan: Plan) -> str:
    r"""
    Write the flags that say a plan, one on a line, as a launch script takes them.

    Raises
    ------
    InputError
        Where Megatron-LM can not say the plan, with the reasons.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=5, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> print(megatron_text(plan_from_matrices(problem, {"Dec": {"none": [[3, 2]]}})), end="")
    --pipeline-model-parallel-size 2 \
    --pipeline-model-parallel-layout "Et*3|ttL"
    """
    lines = [
        f'--{name} "{value}"' if name == _LAYOUT else f"--{name} {value}"
        for name, value in megatron_flags(plan).items()
    ]
    return " \\\n".join(lines) + "\n"


def megatron_into(text: str, plan: Plan, where: str) -> str:
    """
    Put the flags of a plan into the text of a configuration, and leave every other byte as it is.

    Flags that a layout replaces, and recompute that the plan does not have, are taken out;
    a value that means the same already stays as it is written.

    Parameters
    ----------
    text
        ``model_config.yaml``, a list of arguments or a launch script.
    where
        Its path, whose ending says which of them it is.

    Raises
    ------
    InputError
        Where Megatron-LM can not say the plan, the file is for another number of layers or
        says the split in another way, or flags stand where they can not be edited safely.
    """
    flags = megatron_flags(plan)
    refuse_other_model(flag_form(where)(text, where), plan, where, (*OTHER_SPLITS, *OTHER_RECOMPUTE))
    return put_flags(text, where, flags, flags_to_drop(flags, _REPLACED), _means)


def _means(found: object, name: str, value: str) -> bool:
    """Whether a value that stands in a file means the wanted one already."""
    if name != _LAYOUT:
        return str(found) == value
    try:
        return same_layout(found, value)
    except InputError:
        return False
