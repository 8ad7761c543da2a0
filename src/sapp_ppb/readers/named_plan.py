"""A plan that a user gives, and what it is called."""

from dataclasses import dataclass

from sapp_ppb.plan import Plan


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
