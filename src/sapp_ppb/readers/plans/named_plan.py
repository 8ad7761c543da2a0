"""A plan that a user gives, and what it is called."""

from dataclasses import dataclass, replace

from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem


@dataclass(frozen=True, kw_only=True)
class NamedPlan:
    """
    A plan from a file.

    Attributes
    ----------
    name
        Name of the entry in its file, or the path of a file that holds one plan.
    plan
        What it decides, for the problem that it is compared under.
    file_name
        Name of its picture, without a folder; None when it asks for none.
    """

    name: str
    plan: Plan
    file_name: str | None = None


def unbound(problem: Problem, **given: object) -> Problem:
    """
    Take away what binds a planner and no plan that exists: target, recompute types, what is fixed.

    Parameters
    ----------
    given
        Other fields to replace.
    """
    free = {"target": None, "recompute": None, "max_recompute_types": None, "fix": None}
    return replace(problem, **free | given)  # type: ignore[arg-type]  # names and values of its fields
