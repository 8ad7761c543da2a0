"""What the planner, the writers and the checks ask of a framework."""

from collections.abc import Callable
from dataclasses import dataclass

from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem


@dataclass(frozen=True, kw_only=True)
class Way:
    """
    One way in which a framework can say recompute.

    Attributes
    ----------
    problem
        The problem with what this way restricts.
    words
        Its setting in the framework's words; empty where there is but one way.
    """

    problem: Problem
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Target:
    """
    A framework that plans are made for.

    Attributes
    ----------
    name
        As ``--target`` and ``--to`` take it.
    title
        As people write it.
    refuses
        Why no plan of a problem can be said, a sentence each: its schedule, its sizes.
    ways
        Problems that between them hold every plan of a problem that can be said.
    unsaid
        Why a plan can not be said, a sentence each; none when it can.
    """

    name: str
    title: str
    refuses: Callable[[Problem], tuple[str, ...]]
    ways: Callable[[Problem], tuple[Way, ...]]
    unsaid: Callable[[Plan], tuple[str, ...]]
