"""Which recompute types a problem allows its layers."""

import re
from typing import Any

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.price import layer_tables
from tests.problem.problems import problem


def with_types(**changes: Any) -> Problem:
    """Eight layers that can be NONE or FULL."""
    memory = {Recompute.NONE: 10, Recompute.FULL: 1}
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1, activation_mb=memory)
    head = layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=1)
    return problem(model=Model(name="small", layers=(head, body)), **changes)


def test_a_layer_considers_its_types_that_are_allowed() -> None:
    narrow = with_types(recompute=[Recompute.FULL, Recompute.COMM])
    head, body = narrow.model.layers
    assert narrow.considered(body) == (Recompute.FULL,)
    assert narrow.considered(head) == (Recompute.NONE,)  # which has no other
    assert layer_tables(narrow).considered.tolist() == [[False, False, False, False, True]]
    assert with_types().considered(body) == (Recompute.NONE, Recompute.FULL)


def test_all_types_are_no_restriction_and_their_order_does_not_matter() -> None:
    assert with_types(recompute=tuple(Recompute)) == with_types()
    backwards = with_types(recompute=(Recompute.FULL, Recompute.NONE, Recompute.FULL))
    assert backwards.recompute == (Recompute.NONE, Recompute.FULL)


def test_a_layer_that_is_left_without_a_type_is_refused() -> None:
    words = (
        "problem: layer 'Dec' can be none, full, and recompute allows only selective; "
        "allow one of the layer's types too, or give the memory of another type in the model file"
    )
    with pytest.raises(InputError, match=re.escape(words)):
        with_types(recompute=(Recompute.SELECTIVE,))


@pytest.mark.parametrize("wrong", [(), "full", ("full",), 4])
def test_types_that_are_none_are_refused(wrong) -> None:
    with pytest.raises(
        InputError, match="recompute must list at least one of none, selective, comm, both, full"
    ):
        with_types(recompute=wrong)


def test_a_plan_may_not_use_a_type_that_the_problem_forbids() -> None:
    counts = np.zeros((1, 5, 4), dtype=int)
    counts[0, Recompute.FULL] = 2
    Plan(problem=with_types(), counts=counts)
    with pytest.raises(
        InputError, match="Dec is recomputed as full, which the problem forbids: its recompute is none"
    ):
        Plan(problem=with_types(recompute=(Recompute.NONE,)), counts=counts)
