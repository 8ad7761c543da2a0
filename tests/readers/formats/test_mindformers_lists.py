"""MindFormers' lists are read as it runs them, and as our writer writes them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.problem import Problem
from sapp_ppb.readers.formats.mindformers_lists import counts_from_list, layers_from_offset, plan_from_lists
from sapp_ppb.writers import mindformers_lists
from tests.strategies import plans

ALL_TYPES = {recompute: 100.0 - recompute for recompute in Recompute}
LISTS = ("recompute", "select_recompute", "select_comm_recompute")


def problem_of(*counts, interleave=1, stages=2):
    bodies = tuple(
        layer_from_times(
            name=f"body{index}", kind=LayerKind.BODY, count=count, forward_ms=1, activation_mb=ALL_TYPES
        )
        for index, count in enumerate(counts)
    )
    model = Model(name="tiny", layers=bodies)
    return Problem(
        model=model, stages=stages, interleave=interleave, micro_batches=stages, min_layers_per_cell=0
    )


class TestOffset:
    @pytest.mark.parametrize(
        ("offset", "layers"),
        [
            (0, [[2, 2], [2, 2]]),
            ([1, -1], [[3, 1], [3, 1]]),  # one list holds for every chunk
            ([[1, -2], [0, 1]], [[3, 0], [2, 3]]),
        ],
    )
    def test_forms(self, offset, layers):
        assert layers_from_offset(offset, problem_of(8, interleave=2)).tolist() == layers

    def test_a_remainder_is_part_of_the_offsets(self):
        # 7 div 2 = 3 for each of the two cells, and 1 more somewhere
        assert layers_from_offset([0, 1], problem_of(7)).tolist() == [[3, 4]]

    @pytest.mark.parametrize(
        ("offset", "words"),
        [
            (0, "must add up to 7 mod 4 = 3, over 2 chunks"),
            ([1, 1], "must add up to 7 mod 4 = 3, over 2 chunks (got 4)"),  # 1 + 1 in each of two chunks
            ([[1, -2], [3, 1]], "leaves -1 layers for stage 1 chunk 0: 7 div 4 = 1 and -2; give at least -1"),
            ([1, 1, 1], "must be 0, a list with a number for each of the 2 stages, or 2 such lists"),
            ([[1, 1]], "or 2 such lists, one for each chunk (got [[1, 1]])"),
            ([[1, 1], 1], "(got [[1, 1], 1])"),
            ([[1, 1.5], [0, 0]], "(got [[1, 1.5], [0, 0]])"),
            ([[True, 1], [0, 0]], "(got [[True, 1], [0, 0]])"),
            (False, "(got False)"),
            (3, "(got 3)"),
            ("0", "(got '0')"),
            (None, "(got None)"),
            ([10**30, 0], "(got [1000"),
        ],
    )
    def test_refusals(self, offset, words):
        with pytest.raises(ValueError, match=r"^(must|leaves) ") as caught:
            layers_from_offset(offset, problem_of(7, interleave=2))
        assert words in str(caught.value)


class TestCounts:
    LAYERS = np.array([[1, 2], [4, 2]])

    @pytest.mark.parametrize(
        ("value", "counts"),
        [
            (None, [[0, 0], [0, 0]]),
            (0, [[0, 0], [0, 0]]),
            (False, [[0, 0], [0, 0]]),
            (True, [[1, 2], [4, 2]]),
            ([5, 3], [[1, 2], [4, 1]]),  # in turn: chunk 0, 1, 0, ... until a chunk is full
            ([2, 1], [[1, 1], [1, 0]]),
            ([True, False], [[1, 0], [4, 0]]),  # all bools: one a stage, as MindFormers reads it
            ([[1, 0], [3, 2]], [[1, 0], [3, 2]]),
            ([False, [4, True]], [[0, 0], [4, 2]]),
            ([True, [0, 0]], [[1, 2], [0, 0]]),
        ],
    )
    def test_forms(self, value, counts):
        assert counts_from_list(value, self.LAYERS).tolist() == counts

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ([6, 0], "counts 6 layers on stage 0, which has 5; count no more"),
            ([[1, 3], [0, 0]], "counts 3 layers on stage 1 chunk 0, which has 2; count no more"),
            ([-1, 0], "must be true, false, a list with a number for each of the 2 stages, or 2 such lists"),
            ([1, 2, 3], "(got [1, 2, 3])"),
            ([[1, 2]], "(got [[1, 2]])"),
            ([[1, 2], 1], "(got [[1, 2], 1])"),
            (1, "(got 1)"),
            ("all", "(got 'all')"),
            ({"mul": [1, 1]}, "(got {'mul': [1, 1]})"),
        ],
    )
    def test_refusals(self, value, words):
        with pytest.raises(ValueError, match=r"^(must|counts) ") as caught:
            counts_from_list(value, self.LAYERS)
        assert words in str(caught.value)

    def test_bools_for_chunks_are_not_guessed_where_mindformers_reads_stages(self):
        with pytest.raises(ValueError, match="number for each of the 3 stages"):
            counts_from_list([True, False], np.ones((2, 3), dtype=int))


def test_lists_count_from_the_first_layer_of_a_cell_whatever_its_kind():
    # Cells hold body0 x 2 and body0 + body1 x 3; full 1, select 3, comm 2 in the second:
    # its layers run FULL (body0), BOTH, SELECTIVE and NONE (body1).
    layers, full, select, comm = (np.array([row]) for row in ([2, 4], [0, 1], [0, 3], [0, 2]))
    plan = plan_from_lists(problem_of(3, 3), layers, full, select, comm)
    assert plan.counts[0, :, 0].tolist() == [2, 0, 0, 0, 0]
    assert plan.counts[0, :, 1].tolist() == [0, 0, 0, 0, 1]
    assert plan.counts[1, :, 1].tolist() == [1, 1, 0, 1, 0]


def test_a_layer_that_recompute_counts_is_full_even_where_the_others_do_not_count_it():
    rows = np.array([[3, 1]])
    plan = plan_from_lists(problem_of(4), rows, np.array([[2, 0]]), np.array([[1, 1]]), 0 * rows)
    assert plan.counts[0, :, 0].tolist() == [1, 0, 0, 0, 2]
    assert plan.counts[0, :, 1].tolist() == [0, 1, 0, 0, 0]


def test_a_type_that_the_model_does_not_give_is_refused():
    body = layer_from_times(
        name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1, activation_mb={Recompute.NONE: 9}
    )
    problem = Problem(model=Model(name="tiny", layers=(body,)), stages=1, micro_batches=1)
    rows = np.array([[2]])
    with pytest.raises(InputError, match="Dec is recomputed as both, for which the model gives no"):
        plan_from_lists(problem, rows, 0 * rows, rows, rows)


@given(plans())
def test_what_the_writer_says_of_a_plan_is_read_as_that_plan(plan):
    written = mindformers_lists(plan)
    layers = layers_from_offset([list(row) for row in written.offset], plan.problem)
    assert layers.tolist() == plan.per_chunk_and_stage(plan.layers_per_cell).tolist()
    if not written.silent:
        counts = [counts_from_list([list(row) for row in getattr(written, name)], layers) for name in LISTS]
        assert plan_from_lists(plan.problem, layers, *counts) == plan


@given(st.data(), st.integers(1, 4), st.integers(1, 3))
def test_legal_lists_are_written_as_they_were_read(data, stages, chunks):
    cells = stages * chunks
    sizes = [data.draw(st.integers(0, 4)) for _ in range(cells)]
    sizes[0] += 1  # a model has a layer
    problem = problem_of(sum(sizes), interleave=chunks, stages=stages)
    each = sum(sizes) // cells
    rows = np.array(sizes).reshape(chunks, stages)
    # FULL is counted in every list, so the others count no less.
    full = np.array([data.draw(st.integers(0, size)) for size in sizes]).reshape(rows.shape)
    others = [
        np.array(
            [data.draw(st.integers(low, size)) for low, size in zip(full.flat, sizes, strict=True)]
        ).reshape(rows.shape)
        for _ in range(2)
    ]
    offset, *lists = ((rows - each).tolist(), *(part.tolist() for part in (full, *others)))
    layers = layers_from_offset(offset, problem)
    written = mindformers_lists(
        plan_from_lists(problem, layers, *(counts_from_list(part, layers) for part in lists))
    )
    assert [list(map(list, written.offset)), *(list(map(list, getattr(written, n))) for n in LISTS)] == [
        offset,
        *lists,
    ]
