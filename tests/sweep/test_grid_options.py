"""Grids as text of a command line and as YAML."""

import pytest

from sapp_ppb.costs import Recompute
from sapp_ppb.costs.strategy import numbered
from sapp_ppb.errors import InputError
from sapp_ppb.schedules import P2PMode, ScheduleName
from sapp_ppb.sweep import list_candidates
from sapp_ppb.sweep.grid_options import read_grid
from sapp_ppb.sweep.work import Effort
from tests.sweep.conftest import MODEL

NEEDED = {"devices": 8, "global-batch": 64}


@pytest.fixture
def grid_file(tmp_path):
    """Write a grid."""

    def write(text):
        path = tmp_path / "grid.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_recompute_may_name_the_strategies_of_a_model():
    types = numbered(("swap",))
    grid, _ = read_grid(None, NEEDED | {"recompute": "none,swap"}, types)
    assert grid.given == {"recompute": (types[0], types[5])}
    with pytest.raises(InputError, match=r"--recompute must be one or more of none, .*, full, swap"):
        read_grid(None, NEEDED | {"recompute": "none,swp"}, types)


def test_options_as_text():
    grid, effort = read_grid(
        None,
        NEEDED
        | {
            "stages": "2,4-6",
            "interleave": "1-3",
            "schedule": "1f1b, interleaved",
            "memory-limit": "40000:48000:4000,56000",
            "recompute": "none,full",
            "memory-margin": "5%",
            "p2p-mode": "blocking",
            "gap": "1%",
            "target": None,
        },
    )
    assert (grid.stages, grid.interleave) == ((2, 4, 5, 6), (1, 2, 3))
    assert grid.schedules == (ScheduleName.ONE_F_ONE_B, ScheduleName.INTERLEAVED)
    assert grid.memory_limits_mb == (40_000, 44_000, 48_000, 56_000)
    assert grid.given == {
        "recompute": (Recompute.NONE, Recompute.FULL),
        "memory_margin": "5%",
        "p2p_mode": P2PMode.BLOCKING,
    }
    assert effort == Effort(gap=0.01)


def test_a_file_says_the_same_and_limits_by_stage(grid_file):
    path = grid_file(
        "devices: 8\nglobal_batch: 64\nstages: [2, 4-6]\nschedule: auto\ntime-limit: 5\nseed: 7\n"
        "memory-limit: [56000, [40000, 50000], null, 60000:64000:2000]\nrecompute-working-set: true\n"
    )
    grid, effort = read_grid(path, {})
    assert grid.stages == (2, 4, 5, 6)
    assert (grid.schedules, grid.every_schedule) == ((), True)
    assert grid.memory_limits_mb == (56_000, (40_000, 50_000), None, 60_000, 62_000, 64_000)
    assert grid.given == {"recompute_working_set": True}
    assert effort == Effort(time_limit_s=5.0, seed=7)


def test_a_file_and_options_fill_one_grid(grid_file):
    grid, _ = read_grid(grid_file("global-batch: 64\ninterleave: 2"), {"devices": 8})
    assert (grid.devices, grid.global_batch, grid.interleave) == (8, 64, (2,))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("stages", "2,x", "--stages must hold whole numbers, or ranges such as 1-4"),
        ("stages", "8-4", r"--stages has a range that is empty or too long \(8-4\)"),
        ("stages", "1-999999999", "has a range that is empty or too long"),
        ("stages", "0", "stages must be a whole number from 1 to"),
        ("memory-limit", "56,000", "looks like one number with a thousands comma; write 56000"),
        ("memory-limit", "1:2", "has a range that is not first:last:step"),
        ("memory-limit", "4000:1000:100", "has a range that is empty or too long"),
        ("memory-limit", "1:100000000:1", "has a range that is empty or too long"),
        ("memory-limit", "1:2:0", "has a range that is empty or too long"),
        ("memory-limit", "nan", "--memory-limit must be a number"),
        ("memory-limit", "inf", "--memory-limit must be a number"),
        ("memory-limit", "1_000", "--memory-limit must be a number"),
        ("schedule", "1f1b,zig", "--schedule must be one of gpipe"),
        ("schedule", "1f1b,auto", "names schedules beside auto"),
        ("recompute", "some", "--recompute must be one or more of none, selective"),
        ("p2p-mode", "later", "--p2p-mode must be one of async, blocking"),
        ("micro-batch-group", "x", "--micro-batch-group must be a whole number"),
        ("gap", "x%", "--gap must be a number"),
        ("gap", "1.5", "gap must be at least 0 and below 1"),
        ("time-limit", 0.0, "time-limit must be above 0"),
        ("seed", -1, "seed must be a whole number from 0"),
    ],
)
def test_an_option_that_can_not_be_is_refused(name, text, words):
    with pytest.raises(InputError, match=words):
        read_grid(None, NEEDED | {name: text})


def test_all_faults_of_the_options_come_at_once():
    with pytest.raises(InputError) as raised:
        read_grid(None, {"stages": "x", "memory-limit": "y"})
    assert len(raised.value.faults) == 4  # these two, and what is missing
    assert "--devices must be given" in raised.value.faults


def test_all_faults_of_a_file_come_at_once_with_their_lines(grid_file):
    text = "devices: 8\ndevices: 9\nstage: 4\nstages: {a: 1}\nseed: true\ngap: .inf\nmemory-limit: []\n"
    with pytest.raises(InputError) as raised:
        read_grid(grid_file(text), {})
    faults = "\n".join(raised.value.faults)
    for words in (
        "gives a key more than once ('devices')",
        "stage (line 3) is unknown; one of devices, global-batch",
        "stages (line 4) must hold whole numbers",
        "seed (line 5) must be a whole number (got True)",
        "gap (line 6) must be a finite number",
        "memory-limit (line 7) must hold at least one value",
    ):
        assert words in faults


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2]", "must hold keys and values"),
        ("devices: 8\nglobal-batch: 64\nglobal_batch: 64", "global_batch .line 3. is given twice; keep one"),
        ("devices: 8\nglobal-batch: 64", "devices .line 1. is given on the command line too; keep one"),
        ("global-batch: &a [*a]", "refers to what it is a part of"),
    ],
)
def test_a_file_that_can_not_be_is_refused(text, words, grid_file):
    with pytest.raises(InputError, match=words):
        read_grid(grid_file(text), {"devices": 8})


def test_speeds_and_times_after_the_last_op_are_those_of_every_stage(grid_file):
    path = grid_file("devices: 8\nglobal-batch: 64\nstages: 2\nstage-speed: [1, 0.5]\nstep-extra: 3\n")
    grid, _ = read_grid(path, {})
    assert grid.given == {"stage_speed": (1.0, 0.5), "step_extra_ms": 3.0}
    grid, _ = read_grid(None, NEEDED | {"stage-speed": "1,0.5", "step-extra": "3,4"})
    assert grid.given == {"stage_speed": (1.0, 0.5), "step_extra_ms": (3.0, 4.0)}


def test_other_numbers_of_stages_than_there_are_speeds_are_skipped():
    grid, _ = read_grid(None, NEEDED | {"stages": "2,4", "interleave": "1", "stage-speed": "1,0.5"})
    found, skipped = list_candidates(MODEL, grid)
    assert [each.problem.stages for each in found] == [2]
    assert [each.reason for each in skipped] == ["stage-speed must be one number or 4 of them (got 2)"]
