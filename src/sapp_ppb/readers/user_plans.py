"""
The plans that a user already has, put under one problem so that they can be compared.

What a plan decides stays its own: layers, recompute, chunks, schedule.  What is given
is the problem's: model, stages, micro-batches, limits, links and devices.
"""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from sapp_ppb.costs import Model
from sapp_ppb.costs.checks import printable
from sapp_ppb.errors import FileNote, InputError, PpbError, ScheduleError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.readers.config_plan import plan_of_config
from sapp_ppb.readers.frameworks.framework import framework_of, read_config
from sapp_ppb.readers.older.manual_plan import read_manual_plans
from sapp_ppb.readers.plans.named_plan import NamedPlan, unbound
from sapp_ppb.readers.plans.plan_file import read_plan

_YAML_SUFFIXES = (".yaml", ".yml")
# What is taken from the problem and not from a plan file.
_GIVEN = (
    "micro_batches",
    "memory_limit_mb",
    "constant_memory_mb",
    "memory_margin",
    "p2p_ms",
    "p2p_mode",
    "recompute_working_set",
    "stage_speed",
    "step_extra_ms",
)


def is_yaml(path: str | PathLike[str]) -> bool:
    """Whether a file is to be read as YAML, by its name."""
    return Path(path).suffix.lower() in _YAML_SUFFIXES


def read_user_plans(path: str | PathLike[str], problem: Problem) -> tuple[NamedPlan, ...]:
    """
    Plans of a plan file, of a framework's configuration or of a manual YAML, for a problem.

    Parameters
    ----------
    path
        What its content says that it is; else a name that ends in .yaml or .yml is a
        manual YAML, any other a plan file.
    problem
        What they are to be compared under.  Its target and recompute types bind none.

    Returns
    -------
    tuple
        The one plan of a file, under its path; those of a manual YAML under their names.

    Warns
    -----
    FileNote
        When a plan file was made for other micro-batches, limits, links or devices, or a
        configuration breaks a rule of its framework.

    Raises
    ------
    InputError
        If the file can not be read, holds no plan, or one of another model or of other stages.
    """
    if framework_of(path) is not None:
        given = {name: getattr(problem, name) for name in ("stages", *_GIVEN)}
        plan = read_config_plan(path, problem.model, given)
        return (NamedPlan(name=printable(str(path)), plan=plan),)
    if is_yaml(path):
        return read_manual_plans(path, problem)
    return (NamedPlan(name=printable(str(path)), plan=_plan_under(path, problem)),)


def read_config_plan(path: str | PathLike[str], model: Model, given: Mapping[str, Any]) -> Plan:
    """
    Plan that a framework's configuration runs, however well.

    Parameters
    ----------
    given
        Fields of ``Problem`` that count before what the file says.

    Warns
    -----
    FileNote
        For every rule of the framework that the configuration breaks.

    Raises
    ------
    InputError
        If the file can not be read or says too little, or its model is another.
    """
    config = read_config(path, layers=model.body_count, micro_batches=given.get("micro_batches"), model=model)
    for rule in config.broken:
        warnings.warn(f"{path}: breaks a rule: {rule}", FileNote, stacklevel=3)
    try:
        return plan_of_config(config, model, given)
    except ScheduleError as error:
        raise InputError(str(path), [str(error)]) from None


def read_all_plans(
    paths: Iterable[str | PathLike[str]], problem: Problem, taken: Iterable[str] = ()
) -> tuple[NamedPlan, ...]:
    """
    Plans of several files, each under a name that no other has.

    Parameters
    ----------
    taken
        Names that are not to be given again.

    Raises
    ------
    InputError
        As ``read_user_plans()``, and if two plans ask for the same picture.
    """
    plans: list[NamedPlan] = []
    names, pictures = set(taken), set[str]()
    for path in paths:
        for plan in read_user_plans(path, problem):
            name, times = plan.name, 1
            while name in names:
                times += 1
                name = f"{plan.name} ({printable(str(path))})" if times == 2 else f"{plan.name} ({times})"
            if plan.file_name in pictures:
                fault = f"{plan.name}.file_name is {plan.file_name!r}, as in a file before; give another name"
                raise InputError(str(path), [fault])
            names.add(name)
            pictures |= {plan.file_name} if plan.file_name is not None else set()
            plans.append(replace(plan, name=name))
    return tuple(plans)


def _plan_under(path: str | PathLike[str], problem: Problem) -> Plan:
    """Plan of a plan file, under what is given now."""
    outcome = read_plan(path, problem.model)
    theirs, where = outcome.problem, str(path)
    if outcome.plan is None:
        raise InputError(where, ["holds no plan, because none fits; plan with a higher --memory-limit"])
    if theirs.stages != problem.stages:
        fault = f"is a plan for {theirs.stages} stages, not {problem.stages}; give one for as many"
        raise InputError(where, [fault])
    given = {name: getattr(problem, name) for name in _GIVEN}
    try:
        asked = unbound(theirs, **given)
        plan = Plan(problem=asked, counts=outcome.plan.counts)
    except InputError as error:
        raise InputError(where, error.faults) from None
    except PpbError as error:
        raise InputError(where, [str(error)]) from None
    said = [
        f"{name} {_said(value)} ({_said(getattr(theirs, name))} in the file)"
        for name, value in given.items()
        if getattr(theirs, name) != value
    ]
    if said:
        warnings.warn(f"{where}: timed with {', '.join(said)}", FileNote, stacklevel=3)
    return plan


def _said(value: object) -> str:
    """Say a number, a list of them, text or nothing, in few words."""
    if isinstance(value, tuple):
        return ", ".join(_said(number) for number in value[:3]) + (", ..." if len(value) > 3 else "")
    if value is None:
        return "none"
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)
