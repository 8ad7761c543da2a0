"""
Every reader of a file, with good files to spoil and what is done with what it reads.

A reader takes a path.  It ends well, or with an ``InputError`` in words; anything else that
it does is a fault of ours.  What is read is also put to its first use, because that is
where a value that should have been refused does its harm.
"""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Plan, plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.targets.config import PipelineConfig

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
BODY = "Dec"


@dataclass(frozen=True, kw_only=True)
class Reader:
    """
    One reader.

    Attributes
    ----------
    name
        For messages.
    form
        What its files are: json, yaml, toml, python, csv, text or gzip.
    file_name
        Name of the file that it is given; some readers tell a format from it.
    good
        Contents that are read without a fault.
    read
        Reads a path, and uses what it holds.
    """

    name: str
    form: str
    file_name: str
    good: tuple[bytes, ...]
    read: Callable[[Path], object]


def model_of(layers: int = 10) -> Model:
    """Model of one kind of layer, every type measured."""
    body = layer_from_times(
        name=BODY,
        kind=LayerKind.BODY,
        count=layers,
        forward_ms=10,
        activation_mb={r: 60.0 - 10 * r for r in Recompute},
    )
    return Model(name="tiny", layers=(body,))


def problem_of(layers: int = 10) -> Problem:
    """Two stages."""
    return Problem(model=model_of(layers), stages=2, micro_batches=4, min_layers_per_cell=0)


def plan_of() -> Plan:
    """Plan with two types in a cell."""
    return plan_from_matrices(problem_of(), {BODY: {"none": [[2, 5]], "full": [[3, 0]]}})


def even_plan() -> Plan:
    """Plan that every framework can say."""
    return plan_from_matrices(problem_of(), {BODY: {"full": [[5, 5]]}})


def _bytes(*paths: str) -> tuple[bytes, ...]:
    return tuple((ROOT / path).read_bytes() for path in paths)


def _text(*texts: str) -> tuple[bytes, ...]:
    return tuple(text.encode() for text in texts)


def _model(path: Path) -> object:
    from sapp_ppb.readers import read_model
    from sapp_ppb.writers import model_to_json

    return model_to_json(read_model(path))


def _layers_csv(path: Path) -> object:
    from sapp_ppb.readers import read_layers_csv
    from sapp_ppb.writers import model_to_json

    return model_to_json(read_layers_csv(path, name="table"))


def _plan(path: Path) -> object:
    from sapp_ppb.readers import read_plan
    from sapp_ppb.writers import plan_to_json

    return plan_to_json(read_plan(path, model_of()))


def _plan_counts(path: Path) -> object:
    from sapp_ppb.readers.plan_counts import bodies_alone, read_plan_counts

    return bodies_alone(read_plan_counts(path))


def _plan_under(path: Path) -> object:
    from sapp_ppb.readers import read_all_plans

    return read_all_plans([path, path], problem_of())


def _order(path: Path) -> object:
    from sapp_ppb.errors import InputError, ScheduleError
    from sapp_ppb.readers import read_order
    from sapp_ppb.schedules import ScheduleName

    order = read_order(path)
    sizes = {"schedule": ScheduleName.CUSTOM, "order_file": order}
    try:
        return Problem(model=model_of(), stages=2, micro_batches=2, **sizes).order  # type: ignore[arg-type]
    except ScheduleError as error:  # which commands say as they say an InputError
        raise InputError(str(path), [str(error)]) from None


def _manual(path: Path) -> object:
    from sapp_ppb.readers.manual_plan import read_manual_plans

    return read_manual_plans(path, Problem(model=model_of(96), stages=16, micro_batches=32))


def _init(path: Path) -> object:
    from sapp_ppb.readers.init_yaml import read_init

    return read_init(path)


def _peaks(path: Path) -> object:
    from sapp_ppb.readers.peaks import read_peaks

    return read_peaks([str(path)])


def _trace(path: Path) -> object:
    from sapp_ppb.estimation import Wanted, cells_of_split, model_from_ops, model_from_scopes
    from sapp_ppb.readers.trace_file import read_trace

    content = read_trace(path, [BODY])
    if content.scopes is not None:
        model_from_scopes([content.scopes], [Wanted(name=BODY, kind=LayerKind.BODY)], 2)
    if content.ops is not None:
        model_from_ops([content.ops], [cells_of_split("--split", "1,1", BODY)])
    return content


def _device(path: Path) -> object:
    from sapp_ppb.readers.device_file import read_device

    return read_device(str(path))


def _hf(path: Path) -> object:
    from sapp_ppb.estimation import TrainingSetup, estimate_transformer
    from sapp_ppb.readers.device_file import read_device
    from sapp_ppb.readers.hf_config import read_hf_config
    from sapp_ppb.writers import model_to_json

    setup = TrainingSetup(sequence_length=4096, micro_batch=1)
    estimate = estimate_transformer(read_hf_config(path), setup, read_device("a100"))
    return model_to_json(estimate.model)


GALVATRON = DATA / "profiles" / "galvatron"
GALVATRON_TIMES = GALVATRON / "computation_profiling_bf16_llama2-7b_all.json"
GALVATRON_MEMORY = GALVATRON / "memory_profiling_bf16_llama2-7b_all.json"


def _galvatron(times: Path, memory: Path) -> object:
    from sapp_ppb.estimation import GalvatronSizes, model_from_galvatron
    from sapp_ppb.readers import read_galvatron

    profile = read_galvatron(times, memory)
    sizes = GalvatronSizes(layers=(4,), tp=1, micro_batch=8)
    return model_from_galvatron(profile, sizes, name="galvatron")


def _galvatron_times(path: Path) -> object:
    return _galvatron(path, GALVATRON_MEMORY)


def _galvatron_memory(path: Path) -> object:
    return _galvatron(GALVATRON_TIMES, path)


def _graph(path: Path) -> object:
    from sapp_ppb.estimation import model_from_graph
    from sapp_ppb.readers import read_operator_graph

    return model_from_graph(read_operator_graph(path), name="graph")


def _measured(path: Path) -> object:
    from sapp_ppb.readers.measured_steps import read_measured_steps

    (path.parent / "plan.json").write_bytes(PLAN_FILES[0])
    return read_measured_steps([path], model_of())


def _use(config: PipelineConfig) -> object:
    """Make the plan of a configuration, for a model with as many layers."""
    from sapp_ppb.errors import InputError, ScheduleError
    from sapp_ppb.readers.config_plan import plan_of_config

    words = [str(rule) for rule in config.broken]
    if config.types is None or config.micro_batches is None or words or not config.layers:
        return (words, config)
    try:
        return plan_of_config(config, model_of(config.layers))
    except ScheduleError as error:  # which the commands say as they say an InputError
        raise InputError(config.where, [str(error)]) from None


def _config(path: Path) -> object:
    from sapp_ppb.readers.framework import read_config

    return _use(read_config(path))


def _config_of(framework: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        from sapp_ppb.readers.framework import read_config

        return _use(read_config(path, framework))

    return read


def _grid(path: Path) -> object:
    from sapp_ppb.sweep.grid_options import read_grid

    return read_grid(path, {})


_SWEEP: dict[str, object] = {"package": "1", "models": "a", "problems": "b", "options": {}}


def _rows(path: Path) -> object:
    """Open a sweep that was begun; it moves aside what is none, so that it works on a copy."""
    from sapp_ppb.sweep.store import ROWS_FILE, Store, is_sweep

    folder = path.parent / "sweep"
    folder.mkdir(exist_ok=True)
    (folder / ROWS_FILE).write_bytes(path.read_bytes())
    is_sweep(folder)
    store = Store(folder, _SWEEP)
    store.close()
    return store.answers


def _rows_file() -> bytes:
    """Bounds and answers of a sweep."""
    import json

    from sapp_ppb.sweep.answer import Answer, RowStatus, to_object

    answer = Answer(
        status=RowStatus.FEASIBLE, makespan_ms=2.5, peak_memory_mb=(1.0,), counts=(((3,),),), seconds=1.0
    )
    header = {"format": "sapp-ppb-sweep", "version": 1, "sweep": _SWEEP}
    lines = [header, {"place": 1, "bound_ms": 5.5}, {"place": 0, "answer": to_object(answer)}]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _into(target: str) -> Callable[[Path], object]:
    """Put a plan into a configuration, as ``export --into`` does."""

    def edit(path: Path) -> object:
        from sapp_ppb.readers.text_file import read_text
        from sapp_ppb.writers.exports import export_named

        form = export_named(target)
        text = read_text(path, largest_mb=0.25, format_name="a configuration", keep_mark=True)
        assert form.into is not None
        return form.into(text, even_plan(), str(path))

    return edit


def _plan_files() -> tuple[bytes, ...]:
    """Plan files with most keys that there can be."""
    from sapp_ppb.plan import Outcome, Shortage, Status, StoppedBy
    from sapp_ppb.simulator import simulate
    from sapp_ppb.writers import plan_to_json

    plan = plan_of()
    limited = plan.problem.changed(memory_limit_mb=(900.0, 800.0), p2p_ms=1.0, fix=plan.recompute)
    timeline = simulate(plan)
    known = {
        "lower_bound_ms": 10.0,
        "stopped_by": StoppedBy.BUDGET,
        "seconds": 0.5,
        "seed": 1,
    }
    fits = Outcome(
        problem=limited,
        plan=Plan(problem=limited, counts=plan.counts),
        status=Status.FEASIBLE,
        makespan_ms=timeline.makespan_ms,
        peak_memory_mb=timeline.peak_memory_mb,
        bubble=timeline.bubble,
        **known,  # type: ignore[arg-type]
    )
    shortage = Shortage(
        stage=1, op="1F0", over_mb=5.0, smallest_limit_mb=900.0, remedies=(("--memory-limit", 900.0),)
    )
    nothing = Outcome(
        problem=limited,
        plan=None,
        status=Status.INFEASIBLE,
        makespan_ms=None,
        peak_memory_mb=(),
        bubble=None,
        shortage=shortage,
        **known,  # type: ignore[arg-type]
    )
    return tuple(plan_to_json(outcome).encode() for outcome in (fits, nothing))


PLAN_FILES = _plan_files()
_SHELL = """#!/bin/bash
PP=2
ARGS=(--num-layers 10 --pipeline-model-parallel-size ${PP} --micro-batch-size 1)
OPTIONS=" --global-batch-size 4 --nnodes ${NNODES:-1} --nproc-per-node 2"
if [ -n "$X" ]; then ARGS+=(--recompute-granularity full); fi
torchrun pretrain_gpt.py "${ARGS[@]}" $OPTIONS --recompute-method block --recompute-num-layers 1 # end
"""
_PLAIN_SHELL = (
    "torchrun pretrain_gpt.py --num-layers 10 --pipeline-model-parallel-size 2 --recompute-granularity full\n"
)
_LAYOUT = """MODEL_ARGS:
  --num-layers: 10
  --pipeline-model-parallel-size: 2
  --pipeline-model-parallel-layout: Et*5|t*5L
  --micro-batch-size: 1
  --global-batch-size: 4
  --nproc-per-node: 2
  --recompute-granularity: selective
  --recompute-modules: [core_attn, mlp]
"""
_ARGUMENTS = (
    '["--num-layers", 10, "--pipeline-model-parallel-size", "2", "--micro-batch-size", 1,'
    ' "--global-batch-size", 4, "--nproc-per-node", "2"]'
)
_TOML = """[parallelism]
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "1F1B"
module_fqns_per_model_part = [["tok_embeddings", "layers.0"], ["layers.1", "norm", "output"]]
pipeline_parallel_microbatch_size = 1
[training]
local_batch_size = 4
[activation_checkpoint]
mode = "full"
"""
_TITAN = """from torchtitan import ParallelismConfig
PARTS = [["tok_embeddings", *[f"layers.{i}" for i in range(2)]], ["layers.2", "norm", "output"]]
def small():
    config = Config(parallelism=ParallelismConfig(pipeline_parallel_degree=2), activation_checkpoint=FullAC())
    config.parallelism.module_fqns_per_model_part = PARTS
    config.training.local_batch_size = 4
    return config
"""
_DEEPSPEED = """parts = [0, 4, 7, 10]
MICRO_BATCHES = 8
net = Planned(layers, activation_checkpoint_interval=1, num_stages=3, checkpointable_layers=["Block"])
"""
_DEEPSPEED_OWN = """MICRO_BATCHES = 8
PARTS = [0, 4, 7]
ENTRIES_BEFORE = 1
ENTRIES_BEHIND = 1
net = Planned(layers, activation_checkpoint_interval=1, num_stages=2)
"""
_COLOSSALAI = """options = {"num_layers_per_stage": [3, 2], "pp_style": "1f1b"}
plugin = HybridParallelPlugin(
    tp_size=1,
    pp_size=2,
    num_microbatches=8,
    gradient_checkpoint_config=PipelineGradientCheckpointConfig(num_ckpt_layers_per_stage=[2, 0]),
    **options,
)
"""
_PYTORCH = """PIPELINE_STAGES = [(0, 0, 2), (1, 2, 4)]
SPLIT_SPEC = {"layers.2": SplitPoint.BEGINNING}
CHECKPOINT_LAYERS = {0: "full", 2: "selective"}
N_MICROBATCHES = 4
SCHEDULE_CLASS = "1F1B"
schedule = Schedule1F1B(stage, n_microbatches=N_MICROBATCHES, loss_fn=loss)
"""
_PYTORCH_JSON = (
    '{"pipeline_stages": [[0, 0, 2], [1, 2, 4]], "split_spec": {"layers.2": "BEGINNING"}, '
    '"n_microbatches": 4, "schedule_class": "1F1B", "checkpoint_layers": {"1": "full"}}'
)
_MINDFORMERS = """model:
  model_config:
    num_layers: 10
    offset: [1, -1]
    pp_interleave_num: 1
    mtp_depth: 0
parallel_config:
  pipeline_stage: 2
  micro_batch_num: 4
parallel:
  pipeline_config: {pipeline_interleave: False, pipeline_scheduler: "1f1b"}
recompute_config:
  recompute: [2, 0]
  select_recompute: [1, 1]
  select_comm_recompute: False
context:
  max_device_memory: "58GB"
"""
_MINDSPEED = """GPT_ARGS="
    --num-layer-list 5,5
    --num-layers 10
    --pipeline-model-parallel-size 2
    --micro-batch-size 1
    --global-batch-size 4
    --nproc_per_node 2
    --recompute-method block --recompute-granularity full --recompute-num-layers 1
"
torchrun pretrain_gpt.py $GPT_ARGS
"""
_MINDSPEED_PLAIN = (
    "torchrun pretrain_gpt.py --num-layers 10 --pipeline-model-parallel-size 2 --num-layer-list 5,5\n"
)
_HYPERPARALLEL = """pipeline_config:
  pipeline_num: 2
  num_layer: 10
  micro_batch_num: 8
  num_of_interleave: 1
  vpp_less_memory: false
  optimization_level: 1
  memory_limit: 80000
  constant_memory: 500
"""
_RESULT = (
    '{"stage_partition": [[[0, 0], [1, 0], [2, 4]], [[3, 0], [4, 1]]], "layer_offset": {"Dec": [[1, 0]]}, '
    '"is_feasible": true, "infeasibility_details": {}, "is_successful": true, "num_of_interleave": 1, '
    '"pp_degree": 2, "micro_batch_num": 8, "vpp_less_memory": false, "pipeline_bubble": null}'
)
_GRID_FILE = """devices: 128
global-batch: 512
stages: [4, 8, 16]
interleave: 1-3
memory-limit: [56000, 64000, "40000:48000:4000", [64000, 56000, 56000, 56000]]
schedule: auto
recompute: [none, full]
time-limit: 5
"""
_LAYER_LINES = "index,name,stage,chunk,recompute\n0,Emb,0,0,\n1,Dec,0,0,full\n2,Dec,1,0,none\n3,Dec,1,0,none\n4,Out,1,0,\n"
_LAYER_JSON = (
    '{"format": "sapp-ppb-layers", "version": 1, "stages": 2, "interleave": 1, "micro_batches": 4, '
    '"schedule": "1f1b", "micro_batch_group": null, "layers": ['
    '{"index": 0, "name": "Dec", "stage": 0, "chunk": 0, "recompute": "full"}, '
    '{"index": 1, "name": "Dec", "stage": 1, "chunk": 0, "recompute": "none"}]}'
)
_DEVICE = """name: mine
peak_tflop_per_s: 312
matmul_share: 0.5
"""
_LOG = "start\nUsed peak memory usage (without fragments): 4096.5M\nUsed peak memory usage (with fragments): 5G\n"
_RECORD = """Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB),Device
PTA,1,5,6,NPU:0
APP,2,N/A,1048576,NPU:0
APP,3,,512.5,NPU:0
"""
_TRACE = """{"schemaVersion": 1, "distributedInfo": {"rank": 1}, "traceEvents": [
{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Scope Layer"}},
{"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "Ascend Hardware"}},
{"ph": "X", "name": "0-Dec", "pid": 1, "tid": 0, "ts": 10, "dur": 20.5},
{"ph": "X", "name": "1-Dec", "pid": 1, "tid": 0, "ts": "40.5", "dur": 20},
{"ph": "X", "name": "Gradients", "pid": 1, "tid": 1, "ts": 40, "dur": 30},
{"ph": "X", "name": "Mul-op1", "pid": 2, "tid": 0, "ts": 10, "dur": 20}]}"""
_OPS = """[{"ph": "X", "cat": "user_annotation", "name": "PP:0F0", "ts": 0, "dur": 100, "tid": 1},
{"ph": "X", "cat": "cuda_runtime", "name": "launch", "ts": 5, "dur": 1, "tid": 1, "args": {"correlation": 7}},
{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 6, "dur": 50, "tid": 9, "args": {"correlation": 7}},
{"ph": "X", "cat": "cpu_op", "name": "mm", "ts": 5, "dur": 1, "tid": 1, "args": {"Sequence number": 3}},
{"ph": "X", "cat": "cuda_runtime", "name": "launch", "ts": 205, "dur": 1, "tid": 1, "args": {"correlation": 8}},
{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 206, "dur": 90, "tid": 9, "args": {"correlation": 8}},
{"ph": "X", "cat": "user_annotation", "name": "PP:0B0", "ts": 200, "dur": 100, "tid": 1},
{"ph": "X", "cat": "user_annotation", "name": "nn.Module: Dec_0", "ts": 4, "dur": 9, "tid": 1}]"""
_OWN_TRACE = (
    '{"otherData": {"peak_memory_mb": [10.5, 20]}, "traceEvents": [{"ph": "X", "cat": "F", "name": "0F0", '
    '"ts": 0, "dur": 1000, "args": {"start_ms": 0, "end_ms": 1}}, {"ph": "X", "cat": "B", "name": "0B0", '
    '"ts": 1000, "dur": 2000, "args": {"start_ms": 1, "end_ms": 3}}]}'
)
_CSV_ORDER = "0F0,0F1,0B0,0B1\n,1F0,1B0,1F1,1B1\n"


def _reader(
    name: str, form: str, file_name: str, good: tuple[bytes, ...], read: Callable[[Path], object]
) -> Reader:
    return Reader(name=name, form=form, file_name=file_name, good=good, read=read)


def _configs(folder: str, suffix: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted((DATA / "configs" / folder).glob(f"*{suffix}")))


_MODELS = tuple(path.read_bytes() for path in sorted((ROOT / "examples").glob("*.json"))) + _bytes(
    "tests/data/sapp/seq.json", "tests/data/sapp/sim.json", "tests/data/sapp/test.json"
)
READERS = (
    _reader("model", "json", "model.json", _MODELS, _model),
    _reader("plan", "json", "plan.json", PLAN_FILES, _plan),
    _reader("plan without a model", "json", "plan.json", PLAN_FILES[:1], _plan_counts),
    _reader("plan to compare", "json", "plan.json", PLAN_FILES[:1], _plan_under),
    _reader("order", "csv", "order.csv", _text(_CSV_ORDER), _order),
    _reader("manual plans", "yaml", "manual.yaml", _bytes("tests/data/sapp/manual_demo.yaml"), _manual),
    _reader(
        "init",
        "yaml",
        "init.yaml",
        _bytes("tests/data/sapp/init_readme.yaml", "tests/data/sapp/mem.yaml"),
        _init,
    ),
    _reader("peaks of a log", "text", "stage_0.log", _text(_LOG), _peaks),
    _reader(
        "peaks of a profiler",
        "csv",
        "stage_1.csv",
        _text(_RECORD, _RECORD.replace("KB", "MB").replace("1048576", "1e3")),
        _peaks,
    ),
    _reader("peaks by hand", "yaml", "peaks.yaml", _text("peak_memory_mb: {3: 48874, 0: 20.5}\n"), _peaks),
    _reader("peaks of a trace", "json", "trace.json", _text(_OWN_TRACE), _peaks),
    _reader("trace of scopes", "json", "trace.json", _text(_TRACE), _trace),
    _reader("trace of ops", "json", "trace.json", _text(_OPS, _OWN_TRACE), _trace),
    _reader(
        "gzipped trace",
        "gzip",
        "trace.json.gz",
        tuple(gzip.compress(text.encode(), mtime=0) for text in (_TRACE, _OPS)),
        _trace,
    ),
    _reader(
        "device", "yaml", "device.yaml", _bytes(*(f"src/sapp_ppb/readers/devices/{n}.yaml" for n in ("a100", "910b"))), _device
    ),
    _reader(
        "Hugging Face",
        "json",
        "config.json",
        tuple(path.read_bytes() for path in sorted((DATA / "hf_configs").glob("*.json"))),
        _hf,
    ),
    _reader("times of Galvatron", "json", "times.json", (GALVATRON_TIMES.read_bytes(),), _galvatron_times),
    _reader("memory of Galvatron", "json", "memory.json", (GALVATRON_MEMORY.read_bytes(),), _galvatron_memory),
    _reader(
        "graph of PipeDream",
        "text",
        "graph.txt",
        _bytes("tests/data/profiles/pipedream/vgg16_graph.txt"),
        _graph,
    ),
    _reader("table of costs", "csv", "layers.csv", _bytes("tests/data/profiles/layers.csv"), _layers_csv),
    _reader("measured steps", "csv", "steps.csv", _text("plan,step_ms\nplan.json,123.5\n"), _measured),
    _reader(
        "real runs",
        "json",
        "run.json",
        _bytes("tests/data/runs/1f1b-2-stages.json", "tests/data/runs/zbv-2-stages.json"),
        _measured,
    ),
    _reader("MindFormers", "yaml", "run.yaml", (*_text(_MINDFORMERS), *_configs("mindformers", ".yaml")), _config),
    _reader("Megatron-LM YAML", "yaml", "model_config.yaml", (*_text(_LAYOUT), *_configs("megatron", ".yaml")), _config),
    _reader("Megatron-LM script", "text", "run.sh", _text(_SHELL), _config),
    _reader("Megatron-LM arguments", "json", "arguments.json", _text(_ARGUMENTS), _config_of("megatron")),
    _reader("torchtitan TOML", "toml", "job.toml", (*_text(_TOML), *_configs("torchtitan", ".toml")), _config),
    _reader("torchtitan Python", "python", "job.py", _text(_TITAN), _config_of("torchtitan")),
    _reader("DeepSpeed", "python", "job.py", _text(_DEEPSPEED), _config_of("deepspeed")),
    _reader("Colossal-AI", "python", "job.py", _text(_COLOSSALAI), _config_of("colossalai")),
    _reader("PyTorch", "python", "job.py", _text(_PYTORCH), _config_of("pytorch")),
    _reader("PyTorch JSON", "json", "job.json", _text(_PYTORCH_JSON), _config_of("pytorch")),
    _reader("MindSpeed", "text", "run.sh", _text(_MINDSPEED), _config_of("mindspeed")),
    _reader("HyperParallel", "yaml", "pp.yaml", _text(_HYPERPARALLEL), _config_of("hyperparallel")),
    _reader("result of HyperParallel", "json", "pp.json", _text(_RESULT), _config_of("hyperparallel")),
    _reader("grid", "yaml", "grid.yaml", _text(_GRID_FILE), _grid),
    _reader("rows of a sweep", "text", "begun.jsonl", (_rows_file(),), _rows),
    _reader("into MindSpeed", "text", "run.sh", _text(_MINDSPEED_PLAIN), _into("mindspeed")),
    _reader("list of layers", "csv", "layers.csv", _text(_LAYER_LINES), _config),
    _reader("JSON of layers", "json", "layers.json", _text(_LAYER_JSON), _config),
    _reader("into MindFormers", "yaml", "run.yaml", _text(_MINDFORMERS), _into("mindformers")),
    _reader("into Megatron-LM YAML", "yaml", "model_config.yaml", _text(_LAYOUT), _into("megatron")),
    _reader("into Megatron-LM script", "text", "run.sh", _text(_PLAIN_SHELL), _into("megatron")),
    _reader("into torchtitan", "toml", "job.toml", (*_text(_TOML), *_configs("torchtitan", ".toml")), _into("torchtitan")),
    _reader("into DeepSpeed", "python", "job.py", _text(_DEEPSPEED_OWN), _into("deepspeed")),
    _reader("into Colossal-AI", "python", "job.py", _text(_COLOSSALAI), _into("colossalai")),
    _reader("into PyTorch", "python", "job.py", _text(_PYTORCH), _into("pytorch")),
)  # fmt: skip
BY_NAME = {reader.name: reader for reader in READERS}
