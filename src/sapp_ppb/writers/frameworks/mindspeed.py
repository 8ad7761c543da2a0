"""
A plan in the flags of MindSpeed: as lines to paste, or put into a file that exists.

The split is said by the first of these that can: ``--schedules-method dualpipev`` with
``--noop-layers`` for that schedule; ``--num-layer-list`` with one chunk a stage, a layer on
each of two stages or more, and multi-token prediction on the last stage;
``--pipeline-num-transformer-layers`` with several chunks, where layers divide by all cells
and multi-token prediction is in the last cell; else the layout of Megatron-LM.
"""

from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.megatron.flags import GROUP_SIZE, RECOMPUTE, SPLIT, SWITCHES
from sapp_ppb.targets.megatron.layout import compressed, layout_of
from sapp_ppb.targets.mindspeed.flags import (
    DUALPIPEV,
    LIST,
    METHOD,
    NOOPS,
    OWN_SPLITS,
    PER_RANK,
    ROWS,
    UNREAD_RECOMPUTE,
    UNREAD_SPLITS,
)
from sapp_ppb.targets.mindspeed.split import parse_list, parse_rows, rows_text
from sapp_ppb.targets.mindspeed.target import recompute_words, unsaid
from sapp_ppb.writers.frameworks.flag_file import (
    flag_form,
    flags_to_drop,
    put_flags,
    refuse_other_model,
    same_layout,
)

_STAGES, _LAYOUT, _LAYERS, _MTP = SPLIT[:4]
_PER_CHUNK = "num-layers-per-virtual-pipeline-stage"
_REPLACED = (_LAYOUT, *SPLIT[4:], *OWN_SPLITS, GROUP_SIZE, *RECOMPUTE, PER_RANK)


def mindspeed_flags(plan: Plan) -> dict[str, str]:
    """
    Values of the flags that say a plan, without dashes in front; "true" for a switch.

    Raises
    ------
    InputError
        Where MindSpeed can not say the plan, with the reasons.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=5, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> mindspeed_flags(plan_from_matrices(problem, {"Dec": {"none": [[3, 2]]}}))
    {'num-layers': '5', 'pipeline-model-parallel-size': '2', 'num-layer-list': '3,2'}
    """
    if faults := unsaid(plan):
        raise InputError("plan", faults)
    problem = plan.problem
    model = problem.model
    split = _split(plan)
    flags = {_LAYERS: str(model.body_count - model.mtp_count)} | split
    if model.mtp_count:
        flags[_MTP] = str(model.mtp_count)
    group = problem.micro_batch_group
    loops = problem.schedule_name is ScheduleName.INTERLEAVED and problem.interleave > 1
    if loops and isinstance(group, int) and group != problem.stages:
        flags[GROUP_SIZE] = str(group)
    return flags | _recompute(recompute_words(plan) or "")


def _recompute(words: str) -> dict[str, str]:
    """Take the words of recompute apart."""
    named = [words.split() for words in words.split("--") if words]
    return {name: value[0] if value else "true" for name, *value in named}


def _split(plan: Plan) -> dict[str, str]:
    """Say the split in the first words that can."""
    problem = plan.problem
    stages, chunks, cells = problem.stages, problem.interleave, layout_of(plan)
    decoders = [cell.count("t") for cell in cells]
    size = {_STAGES: str(stages)}
    if problem.schedule_name is ScheduleName.DUALPIPEV:
        return size | _on_a_v(decoders)
    mtp_is_last = not any("m" in cell for cell in cells[:-1])
    if chunks == 1 and stages > 1 and min(decoders) > 0 and mtp_is_last:
        return size | {LIST: ",".join(map(str, decoders))}
    each, rest = divmod(sum(decoders), len(cells))
    if chunks > 1 and each and not rest and mtp_is_last:
        rows = tuple(tuple(decoders[stage::stages]) for stage in range(stages))
        return size | {_PER_CHUNK: str(each), ROWS: rows_text(rows)}
    return size | {_LAYOUT: compressed(cells)}


def _on_a_v(decoders: list[int]) -> dict[str, str]:
    """Give every cell as many places as the fullest one has, the last of them empty."""
    places = max(1, *decoders)
    empty = [cell * places + place for cell, layers in enumerate(decoders) for place in range(layers, places)]
    noops = {NOOPS: ",".join(map(str, empty))} if empty else {}
    return {METHOD: DUALPIPEV, _LAYERS: str(places * len(decoders))} | noops


def mindspeed_text(plan: Plan) -> str:
    r"""
    Write the flags that say a plan, one on a line, as a launch script takes them.

    Raises
    ------
    InputError
        Where MindSpeed can not say the plan, with the reasons.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=5, forward_ms=1)
    >>> model = Model(name="tiny", layers=(body,))
    >>> v = ScheduleName.DUALPIPEV
    >>> problem = Problem(model=model, stages=2, micro_batches=4, schedule=v)
    >>> print(mindspeed_text(plan_from_matrices(problem, {"Dec": {"none": [[1, 1], [1, 2]]}})), end="")
    --num-layers 8 \
    --pipeline-model-parallel-size 2 \
    --schedules-method dualpipev \
    --noop-layers 1,3,7
    """
    return " \\\n".join(_line(name, value) for name, value in mindspeed_flags(plan).items()) + "\n"


def _line(name: str, value: str) -> str:
    if name in SWITCHES:
        return f"--{name}"
    return f'--{name} "{value}"' if name in (_LAYOUT, ROWS) else f"--{name} {value}"


def mindspeed_into(text: str, plan: Plan, where: str) -> str:
    """
    Put the flags of a plan into the text of a configuration, and leave every other byte as it is.

    Other words for the split, and recompute that the plan does not have, are taken out; a
    value that means the same already stays as it is written.

    Parameters
    ----------
    text
        A launch script, a list of arguments, or YAML of flags.
    where
        Its path, whose ending says which of them it is.

    Raises
    ------
    InputError
        Where MindSpeed can not say the plan, the file is for another number of layers or
        says the split in a way that is not read, or flags stand where they can not be edited
        safely.
    """
    flags = mindspeed_flags(plan)
    file = flag_form(where)(text, where)
    unread = (*UNREAD_SPLITS, *UNREAD_RECOMPUTE)
    refuse_other_model(file, plan, where, unread, empty_places=_empty_places(file.given.get(NOOPS)))
    return put_flags(text, where, flags, flags_to_drop(flags, _REPLACED), _means)


def _empty_places(found: object) -> int:
    try:
        return len(set(parse_list(str(found), NOOPS))) if found is not None else 0
    except InputError:
        return 0


def _means(found: object, name: str, value: str) -> bool:
    """Whether a value that stands in a file means the wanted one already."""
    if name in SWITCHES:
        return True
    try:
        if name == _LAYOUT:
            return same_layout(found, value)
        if name == ROWS:
            return parse_rows(str(found).replace("'", "")) == parse_rows(value)
        if name in (LIST, NOOPS) and not isinstance(found, list):
            return parse_list(str(found), name) == parse_list(value, name)
    except InputError:
        return False
    return str(found) == value
