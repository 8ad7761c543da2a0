"""What is wrong is said with its file, key, what was found, what is allowed, and what to do."""

import re
from typing import Any

import pytest

from sapp_ppb.errors import InputError
from tests.hostile.endings import faults_of_content
from tests.hostile.readers import BY_NAME, READERS
from tests.hostile.spoiled import dumped, encodings, paths, tree_of

# A reader, what is replaced in its first good file, by what, and what is said of it.
FAULTS = [
    ("model", '"time"', '"tme"', "layers_description[0].time is missing"),
    ("model", '"BODY"', '"LIMB"', "type must be one of HEAD, BODY, TAIL (got 'LIMB')"),
    ("strategies", '"host_mb": 834', '"host_mb": -1', "layers_description[1].strategies[0].host_mb must be"),
    ("plan", '"version": 1', '"version": 9', "has version 9, newer than 1, the newest known here; update"),
    ("plan", '"feasible"', '"perfect"', "outcome.status must be one of optimal, feasible, infeasible (got"),
    ("plan", '"stages": 2', '"stages": 2.5', "problem.stages must be a whole number of at least 1 (got 2.5)"),
    ("plan without a model", "sapp-ppb-plan", "x", "format must be 'sapp-ppb-plan' (got 'x')"),
    ("plan to compare", '"Dec"', '"Enc"', "layer 'Enc' is unknown; the model's BODY layers are Dec"),
    ("order", "0F1", "0X1", "row 1, column 2: found '0X1'; an op is a cell, one of F, B, I, W and a micro-"),
    ("order", "0B0", "0F0", "stage 0: found 0F0 again; each op is allowed once"),
    ("manual plans", "recompute: False", "recompute: maybe", "manual2.recompute (line 13) must be true"),
    ("init", "pipeline_num: 16", "pipeline_num: many", "_num (line 3) must be an integer of"),
    ("peaks of a profiler", "1048576", "-3", "Total Reserved(KB) (line 3) must be a number of"),
    ("peaks of a profiler", "d(KB),D", "d,D", "must have the columns Component and Total Reserved(KB) or"),
    ("peaks by hand", "48874", "much", "peak_memory_mb.3 (line 1) must be a number above 0 (got 'much')"),
    ("peaks by hand", "peak_memory_mb", "peaks", "must hold peak_memory_mb (MB) or max_memory_allocated"),
    ("peaks by hand", "3:", "-3:", "peak_memory_mb.-3 (line 1) must be named after a stage, such as 3"),
    ("device", "peak_tflop_per_s", "tflops", "peak_tflop_per_s is missing"),
    ("Hugging Face", '"num_hidden_layers"', '"n"', "num_hidden_layers is missing"),
    ("graph of PipeDream", "=2.211", "=soon", "compute_time must be a number of at least 0"),
    ("graph of PipeDream", "\tnode1 ", "\tno\x00de ", "the edge 'no\\x00de' -- node2 names"),
    ("table of costs", "BODY", "LIMB", "line 3: kind must be one of HEAD, BODY, TAIL"),
    ("measured steps", "123.5", "soon", "line 2: step_ms must be a number above 0 (got 'soon')"),
    ("measured steps", "plan.json", "x.json", "x.json: there is no such file; check the path"),
    ("measured steps", "plan.json", "x" * 5000, "File name too long"),
    ("measured steps", "step_ms", "step_s", "must begin with the header plan,step_ms (got 'plan,step_s')"),
    ("real runs", '"step_ms"', '"step_s"', "step_ms is missing"),
    ("torchtitan TOML", "degree = 2", 'degree = "two"', "must be a whole number from 1 to 4096 (got 'two')"),
    ("HyperParallel", "pipeline_config", "x", "must be a mapping with pipeline_config, itself a mapping"),
    ("result of HyperParallel", ': 2, "micro', ': "a", "micro', "pp_degree must be a whole number from 1 to"),
    ("grid", "devices: 128", "devices: many", "devices (line 1) must be a whole number (got 'many')"),
    ("grid", "56000, 56000]]", "56000, x]]", "memory-limit (line 5) must be a number (got 'x')"),
    ("grid", "schedule: auto", "schedule: later", "schedule (line 6) must be one of gpipe, 1f1b"),
    ("grid", "time-limit", "time", "time (line 8) is unknown; one of devices, global-batch"),
    ("grid", "time-limit", '"\\e[31mred"', "'\\x1b[31mred' is unknown; one of devices, global-batch"),
    ("peaks by hand", "0: 20.5", '"\\uFEFF 1": x', "'peak_memory_mb.\\ufeff 1' must be a number"),
    ("list of layers", "0,full", "0,half", "line 3: recompute must be one of none, selective, comm"),
    ("list of layers", "index", "number", "is no configuration that is known: these are a YAML"),
    ("JSON of layers", '"stages": 2', '"stages": 0', "stages must be an integer of at least 1 (got 0)"),
    ("into MindFormers", "layers: 10", "layers: 12", "gives 12 layers and the plan has 10; take the file of"),
    ("into MindFormers", "recompute_config:", "recompute_config: [1]\nx:", "must hold keys to be edited"),
    ("into Megatron-LM script", "layers 10", "layers 12", "--num-layers is 12, and the plan's model has 10;"),
    ("into Megatron-LM YAML", "layers: 10", "layers: 12", "--num-layers is 12, and the plan's model has 10;"),
    ("into MindSpeed", "layers 10", "layers 12", "--num-layers is 12, and the plan's model has 10;"),
    ("into MindSpeed", "layers 10", "layers 1\x1b", "--num-layers is '1\\x1b', and the plan's"),
]  # fmt: skip
# What a configuration says and its framework refuses is a broken rule, for `check` to say.
BROKEN = [
    ("MindFormers", "offset: [1, -1]", "offset: [1, one]", "offset"),
    ("Megatron-LM script", "--num-layers 10", "--num-layers ten", "--num-layers"),
    ("Megatron-LM YAML", "Et*5|t*5L", "Et*5|x*5L", "--pipeline-model-parallel-layout"),
    ("Megatron-LM YAML", "Et*5|t*5L", "[]", "must have a list of names for each cell (got [])"),
    ("Megatron-LM arguments", '"--num-layers", 10', '"--num-layers", "ten"', "--num-layers"),
    ("torchtitan TOML", '"1F1B"', '"2F2B"', "2F2B"),
    ("torchtitan Python", "degree=2", "degree=two", "two"),
    ("DeepSpeed", "[0, 4, 7, 10]", "[0, 4, 3, 10]", "parts"),
    ("Colossal-AI", "[3, 2]", "[3, -2]", "num_layers_per_stage"),
    ("PyTorch", "N_MICROBATCHES = 4", "N_MICROBATCHES = 0", "n_microbatches"),
    ("order of PyTorch", "1B0,1B1,1B2,1B3", "1B0,1B1,1B2", "must be an order that can run"),
    ("order of PyTorch", "0F0", "xF0", "found 'xF0'"),
    ("PyTorch JSON", '"n_microbatches": 4', '"n_microbatches": "four"', "n_microbatches"),
    ("MindSpeed", "--num-layer-list 5,5", "--num-layer-list 5,five", "five"),
    ("HyperParallel", "num_layer: 10", "num_layer: ten", "ten"),
]


def spoiled(name, old, new):
    good = BY_NAME[name].good[0].decode()
    assert old in good
    return good.replace(old, new, 1).encode()


@pytest.mark.parametrize(("name", "old", "new", "words"), FAULTS, ids=lambda value: str(value)[:20])
def test_a_fault_is_said_in_words(name, old, new, words, tmp_path):
    said = faults_of_content(BY_NAME[name], spoiled(name, old, new), tmp_path)
    assert any(words in fault for fault in said), said


@pytest.mark.parametrize(("name", "old", "new", "words"), BROKEN, ids=lambda value: str(value)[:20])
def test_what_a_framework_refuses_is_said_in_words(name, old, new, words, tmp_path):
    path = tmp_path / BY_NAME[name].file_name
    path.write_bytes(spoiled(name, old, new))
    try:
        read: Any = BY_NAME[name].read(path)
    except InputError as error:
        said = error.faults
    else:
        broken, config = read
        said = (*broken, *config.unknown)
    assert any(words.lower() in fault.lower() for fault in said), said


def test_every_reader_has_a_fault_in_words():
    traces = {reader.name for reader in READERS if "trace" in reader.name}
    others = {
        "rows of a sweep",  # which are computed anew
        "peaks of a log",  # of which other lines are no concern
        "times of Galvatron", "memory of Galvatron",  # of which keys of other sizes are none
        "into torchtitan", "into DeepSpeed", "into Colossal-AI", "into PyTorch",  # whose values are replaced
    }  # fmt: skip
    assert {reader.name for reader in READERS} - {row[0] for row in FAULTS + BROKEN} == traces | others


TREES = [
    reader
    for reader in READERS
    if reader.form in ("json", "yaml", "toml")
    and "trace" not in reader.name  # whose events are of many tools
]
MOST_PLACES = 15


@pytest.mark.parametrize("reader", TREES, ids=lambda reader: reader.name)
@pytest.mark.parametrize(("odd", "found"), [('"oddity"', "oddity"), ("-7.25", "-7.25")])
def test_a_refused_value_is_named_and_shown(reader, odd, found, tmp_path):
    tree = tree_of(reader.form, reader.good[0])
    for place in list(paths(tree))[1 : MOST_PLACES + 1]:
        key = next((str(step) for step in reversed(place) if isinstance(step, str)), "")
        if key == "format":  # by which the reader is chosen
            continue
        text = dumped(reader.form, tree, {place: odd}).encode()
        if faults := faults_of_content(reader, text, tmp_path):
            assert any(key in fault for fault in faults), (place, faults)
            assert any(found in fault for fault in faults), (place, faults)


# What a fault says that is allowed, or that is to be done; of what is missing or broken that is clear.
HELPS = re.compile(
    r"must|; |, and |at most|at least| wants | needs |should follow|is missing|is broken|is no |"
    r"holds no |says no |cut off or no JSON|can not be read: |^and [0-9,]+ more "
)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_refusal_helps(reader, tmp_path):
    tree = tree_of(reader.form, reader.good[0]) if reader in TREES else None
    texts = [text for _, text in encodings(reader.good[0])]
    if tree is not None:
        places = list(paths(tree))[:MOST_PLACES]
        texts += [
            dumped(reader.form, tree, {place: odd}).encode() for place in places for odd in ("null", "[{}]")
        ]
    for text in texts:
        for fault in faults_of_content(reader, text, tmp_path):
            assert HELPS.search(fault), fault
