"""Scripts of PyTorch's pipelining: what is read, every rule, and what is not known."""

import json

import pytest

from sapp_ppb.readers.frameworks.pytorch_config import read_pytorch
from sapp_ppb.schedules import ScheduleName

TWO = "PIPELINE_STAGES = [(0, 0, 2), (1, 2, 4)]\nN_MICROBATCHES = 4\n"
FOUR = "PIPELINE_STAGES = [(0, 0, 1), (1, 1, 2), ({}, 2, 3), ({}, 3, 4)]\nN_MICROBATCHES = 4\n"
LOOP, V = FOUR.format(0, 1), FOUR.format(1, 0)


def read(tmp_path, text, layers=None, name="job.py"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_pytorch(path, layers)


def labels(config):
    assert config.types is not None
    return [["".join(r.label[0] for r in cell) for cell in row] for row in config.types]


def test_a_script_of_the_tutorial_is_read(tmp_path):
    text = """
from torch.distributed.pipelining import pipeline, ScheduleGPipe, SplitPoint
pipe = pipeline(
    module=model,
    mb_args=(x,),
    split_spec={"layers.4": SplitPoint.BEGINNING},
)
schedule = ScheduleGPipe(stage, n_microbatches=8, loss_fn=loss)
"""
    config = read(tmp_path, text, layers=7)
    assert labels(config) == [["nnnn", "nnn"]]
    assert (config.schedule, config.micro_batches) == (ScheduleName.GPIPE, 8)
    assert (config.broken, config.unknown) == ((), ())


def test_stages_lie_round_by_round_or_on_a_v(tmp_path):
    wrapped = 'CHECKPOINT_LAYERS = {2: "full", 3: "selective"}\n'
    loop = read(tmp_path, LOOP + wrapped + 'SCHEDULE_CLASS = "Interleaved1F1B"')
    assert labels(loop) == [["n", "n"], ["f", "s"]]
    on_a_v = read(tmp_path, V + wrapped + 'SCHEDULE_CLASS = "ZBVZeroBubble"')
    assert labels(on_a_v) == [["n", "n"], ["s", "f"]]
    assert loop.broken == on_a_v.broken == ()


def test_json_has_the_same_names(tmp_path):
    values = {
        "pipeline_stages": [[0, 0, 2], [1, 2, 4]],
        "split_spec": {"layers.2": "BEGINNING"},
        "n_microbatches": 4,
        "schedule_class": "1F1B",
        "checkpoint_layers": {"1": "full"},
    }
    config = read(tmp_path, json.dumps(values), name="plan.json")
    assert labels(config) == [["nf", "nn"]]
    assert (config.broken, config.unknown) == ((), ())


def test_an_order_of_ones_own_is_found_beside_the_file(tmp_path):
    (tmp_path / "order.csv").write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    text = TWO.replace("4\n", "2\n") + 'SCHEDULE_CSV = "order.csv"'
    config = read(tmp_path, text)
    assert (config.schedule, config.broken, config.unknown) == (ScheduleName.CUSTOM, (), ())
    assert config.order_file is not None


@pytest.mark.parametrize(
    ("text", "layers", "words"),
    [
        (TWO + 'SCHEDULE_CLASS = "2F2B"', None, "SCHEDULE_CLASS: must be one of 1F1B, GPipe"),
        (
            TWO + 'SCHEDULE_CLASS = "Interleaved1F1B"',
            None,
            "SCHEDULE_CLASS: Interleaved1F1B wants at least two parts a rank",
        ),
        (LOOP + 'SCHEDULE_CLASS = "1F1B"', None, "SCHEDULE_CLASS: 1F1B runs one part a rank"),
        (
            LOOP + 'SCHEDULE_CLASS = "ZBVZeroBubble"',
            None,
            "PIPELINE_STAGES: ZBVZeroBubble wants its stages on a v (got on a loop)",
        ),
        (
            V + 'SCHEDULE_CLASS = "Interleaved1F1B"',
            None,
            "Interleaved1F1B wants its stages on a loop (got on a v)",
        ),
        (
            TWO.replace("= 4", "= 1") + 'SCHEDULE_CLASS = "1F1B"',
            None,
            "n_microbatches: 1F1B wants at least as many",
        ),
        (FOUR.format(1, 1), None, "PIPELINE_STAGES: stage i must lie on rank i mod R"),
        (TWO, 5, "PIPELINE_STAGES: the stages must hold all layers (got 4 of 5 layers)"),
        ("PIPELINE_STAGES = [(0, 0, 2), (1, 3, 4)]", None, "every layer must stand in one stage, in order"),
        (
            "PIPELINE_STAGES = [(0, 2), (1, 4)]",
            None,
            "must be a list of (rank, first layer, layer behind the last)",
        ),
        (
            TWO + "SPLIT_SPEC = {'layers.3': SplitPoint.BEGINNING}",
            None,
            "SPLIT_SPEC: must cut where PIPELINE_STAGES does",
        ),
        (
            TWO + "SPLIT_SPEC = {'layers.2': 'MIDDLE'}",
            None,
            "split_spec: must be SplitPoint.BEGINNING or END",
        ),
        ("split_spec = {'layers.9': SplitPoint.BEGINNING}", 4, "split_spec: cuts must rise, up to 4 layers"),
        (TWO + "CHECKPOINT_LAYERS = {0: 'comm'}", None, 'CHECKPOINT_LAYERS: must be "full" or "selective"'),
        (TWO + "CHECKPOINT_LAYERS = [0]", None, 'CHECKPOINT_LAYERS: must be "full" or "selective"'),
        (TWO + "CHECKPOINT_LAYERS = {4: 'full'}", None, "must name layers of the model (got layer 4 of 4)"),
        (TWO.replace("= 4", "= 0"), None, "n_microbatches: must be a whole number from 1"),
    ],
)
def test_rules_that_are_broken_are_named(tmp_path, text, layers, words):
    assert words in "\n".join(map(str, read(tmp_path, text, layers).broken))


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("0F0,0F1\n1F0\n", "SCHEDULE_CSV: must be an order that can run"),
        ("0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n", "SCHEDULE_CSV: must be an order that can run"),
        ("what\n", "SCHEDULE_CSV: must be an order that can run"),
    ],
)
def test_orders_that_can_not_run_are_named(tmp_path, order, words):
    (tmp_path / "order.csv").write_text(order)
    assert words in "\n".join(map(str, read(tmp_path, TWO + 'SCHEDULE_CSV = "order.csv"').broken))


def test_an_order_for_other_places_is_named(tmp_path):
    # Stage 2 of a V lies on rank 1.
    (tmp_path / "order.csv").write_text("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n")
    text = LOOP.replace("CHES = 4", "CHES = 1") + 'SCHEDULE_CSV = "order.csv"'
    assert "the order wants its stages on a v (got on a loop)" in str(read(tmp_path, text).broken[0])


@pytest.mark.parametrize(
    ("text", "layers", "words"),
    [
        ("n_microbatches = 4", None, "the stages are not known: neither PIPELINE_STAGES nor split_spec"),
        ("PIPELINE_STAGES = [(0, 0, 2), (1, 2, 4)]", None, "micro-batches are not known"),
        (TWO, None, "the schedule is not known: neither SCHEDULE_CLASS nor SCHEDULE_CSV is given"),
        ("split_spec = {'layers.2': SplitPoint.BEGINNING}", None, "the layers of the model are not known"),
        ("split_spec = {'layers.2': SplitPoint.BEGINNING}", 4, "the ranks of the 2 stages are not known"),
        (
            "split_spec = {f'layers.{i}': SplitPoint.BEGINNING for i in cuts}",
            4,
            "split_spec is not known: line 1",
        ),
        (TWO + "CHECKPOINT_LAYERS = layers(args)", None, "checkpoint_layers is not known: line 3"),
        (TWO + 'SCHEDULE_CSV = "none.csv"', None, "SCHEDULE_CSV is not known: none.csv"),
    ],
)
def test_what_is_needed_and_not_known_is_named(tmp_path, text, layers, words):
    assert words in "\n".join(read(tmp_path, text, layers).unknown)
