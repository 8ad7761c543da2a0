"""
The judge of every order: each op once, in its place, and able to run.

It knows no schedule by name, so a generator's mistake, a file's and a user's
own order all meet the same judge.
"""

from collections.abc import Iterator, Mapping
from itertools import islice

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules.op import WHOLE, Op, OpKind, Schedule
from sapp_ppb.schedules.wording import SHOWN, check_sizes, cut_list, schedule_error

_F, _B, _I, _W = (1 << kind for kind in OpKind)
_COMPLETE = (_F | _B, _F | _I | _W)
_ALWAYS = -1  # slot of a tensor that nobody has to make


def check_schedule(schedule: Schedule, *, overlapping: bool = False) -> None:
    r"""
    Refuse an order that is incomplete, misplaced or can not run.

    Every cell must run F of every micro-batch once, and either B, or I and W.
    F needs the F of the cell before, B and I need the B or I of the cell after
    (in the last cell their own F), W needs its I.  Sequence chunks of a micro-batch
    go forward in their order and backward in the reverse, for each attends to all
    before it.

    Parameters
    ----------
    overlapping
        Whether an overlapped pair begins only when the inputs of both its ops are
        there; otherwise its backward may wait for what its forward makes.

    Raises
    ------
    ScheduleError
        Naming stage, op and what is allowed for every fault; or, for ops that
        wait for each other for ever, the op each stage is stuck on.

    Notes
    -----
    Linear in the number of ops.

    Examples
    --------
    >>> from sapp_ppb.schedules.parse import parse_csv
    >>> check_schedule(parse_csv("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n"))
    >>> check_schedule(parse_csv("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"))
    Traceback (most recent call last):
    sapp_ppb.errors.ScheduleError: these ops wait for each other: 0B0, 1F1
    """
    _check_shape(schedule)
    seen, faults = _place_ops(schedule)
    slots = schedule.cells * schedule.units
    whole = sum(kinds in _COMPLETE for kinds in seen.values())
    faults += islice(_incomplete(schedule, seen), SHOWN)
    # Only the first incomplete ones are spelled out, so count the others.
    total = len(faults) + max(0, slots - whole - SHOWN)
    if not faults:
        faults = list(_sequence_faults(schedule))
        total = len(faults)
    if faults:
        raise schedule_error(schedule.name, faults, total)
    _check_runs(schedule, overlapping=overlapping)


def _check_shape(schedule: Schedule) -> None:
    """Refuse sizes that no order can have."""
    check_sizes(
        schedule.name,
        stages=schedule.stages,
        chunks=schedule.chunks,
        micro_batches=schedule.micro_batches,
        sequence_chunks=schedule.sequence_chunks,
    )
    if len(schedule.rows) != schedule.stages:
        raise ScheduleError(
            f"{schedule.name}: found {len(schedule.rows)} rows, "
            f"needs one for each of {schedule.stages} stages"
        )


def _place_ops(schedule: Schedule) -> tuple[dict[int, int], list[str]]:
    """Kinds seen of each cell and unit, as bits, and the ops that are out of place."""
    cells, micro_batches, units = range(schedule.cells), range(schedule.micro_batches), schedule.units
    k = schedule.sequence_chunks
    pieces = range(k) if k > 1 else (WHOLE,)
    seen: dict[int, int] = {}
    faults = []
    for stage, row in enumerate(schedule.rows):
        for op in row:
            if op.cell in cells and op.micro_batch in micro_batches and op.sequence_chunk in pieces:
                slot, bit = op.cell * units + _unit(op, k), 1 << op.kind
                kinds = seen.get(slot, 0)
                # Also noted where it does not belong: an op on a wrong stage is not missing as well.
                seen[slot] = kinds | bit
                fault = " again; each op is allowed once" if kinds & bit else _away(schedule, stage, op)
            else:
                cut = f", sequence chunks run from 0 to {k - 1}" if k > 1 else ", which are not cut here"
                fault = f"; cells end at {cells[-1]}, micro-batches at {micro_batches[-1]}"
                fault += cut if k > 1 or op.sequence_chunk != WHOLE else ""
            if fault:
                faults.append(f"stage {stage}: found {op}{fault}")
    return seen, faults


def _unit(op: Op, k: int) -> int:
    """Place of an op's piece among all that run through a cell."""
    return op.micro_batch * k + op.sequence_chunk if k > 1 else op.micro_batch


def _away(schedule: Schedule, stage: int, op: Op) -> str:
    """Say on which other stage an op belongs, or nothing."""
    home = schedule.placement.stage_of(op.cell, schedule.stages)
    return "" if home == stage else f"; cell {op.cell} lives on stage {home}"


def _incomplete(schedule: Schedule, seen: dict[int, int]) -> Iterator[str]:
    """Cells and micro-batches whose ops do not make up one forward and one backward."""
    k = schedule.sequence_chunks
    for slot in range(schedule.cells * schedule.units):
        kinds = seen.get(slot, 0)
        if kinds not in _COMPLETE:
            cell, unit = divmod(slot, schedule.units)
            micro_batch, chunk = divmod(unit, k) if k > 1 else (unit, WHOLE)
            ops = (Op(kind, cell, micro_batch, chunk) for kind in OpKind if kinds & 1 << kind)
            stage = schedule.placement.stage_of(cell, schedule.stages)
            which = f"micro-batch {micro_batch}" + (f", sequence chunk {chunk}" if k > 1 else "")
            yield (
                f"stage {stage}: found {' '.join(map(str, ops)) or 'no op'} for cell {cell}, {which}; "
                "needs F and either B or both I and W"
            )


def _sequence_faults(schedule: Schedule) -> Iterator[str]:
    """Sequence chunks that run before one whose keys and values, or their gradients, they need."""
    k = schedule.sequence_chunks
    for stage, row in enumerate(schedule.rows if k > 1 else ()):
        # The chunk that is next in each cell and micro-batch, forward and backward.
        up: dict[tuple[int, int], int] = {}
        down: dict[tuple[int, int], int] = {}
        for op in row:
            if op.kind is OpKind.W:
                continue
            forward, place = op.kind is OpKind.F, (op.cell, op.micro_batch)
            following = up.get(place, 0) if forward else down.get(place, k - 1)
            if op.sequence_chunk != following:
                needed = op._replace(sequence_chunk=following)
                yield f"stage {stage}: found {op} before {needed}, which it needs"
                return
            if forward:
                up[place] = following + 1
            else:
                down[place] = following - 1


def _check_runs(schedule: Schedule, *, overlapping: bool) -> None:
    """Refuse a complete order whose ops wait for ever."""
    ends = _run(schedule, overlapping=overlapping)
    stuck = {stage: end for stage, end in enumerate(ends) if end < len(schedule.rows[stage])}
    # An op that stands before one it needs on its own stage is a cause; the other stages only wait for it.
    causes = [fault for stage, end in stuck.items() if (fault := _stands_before(schedule, stage, end))]
    if causes:
        raise schedule_error(schedule.name, causes)
    if stuck:
        raise stuck_error(schedule, stuck, "with overlapped pairs " if overlapping else "")


def stuck_error(schedule: Schedule, stuck: Mapping[int, int], where: str = "") -> ScheduleError:
    """
    Error that names the op which each stage waits to run.

    Parameters
    ----------
    stuck
        Place of that op in the row of each stage that has not ended.
    where
        What makes them wait, where the order alone does not.
    """
    ops = cut_list([str(schedule.rows[stage][end]) for stage, end in stuck.items()])
    return ScheduleError(f"{where}these ops wait for each other: {', '.join(ops)}")


def _run(schedule: Schedule, *, overlapping: bool) -> list[int]:
    """Run every stage as far as it gets, whatever ops cost, and count the ops of each."""
    cells, units, k = schedule.cells, schedule.units, schedule.sequence_chunks
    together = [set(schedule.pairs_of(stage) if overlapping else ()) for stage in range(schedule.stages)]
    made = bytearray(2 * cells * units + 1)
    made[_ALWAYS] = 1
    ends = [0] * schedule.stages
    waiting: dict[int, list[int]] = {}
    ready = list(range(schedule.stages))
    while ready:
        stage = ready.pop()
        row, pairs = schedule.rows[stage], together[stage]
        while ends[stage] < len(row):
            end = ends[stage]
            step = row[end : end + 2] if end in pairs else row[end : end + 1]
            need = next((n for op in step if not made[n := _needs(op, cells, units, k)]), None)
            if need is not None:
                waiting.setdefault(need, []).append(stage)
                break
            for op in step:
                result = _makes(op, cells, units, k)
                made[result] = 1
                ready += waiting.pop(result, ())
            ends[stage] += len(step)
    return ends


def _needs(op: Op, cells: int, units: int, k: int) -> int:
    """Slot of the tensor that an op needs; outputs come first, gradients ``cells`` rows later."""
    kind, cell, unit = op[0], op[1], _unit(op, k)
    if kind is OpKind.F:
        return (cell - 1) * units + unit if cell else _ALWAYS
    if kind is OpKind.W:
        source = cells + cell
    elif cell == cells - 1:
        source = cell
    else:
        source = cells + cell + 1
    return source * units + unit


def _makes(op: Op, cells: int, units: int, k: int) -> int:
    """Slot of the tensor that an op makes for others; a W makes none."""
    kind, cell, unit = op[0], op[1], _unit(op, k)
    if kind is OpKind.W:
        return _ALWAYS
    return (cell if kind is OpKind.F else cells + cell) * units + unit


def _stands_before(schedule: Schedule, stage: int, end: int) -> str:
    """Say which later op of its own stage a stuck op waits for, if it is one."""
    row, sizes = schedule.rows[stage], (schedule.cells, schedule.units, schedule.sequence_chunks)
    need = _needs(row[end], *sizes)
    later = next((op for op in row[end + 1 :] if _makes(op, *sizes) == need), None)
    return f"stage {stage}: found {row[end]} before {later}, which it needs" if later else ""
