"""The quick look at an order agrees with its judge, and its compiled sort with the plain one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules import Op, OpKind, Placement, Schedule, build_schedule, check_schedule
from sapp_ppb.simulator.complete import is_complete
from sapp_ppb.simulator.graph import build_graph, inputs_of
from sapp_ppb.simulator.order_kernel import sort_ops

SIZES = (
    ("gpipe", 3, 1, 4),
    ("1f1b", 4, 1, 6),
    ("interleaved", 2, 3, 4),
    ("interleaved-less-memory", 2, 2, 4),
    ("looped-bfs", 2, 2, 3),
    ("interleaved-zero-bubble", 2, 2, 4),
    ("zbv", 3, 2, 4),
    ("dualpipev", 2, 2, 6),
    ("zb-auto", 3, 1, 5),
)


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: sizes[0])
def test_every_generated_order_is_complete(sizes):
    assert is_complete(build_schedule(*sizes))


@given(sizes=st.sampled_from(SIZES), data=st.data())
def test_no_order_with_one_op_changed_is_complete_unless_its_judge_says_so(sizes, data):
    schedule = build_schedule(*sizes)
    rows = [list(row) for row in schedule.rows]
    row = rows[data.draw(st.integers(0, len(rows) - 1), "stage")]
    at = data.draw(st.integers(0, len(row) - 1), "place")
    op = row.pop(at)
    change = data.draw(st.sampled_from(["drop", "double", "cell", "micro-batch", "kind", "stage"]), "change")
    number = data.draw(st.sampled_from([-1, 0, 1, 2, 10**6, 10**18]), "number")
    if change == "double":
        row[at:at] = [op, op]
    elif change == "stage":
        rows[number % len(rows)].insert(0, op)
    elif change != "drop":
        changed = {"cell": {"cell": number}, "micro-batch": {"micro_batch": number}}
        row.insert(at, op._replace(**changed.get(change, {"kind": OpKind(number % len(OpKind))})))
    other = replace(schedule, rows=tuple(map(tuple, rows)), pairs=())
    try:
        check_schedule(other)
        judged = True
    except ScheduleError as error:
        # An order that can not run is complete all the same.
        judged = "wait for each other" in str(error) or "which it needs" in str(error)
    assert is_complete(other) is judged


def test_orders_with_sequence_chunks_take_a_closer_look():
    assert not is_complete(build_schedule("seq1f1b", 2, 1, 2, sequence_chunks=2))


@pytest.mark.parametrize("rows", [(), ((),), ((), ())])
def test_an_order_without_ops_is_not_complete(rows):
    assert not is_complete(
        Schedule(name="custom", stages=2, chunks=1, micro_batches=1, placement=Placement.LOOP, rows=rows)
    )


def test_a_complete_order_that_waits_for_itself_is_refused_with_its_cause():
    first = (Op(OpKind.B, 0, 0), Op(OpKind.F, 0, 0))
    schedule = Schedule(
        name="custom", stages=1, chunks=1, micro_batches=1, placement=Placement.LOOP, rows=(first,)
    )
    assert is_complete(schedule)
    with pytest.raises(ScheduleError, match="stage 0: found 0B0 before 0F0, which it needs"):
        build_graph(schedule)


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: sizes[0])
def test_the_compiled_sort_is_the_plain_one(sizes):
    ops = inputs_of(build_schedule(*sizes))
    number = len(ops.giver)

    def arguments():
        done = np.append(np.zeros(number, dtype=np.bool_), True)
        pairs = np.zeros(number, dtype=np.bool_)
        order = np.empty(number, dtype=np.int32)
        return ops.row_start, ops.giver, pairs, done, ops.row_start[:-1].copy(), order

    compiled, plain = arguments(), arguments()
    assert sort_ops(*compiled) == sort_ops.python(*plain) == number
    assert compiled[-1].tolist() == plain[-1].tolist()
