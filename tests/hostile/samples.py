"""Files that are read without a fault, each with most of what its format has, in few words."""

SHELL = """#!/bin/bash
PP=2
ARGS=(--num-layers 10 --pipeline-model-parallel-size ${PP} --micro-batch-size 1)
OPTIONS=" --global-batch-size 4 --nnodes ${NNODES:-1} --nproc-per-node 2"
if [ -n "$X" ]; then ARGS+=(--recompute-granularity full); fi
torchrun pretrain_gpt.py "${ARGS[@]}" $OPTIONS --recompute-method block --recompute-num-layers 1 # end
"""
PLAIN_SHELL = (
    "torchrun pretrain_gpt.py --num-layers 10 --pipeline-model-parallel-size 2 --recompute-granularity full\n"
)
LAYOUT = """MODEL_ARGS:
  --num-layers: 10
  --pipeline-model-parallel-size: 2
  --pipeline-model-parallel-layout: Et*5|t*5L
  --micro-batch-size: 1
  --global-batch-size: 4
  --nproc-per-node: 2
  --recompute-granularity: selective
  --recompute-modules: [core_attn, mlp]
"""
ARGUMENTS = (
    '["--num-layers", 10, "--pipeline-model-parallel-size", "2", "--micro-batch-size", 1,'
    ' "--global-batch-size", 4, "--nproc-per-node", "2"]'
)
TOML = """[parallelism]
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "1F1B"
module_fqns_per_model_part = [["tok_embeddings", "layers.0"], ["layers.1", "norm", "output"]]
pipeline_parallel_microbatch_size = 1
[training]
local_batch_size = 4
[activation_checkpoint]
mode = "full"
"""
TITAN = """from torchtitan import ParallelismConfig
PARTS = [["tok_embeddings", *[f"layers.{i}" for i in range(2)]], ["layers.2", "norm", "output"]]
def small():
    config = Config(parallelism=ParallelismConfig(pipeline_parallel_degree=2), activation_checkpoint=FullAC())
    config.parallelism.module_fqns_per_model_part = PARTS
    config.training.local_batch_size = 4
    return config
"""
DEEPSPEED = """parts = [0, 4, 7, 10]
MICRO_BATCHES = 8
net = Planned(layers, activation_checkpoint_interval=1, num_stages=3, checkpointable_layers=["Block"])
"""
DEEPSPEED_OWN = """MICRO_BATCHES = 8
PARTS = [0, 4, 7]
ENTRIES_BEFORE = 1
ENTRIES_BEHIND = 1
net = Planned(layers, activation_checkpoint_interval=1, num_stages=2)
"""
COLOSSALAI = """options = {"num_layers_per_stage": [3, 2], "pp_style": "1f1b"}
plugin = HybridParallelPlugin(
    tp_size=1,
    pp_size=2,
    num_microbatches=8,
    gradient_checkpoint_config=PipelineGradientCheckpointConfig(num_ckpt_layers_per_stage=[2, 0]),
    **options,
)
"""
PYTORCH = """PIPELINE_STAGES = [(0, 0, 2), (1, 2, 4)]
SPLIT_SPEC = {"layers.2": SplitPoint.BEGINNING}
CHECKPOINT_LAYERS = {0: "full", 2: "selective"}
N_MICROBATCHES = 4
SCHEDULE_CLASS = "1F1B"
schedule = Schedule1F1B(stage, n_microbatches=N_MICROBATCHES, loss_fn=loss)
"""
PYTORCH_JSON = (
    '{"pipeline_stages": [[0, 0, 2], [1, 2, 4]], "split_spec": {"layers.2": "BEGINNING"}, '
    '"n_microbatches": 4, "schedule_class": "1F1B", "checkpoint_layers": {"1": "full"}}'
)
PYTORCH_ORDER = "0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n1F0,1F1,1F2,1F3,1B0,1B1,1B2,1B3\n"
MINDFORMERS = """model:
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
MINDSPEED = """GPT_ARGS="
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
MINDSPEED_PLAIN = (
    "torchrun pretrain_gpt.py --num-layers 10 --pipeline-model-parallel-size 2 --num-layer-list 5,5\n"
)
HYPERPARALLEL = """pipeline_config:
  pipeline_num: 2
  num_layer: 10
  micro_batch_num: 8
  num_of_interleave: 1
  vpp_less_memory: false
  optimization_level: 1
  memory_limit: 80000
  constant_memory: 500
"""
RESULT = (
    '{"stage_partition": [[[0, 0], [1, 0], [2, 4]], [[3, 0], [4, 1]]], "layer_offset": {"Dec": [[1, 0]]}, '
    '"is_feasible": true, "infeasibility_details": {}, "is_successful": true, "num_of_interleave": 1, '
    '"pp_degree": 2, "micro_batch_num": 8, "vpp_less_memory": false, "pipeline_bubble": null}'
)
GRID_FILE = """devices: 128
global-batch: 512
stages: [4, 8, 16]
interleave: 1-3
memory-limit: [56000, 64000, "40000:48000:4000", [64000, 56000, 56000, 56000]]
schedule: auto
recompute: [none, full]
time-limit: 5
"""
LAYER_LINES = """index,name,stage,chunk,recompute
0,Emb,0,0,
1,Dec,0,0,full
2,Dec,1,0,none
3,Dec,1,0,none
4,Out,1,0,
"""
LAYER_JSON = (
    '{"format": "sapp-ppb-layers", "version": 1, "stages": 2, "interleave": 1, "micro_batches": 4, '
    '"schedule": "1f1b", "micro_batch_group": null, "layers": ['
    '{"index": 0, "name": "Dec", "stage": 0, "chunk": 0, "recompute": "full"}, '
    '{"index": 1, "name": "Dec", "stage": 1, "chunk": 0, "recompute": "none"}]}'
)
DEVICE = """name: mine
peak_tflop_per_s: 312
matmul_share: 0.5
"""
LOG = """start
Used peak memory usage (without fragments): 4096.5M
Used peak memory usage (with fragments): 5G
"""
RECORD = """Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB),Device
PTA,1,5,6,NPU:0
APP,2,N/A,1048576,NPU:0
APP,3,,512.5,NPU:0
"""
TRACE = """{"schemaVersion": 1, "distributedInfo": {"rank": 1}, "traceEvents": [
{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Scope Layer"}},
{"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "Ascend Hardware"}},
{"ph": "X", "name": "0-Dec", "pid": 1, "tid": 0, "ts": 10, "dur": 20.5},
{"ph": "X", "name": "1-Dec", "pid": 1, "tid": 0, "ts": "40.5", "dur": 20},
{"ph": "X", "name": "Gradients", "pid": 1, "tid": 1, "ts": 40, "dur": 30},
{"ph": "X", "name": "Mul-op1", "pid": 2, "tid": 0, "ts": 10, "dur": 20}]}"""
OPS = """[{"ph": "X", "cat": "user_annotation", "name": "PP:0F0", "ts": 0, "dur": 100, "tid": 1},
{"ph": "X", "cat": "cuda_runtime", "name": "launch", "ts": 5, "dur": 1, "tid": 1, "args": {"correlation": 7}},
{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 6, "dur": 50, "tid": 9, "args": {"correlation": 7}},
{"ph": "X", "cat": "cpu_op", "name": "mm", "ts": 5, "dur": 1, "tid": 1, "args": {"Sequence number": 3}},
{"ph": "X", "cat": "cuda_runtime", "name": "run", "ts": 205, "dur": 1, "tid": 1, "args": {"correlation": 8}},
{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 206, "dur": 90, "tid": 9, "args": {"correlation": 8}},
{"ph": "X", "cat": "user_annotation", "name": "PP:0B0", "ts": 200, "dur": 100, "tid": 1},
{"ph": "X", "cat": "user_annotation", "name": "nn.Module: Dec_0", "ts": 4, "dur": 9, "tid": 1}]"""
OWN_TRACE = (
    '{"otherData": {"peak_memory_mb": [10.5, 20]}, "traceEvents": [{"ph": "X", "cat": "F", "name": "0F0", '
    '"ts": 0, "dur": 1000, "args": {"start_ms": 0, "end_ms": 1}}, {"ph": "X", "cat": "B", "name": "0B0", '
    '"ts": 1000, "dur": 2000, "args": {"start_ms": 1, "end_ms": 3}}]}'
)
CSV_ORDER = "0F0,0F1,0B0,0B1\n,1F0,1B0,1F1,1B1\n"
