"""The init YAML in all its forms, and one message for all that is wrong in it."""

import pytest

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.readers.older.init_yaml import read_init

PIPELINE = "pipeline_config: {pipeline_num: 4, num_layer: 8, offset: 0}\n"
USAGE = (
    "memory_usage:\n  head_memory: 100\n  tail_memory: 50.5\n"
    "  body_memories: {stage_id: [1, 2], memories: [80, 70]}\n"
)


def written(tmp_path, content):
    path = tmp_path / "init.yaml"
    path.write_text(content, encoding="utf-8")
    return path


def refusal(tmp_path, content):
    with pytest.raises(InputError) as caught:
        read_init(written(tmp_path, content))
    return caught.value.faults


def layers(run, recompute=None):
    counts = run.plan.counts[0]
    return (counts.sum(axis=0) if recompute is None else counts[recompute]).tolist()


def test_one_round(tmp_path):
    content = (
        "pipeline_config: {pipeline_num: 4, num_layer: 8, offset: [1, -1, 0, 0]}\n"
        "recompute_config: {recompute: [1, 0, 2, 0], select_recompute: false}\n" + USAGE
    )
    (run,) = read_init(written(tmp_path, content)).runs
    assert layers(run) == [3, 1, 2, 2]
    assert layers(run, Recompute.FULL) == [1, 0, 2, 0]
    assert run.peak_mb == {0: 100.0, 1: 80.0, 2: 70.0, 3: 50.5}
    assert run.plan.problem.micro_batches == 4


@pytest.mark.parametrize("recompute", ["true", "[2, 2, 2, 2]"])
def test_all_or_a_list(tmp_path, recompute):
    content = f"{PIPELINE}recompute_config: {{recompute: {recompute}}}\n{USAGE}"
    (run,) = read_init(written(tmp_path, content)).runs
    assert layers(run, Recompute.FULL) == [2, 2, 2, 2]


def test_no_recompute_section_is_none(tmp_path):
    (run,) = read_init(written(tmp_path, PIPELINE + USAGE)).runs
    assert layers(run, Recompute.NONE) == [2, 2, 2, 2]


def test_several_rounds_and_the_head_of_the_first(tmp_path):
    content = (
        "pipeline_config: {pipeline_num: 4, num_layer: 8, offset: [[0, 1, -1, 0], 0]}\n"
        "recompute_config: {recompute: [[1, 1, 1, 1], true], select_recompute: [false, false],\n"
        "  select_comm_recompute: false}\n"
        "memory_usage:\n  head_memory: 9\n"
        "  body_memories: {stage_id: [[1], [0, 2]], memories: [[8], [7, null]]}\n"
    )
    first, second = read_init(written(tmp_path, content)).runs
    assert (layers(first), layers(second)) == ([2, 3, 1, 2], [2, 2, 2, 2])
    assert layers(second, Recompute.FULL) == [2, 2, 2, 2]
    assert (first.peak_mb, second.peak_mb) == ({0: 9.0, 1: 8.0}, {0: 7.0})


def test_times_and_profile(tmp_path):
    content = (
        f"{PIPELINE}{USAGE}time_config: {{head: 30, body: 100, tail: 90.5}}\n"
        "profiling_config: {micro_batch_num: 8, folder_path: traces, tail_layers: [lm_head-Linear, Norm]}\n"
    )
    found = read_init(written(tmp_path, content))
    assert found.times is not None
    assert found.profile is not None
    assert (found.times.head_ms, found.times.body_ms, found.times.tail_ms) == (30.0, 100.0, 90.5)
    assert found.profile.body == ("LLamaDecodeLayer",)
    assert found.profile.tail == ("lm_head-Linear", "Norm")
    assert found.profile.micro_batches == 8
    assert found.runs[0].plan.problem.micro_batches == 4  # of the dry run, whose timeline is another run's
    assert read_init(written(tmp_path, content), 16).runs[0].plan.problem.micro_batches == 16


def test_all_faults_are_named_at_once(tmp_path):
    content = (
        "pipeline_config: {pipeline_num: 4, num_layer: 8, offset: [1, 0, 0, 0]}\n"
        "recompute_config: {recompute: [1]}\n"
        "time_config: {head: -1, body: x}\n"
        "profiling_config: {folder_path: 3}\n"
        "memory_usage:\n"
        "  head_memory: -5\n"
        "  body_memories:\n"
        "    stage_id: [1, 9, 0]\n"
        "    memories: [oops, 2, 7]\n"
    )
    assert refusal(tmp_path, content) == (
        "profiling_config.micro_batch_num must be an integer of at least 1 (got None)",
        "profiling_config.folder_path (line 4) must be a path (got 3)",
        "time_config.head (line 3) must be a number above 0 (got -1)",
        "time_config.body (line 3) must be a number above 0 (got 'x')",
        "time_config.tail is missing",
        "pipeline_config.offset (line 1) must add up to 8 mod 4 = 0 (got 1), so that each layer has a place",
        "memory_usage.head_memory (line 6) must be a number above 0 (got -5)",
        "memory_usage.body_memories.memories[0] (line 9) must be a number above 0 (got 'oops')",
        "memory_usage.body_memories.stage_id (line 8) must name stages from 0 to 3 (got 9)",
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a: 1", "pipeline_config is missing"),
        (PIPELINE, "memory_usage is missing"),
        (f"pipeline_config: 3\n{USAGE}", "pipeline_config (line 1) must hold keys and values (got 3)"),
        (
            f"pipeline_config: {{pipeline_num: 0, num_layer: 8}}\n{USAGE}",
            "pipeline_num (line 1) must be an integer",
        ),
        (f"pipeline_config: {{num_layer: 8}}\n{USAGE}", "pipeline_config.pipeline_num is missing"),
        (f"{PIPELINE}recompute_config: 3\n{USAGE}", "recompute_config (line 2) must hold keys and values"),
        (
            f"{PIPELINE}memory_usage: {{body_memories: {{stage_id: [1, 2], memories: [3]}}}}",
            "names 2 stages and 1 memories in round 0",
        ),
        (f"{PIPELINE}memory_usage: {{body_memories: 3}}", "must hold stage_id and memories (got 3)"),
        (f"{PIPELINE}memory_usage: {{body_memories: {{stage_id: 1}}}}", "stage_id (line 2) must be a list"),
        (
            f"{PIPELINE}memory_usage: {{head_memory: 1, body_memories: {{stage_id: [0], memories: [2]}}}}",
            "is another peak of stage 0, which has 1 already; keep one",
        ),
        (
            "pipeline_config: {pipeline_num: 2, num_layer: 4, offset: [[0, 0], [0, 0]]}\n"
            "recompute_config: {recompute: [[1, 1]]}\nmemory_usage: {}",
            "recompute_config.recompute (line 2) must be a list of 2 rounds, as offset is (got [[1, 1]])",
        ),
    ],
)
def test_a_fault_is_named(tmp_path, content, said):
    assert any(said in fault for fault in refusal(tmp_path, content))
