"""Configurations of torchtitan: what they run, which rules they break, and what is not known."""

from pathlib import Path

import pytest

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.readers.frameworks.torchtitan_config import read_torchtitan
from sapp_ppb.schedules import ScheduleName

CONFIGS = Path(__file__).parents[2] / "data" / "configs" / "torchtitan"
PARTS = (
    '[["tok_embeddings", "layers.0"], ["layers.1", "layers.2"], ["layers.3"], ["layers.4", "norm", "output"]]'
)

GAP = '[["tok_embeddings", "layers.0"], ["layers.2", "norm", "output"]]'


def read(tmp_path, text, layers=None, name="job.toml"):
    path = tmp_path / name
    path.write_text(text)
    return read_torchtitan(path, layers)


def job(*lines, degree=2, batch=4, tables=""):
    """TOML with some lines under parallelism."""
    rows = [f"pipeline_parallel_degree = {degree}", *lines]
    return "[parallelism]\n" + "\n".join(rows) + f"\n[training]\nlocal_batch_size = {batch}\n{tables}"


def lengths(config):
    return [[len(cell) for cell in row] for row in config.types]


def rules(config):
    return [str(rule) for rule in config.broken]


@pytest.mark.parametrize(
    ("name", "layers", "expected"),
    [
        # selective_ac_option '2': the second, the fourth and the sixth of 6
        ("debug_model.toml", 6, [0, 4, 0, 4, 0, 4]),
        # 'op': every one of DeepSeek-V3's 61
        ("deepseek_v3_671b.toml", 61, [1] * 61),
    ],
)
def test_real_files_run_no_pipeline_yet(name, layers, expected):
    config = read_torchtitan(CONFIGS / name, layers)
    assert (config.stages, config.interleave, config.micro_batches) == (1, 1, 1)
    assert config.types == ((tuple(map(Recompute, expected)),),)
    assert (config.broken, config.unknown) == ((), ())
    assert config.notes == ("pipeline_parallel_degree is 1: there is no pipeline yet",)


def test_a_real_file_does_not_say_how_many_layers_its_model_has():
    config = read_torchtitan(CONFIGS / "debug_model.toml")
    assert (config.layers, config.types) == (None, None)
    assert [text.split(":")[0] for text in config.unknown] == ["the layers of the model are not known"]


def test_lists_of_modules_decide_the_split(tmp_path):
    text = job(f"module_fqns_per_model_part = {PARTS}", 'pipeline_parallel_schedule = "Interleaved1F1B"')
    config = read(tmp_path, text)
    # Parts 0 to 3 hold 1, 2, 1 and 1 layers; rank 0 has parts 0 and 2.
    assert lengths(config) == [[1, 2], [1, 1]]
    # Without a table: selective, every second layer that a rank builds: the 2nd of 2, the 2nd of 3.
    none, full = Recompute.NONE, Recompute.FULL
    assert config.types == (((none,), (none, full)), ((full,), (none,)))
    assert (config.layers, config.micro_batches, config.schedule) == (5, 4, ScheduleName.INTERLEAVED)
    assert (config.broken, config.unknown, config.notes) == ((), (), ())


def test_on_a_v_a_rank_holds_the_parts_from_both_ends(tmp_path):
    text = job(f"module_fqns_per_model_part = {PARTS}", 'pipeline_parallel_schedule = "ZBVZeroBubble"')
    config = read(tmp_path, text)
    # Rank 0 has parts 0 and 3, rank 1 parts 1 and 2.
    assert lengths(config) == [[1, 2], [1, 1]]
    assert config.schedule is ScheduleName.ZBV
    assert config.types[1] == ((Recompute.FULL,), (Recompute.NONE,))  # rank 0's second, rank 1's third


def test_without_lists_the_split_is_torchtitans_own(tmp_path):
    config = read(tmp_path, job('pipeline_parallel_schedule = "Interleaved1F1B"', degree=4, batch=8), 32)
    # 34 = 5 + 5 + 4 x 6, one less at both ends
    assert lengths(config) == [[4, 5, 4, 4], [4, 4, 4, 3]]
    less = "pipeline_parallel_first_stage_less_layers = 0\npipeline_parallel_last_stage_less_layers = 2"
    config = read(tmp_path, job(less, degree=4), 32)
    # 34 = 9 + 9 + 8 + 8, two less at the end; 1F1B has one part a rank
    assert lengths(config) == [[9, 9, 8, 6]]


def test_layers_a_part_decide_how_many_parts_a_rank_has(tmp_path):
    lines = ("pipeline_parallel_layers_per_stage = 3", 'pipeline_parallel_schedule = "LoopedBFS"')
    config = read(tmp_path, job(*lines), 10)
    assert lengths(config) == [[2, 3], [3, 2]]  # ceil(12 / 3) = 4 parts of 3, one less at both ends
    config = read(tmp_path, job(lines[0]), 10)
    assert "this schedule wants one part a rank" in rules(config)[0]
    assert config.types is None


def test_micro_batches_are_samples_of_a_rank_by_samples_of_a_micro_batch(tmp_path):
    lists = f"module_fqns_per_model_part = {PARTS}"
    size = "pipeline_parallel_microbatch_size = 2"
    looped = 'pipeline_parallel_schedule = "LoopedBFS"'
    assert read(tmp_path, job(lists, looped, size, batch=16)).micro_batches == 8
    config = read(tmp_path, job(lists, looped, size, batch=15))
    assert config.micro_batches is None
    assert "must be a multiple of pipeline_parallel_microbatch_size (got 15 and 2)" in rules(config)[0]
    config = read(tmp_path, f"[parallelism]\npipeline_parallel_degree = 2\n{looped}\n{lists}\n")
    assert config.micro_batches == 8
    assert "training.local_batch_size is not given; torchtitan takes 8" in config.notes
    assert read(tmp_path, job(lists, looped, "num_pp_microbatches = 6")).micro_batches == 6


def test_groups_of_an_interleaved_schedule_are_torchs(tmp_path):
    text = job(
        f"module_fqns_per_model_part = {PARTS}", 'pipeline_parallel_schedule = "interleaved1f1b"', batch=6
    )
    assert read(tmp_path, text).micro_batch_group is None  # 6 // 2 = 3 rounds of 2, the usual number
    parts = "[" + ", ".join(f'["layers.{i}"]' for i in range(8)) + "]"
    text = job(
        f"module_fqns_per_model_part = {parts}",
        'pipeline_parallel_schedule = "interleaved1f1b"',
        batch=10,
        degree=4,
    )
    assert read(tmp_path, text).micro_batch_group == 5  # 10 // 4 = 2 rounds of 5


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((f"module_fqns_per_model_part = {PARTS}",), "1F1B runs one part a rank (got 4 parts for 2 ranks)"),
        (
            ('pipeline_parallel_schedule = "2F2B"', f"module_fqns_per_model_part = {PARTS}"),
            "must be one of 1F1B",
        ),
        (
            ('pipeline_parallel_schedule = "DualPipeV"', f"module_fqns_per_model_part = {PARTS}"),
            "dualpipev",  # 3 micro-batches for 4 parts
        ),
        ((f"module_fqns_per_model_part = {GAP}",), "layers.1"),
        (
            ('pipeline_parallel_schedule = "PipelineScheduleMulti"', f"module_fqns_per_model_part = {PARTS}"),
            "must be one of 1F1B",
        ),
    ],
)
def test_broken_rules_are_told_in_a_sentence(tmp_path, lines, words):
    (rule,) = rules(read(tmp_path, job(*lines, batch=3)))
    assert words in rule


def test_layers_that_are_dropped_are_seen_when_the_model_is_known(tmp_path):
    text = job(f"module_fqns_per_model_part = {PARTS}", 'pipeline_parallel_schedule = "LoopedBFS"')
    config = read(tmp_path, text, 6)
    assert config.layers == 6
    assert lengths(config) == [[1, 2], [1, 1]]  # what it would run
    assert "dropped without a word (got layers.5 in none)" in rules(config)[0]


@pytest.mark.parametrize(
    ("table", "expected", "words"),
    [
        ('mode = "full"', Recompute.FULL, None),
        ('mode = "none"', Recompute.NONE, None),
        ('mode = "selective"\nselective_ac_option = "op"', Recompute.SELECTIVE, None),
        ('mode = "selective"\nselective_ac_option = 1', Recompute.FULL, None),
        ('mode = "everything"', None, "must be one of none, full, selective, memory_budget"),
        ('mode = "selective"\nselective_ac_option = "x"', None, "must be 'op' or a number of layers"),
    ],
)
def test_modes_of_checkpointing(tmp_path, table, expected, words):
    lists = 'module_fqns_per_model_part = [["tok_embeddings", "layers.0"], ["layers.1", "norm", "output"]]'
    config = read(tmp_path, job(lists, tables=f"[activation_checkpoint]\n{table}"))
    if words is None:
        assert config.types == (((expected,), (expected,)),)
        assert config.broken == ()
    else:
        assert config.types is None
        assert words in rules(config)[0]


def test_a_memory_budget_is_not_known(tmp_path):
    config = read(tmp_path, job(degree=1, tables='[activation_checkpoint]\nmode = "memory_budget"'), 4)
    assert config.types is None
    assert config.unknown == ("mode memory_budget leaves to the compiler what is recomputed",)


def with_order(tmp_path, *lines, batch=8, path="custom_schedule.csv"):
    (tmp_path / "custom_schedule.csv").write_bytes((CONFIGS / "custom_schedule.csv").read_bytes())
    text = job(
        f"module_fqns_per_model_part = {PARTS}",
        f'pipeline_parallel_schedule_csv = "{path}"',
        *lines,
        batch=batch,
    )
    return read(tmp_path, text)


def test_a_real_order_is_read_beside_the_configuration(tmp_path):
    config = with_order(tmp_path, 'pipeline_parallel_schedule = "PipelineScheduleMulti"')
    assert (config.broken, config.unknown) == ((), ())
    assert config.schedule is ScheduleName.CUSTOM
    assert config.order_file.path == "custom_schedule.csv"
    assert config.order_file.text.startswith("0F0,0F1,0F2")
    assert (config.interleave, config.micro_batches) == (2, 8)


def test_an_order_that_does_not_go_with_the_rest_is_a_broken_rule(tmp_path):
    loop = 'pipeline_parallel_schedule = "Interleaved1F1B"'
    assert "holds 8 micro-batches (asked for 4)" in rules(with_order(tmp_path, loop, batch=4))[0]
    on_a_v = with_order(tmp_path, 'pipeline_parallel_schedule = "ZBVZeroBubble"')
    assert "decides where the parts go also when an order is given" in rules(on_a_v)[0]
    assert "use Interleaved1F1B" in rules(on_a_v)[0]
    (tmp_path / "bad.csv").write_text("0X0")
    assert "must be an order that can run" in rules(with_order(tmp_path, loop, path="bad.csv"))[0]


def test_an_order_that_is_not_there_is_not_known(tmp_path):
    config = with_order(tmp_path, path="elsewhere.csv")
    assert config.schedule is None
    assert config.unknown == (
        "pipeline_parallel_schedule_csv is not known: elsewhere.csv: there is no such file; check the path",
    )


def test_variables_of_a_shell_are_filled_in_or_not_known(tmp_path):
    lists = f"module_fqns_per_model_part = {PARTS}"
    schedule = 'pipeline_parallel_schedule = "LoopedBFS"'
    config = read(tmp_path, job(lists, schedule, degree='"${PP:-2}"', batch='"$BATCH"'))
    assert (config.stages, config.micro_batches) == (2, None)
    assert config.unknown == (
        "local_batch_size is not known: '$BATCH' is a variable of the shell that starts it",
    )
    config = read(tmp_path, job(lists, schedule, degree='"${PP}"'))
    assert (config.stages, config.types) == (None, None)
    assert "pipeline_parallel_degree is not known" in config.unknown[0]


def test_older_releases_cut_at_split_points(tmp_path):
    text = """[experimental]
pipeline_parallel_degree = 2
pipeline_parallel_split_points = ["layers.1", "layers.4", "layers.5"]
pipeline_parallel_schedule = "interleaved_1f1b"
[training]
batch_size = 8
"""
    config = read(tmp_path, text, 8)
    assert lengths(config) == [[1, 3], [1, 3]]  # 0 | 1 2 3 | 4 | 5 6 7
    assert (config.micro_batches, config.schedule) == (2, ScheduleName.INTERLEAVED)  # as many as ranks
    assert "rising order" in rules(read(tmp_path, text, 5))[0]
    assert read(tmp_path, text.replace("layers.5", "layers.x"), 8).types is None
    missing = read(tmp_path, "[experimental]\npipeline_parallel_degree = 2\n", 8)
    assert "no split points are given" in missing.unknown[0]


def test_python_is_read_like_toml(tmp_path):
    text = """
def small():
    config = Trainer.Config(
        training=TrainingConfig(local_batch_size=4),
        parallelism=ParallelismConfig(
            pipeline_parallel_degree=2,
            pipeline_parallel_schedule="Interleaved1F1B",
            pipeline_parallel_module_fqns_per_model_part=[
                ["tok_embeddings", "layers.0"],
                *[[f"layers.{i}"] for i in range(1, 3)],
                ["layers.3", "norm", "lm_head"],
            ],
        ),
    )
    return config

def large():
    return Trainer.Config(parallelism=ParallelismConfig(pipeline_parallel_degree=PP))
"""
    path = tmp_path / "registry.py"
    path.write_text(text)
    config = read_torchtitan(f"{path}::small")
    assert (config.stages, config.micro_batches, config.layers) == (2, 4, 4)
    # What checkpointing a release takes when nothing says it differs, so the types are open.
    assert config.types is None
    assert "activation_checkpoint is not given" in config.unknown[0]
    config = read_torchtitan(f"{path}::large")
    assert "pipeline_parallel_degree is not known: line 18 gives 'PP'" in config.unknown[0]
    assert any("micro-batches are not known" in text for text in config.unknown)
    with pytest.raises(InputError, match="holds 2 configurations"):
        read_torchtitan(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[parallelism]\npipeline_parallel_degree = 0\npipeline_parallel_schedule = 3\n[training]\n"
            "local_batch_size = true",
            r"(?s)3 faults.*degree must be a whole number.*schedule must be text \(got 3\).*size must be",
        ),
        ("parallelism = 3", r"parallelism must be a table \(got 3\)"),
        ("[parallelism]\npipeline_parallel_degree = nan", r"whole number from 1 to 4096 \(got nan\)"),
        (
            "[parallelism]\nmodule_fqns_per_model_part = []",
            "must be a list with a list of modules for each part",
        ),
        ("[parallelism]\nmodule_fqns_per_model_part = [['a'], [3]]", r"part\[1\] must be a list of names"),
        ("[experimental]\npipeline_parallel_degree = 2\npipeline_parallel_split_points = 'x'", "of names"),
    ],
)
def test_what_is_of_a_wrong_type_is_refused_all_at_once(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        read(tmp_path, text)
