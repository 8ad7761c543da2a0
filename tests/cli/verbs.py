"""Every verb of the command, and the options that each is known to take."""

from typing import Any

# A change here breaks scripts that people have: it belongs into the changelog.
# What every verb that plans takes.
PROBLEM = {
    "model": (),
    "stages": ("--stages", "-s"),
    "micro_batches": ("--micro-batches", "-mb"),
    "interleave": ("--interleave", "-i"),
    "memory_limit": ("--memory-limit", "-mem"),
    "memory_margin_": ("--memory-margin",),
    "constant_memory": ("--constant-memory", "-mc"),
    "p2p": ("--p2p",),
    "p2p_mode_": ("--p2p-mode",),
    "schedule": ("--schedule",),
    "micro_batch_group_": ("--micro-batch-group",),
    "sequence_chunks": ("--sequence-chunks",),
    "order": ("--order",),
    "overlap_factor": ("--overlap-factor",),
    "flavour_": ("--flavour",),
    "recompute": ("--recompute",),
    "max_recompute_types": ("--max-recompute-types",),
    "recompute_working_set": ("--recompute-working-set",),
    "min_layers": ("--min-layers",),
    "target": ("--target",),
    "stage_speed": ("--stage-speed",),
    "step_extra": ("--step-extra",),
    "time_limit": ("--time-limit", "-t"),
    "gap": ("--gap",),
    "seed": ("--seed",),
}
FILES = {"output": ("--output", "-o"), "force": ("--force",)}
WRITTEN = FILES | {"json_": ("--json",)}
# What every verb that makes a model file takes.
MODEL = WRITTEN | {"name": ("--name",)}
OPTIONS = {
    "plan": PROBLEM
    | WRITTEN
    | {
        "threads": ("--threads",),
        "warm_start": ("--warm-start",),
        "fix": ("--fix",),
        "keep": ("--keep",),
        "reorder_stages": ("--reorder-stages",),
        "explain": ("--explain",),
        "noise": ("--noise",),
        "tokens": ("--tokens-per-micro-batch",),
        "timeline_": ("--timeline",),
    },
    "compare": PROBLEM | WRITTEN | {"plans": ()},
    "calibrate": WRITTEN | {"model": (), "runs": ()},
    "simulate": WRITTEN
    | {
        "model": (),
        "plan": (),
        "entry": ("--entry",),
        "stages": ("--stages", "-s"),
        "micro_batches": ("--micro-batches", "-mb"),
        "interleave": ("--interleave", "-i"),
        "memory_limit": ("--memory-limit", "-mem"),
        "constant_memory": ("--constant-memory", "-mc"),
        "p2p": ("--p2p",),
        "schedule": ("--schedule",),
        "micro_batch_group_": ("--micro-batch-group",),
        "min_layers": ("--min-layers",),
        "stage_speed": ("--stage-speed",),
        "step_extra": ("--step-extra",),
        "tokens": ("--tokens-per-micro-batch",),
        "timeline_": ("--timeline",),
        "emit_trace": ("--emit-trace",),
    },
    "costs trace": MODEL
    | {
        "traces": (),
        "body": ("--body",),
        "head": ("--head",),
        "tail": ("--tail",),
        "micro_batches": ("--micro-batches", "-mb"),
        "per_layer": ("--per-layer",),
        "split": ("--split",),
        "plan": ("--plan",),
    },
    "costs dryrun": MODEL
    | {
        "peaks": (),
        "runs": ("--runs",),
        "fragments": ("--with-fragments",),
        "times": ("--times",),
        "micro_batches": ("--micro-batches", "-mb"),
        "constant_memory": ("--constant-memory", "-mc"),
    },
    "costs init": MODEL
    | {
        "path": (),
        "times": ("--times",),
        "micro_batches": ("--micro-batches", "-mb"),
        "constant_memory": ("--constant-memory", "-mc"),
    },
    "costs hf": MODEL
    | {
        "config": (),
        "device": ("--device",),
        "sequence_length": ("--seq",),
        "micro_batch": ("--micro-batch",),
        "tensor": ("--tp",),
        "data": ("--dp",),
        "expert": ("--ep",),
        "zero": ("--zero",),
        "sequence_parallel": ("--sequence-parallel",),
        "flash": ("--flash",),
        "dtype": ("--dtype",),
    },
    "costs galvatron": MODEL
    | {
        "computation": ("--computation",),
        "memory": ("--memory",),
        "layers": ("--layers", "-l"),
        "tp": ("--tp",),
        "sequence": ("--sequence",),
        "micro_batch": ("--micro-batch",),
        "sequence_parallel": ("--sequence-parallel",),
        "dp": ("--dp",),
        "zero": ("--zero",),
        "head_share": ("--head-share",),
    },
    "costs pipedream": MODEL
    | {
        "graph": (),
        "states_per_parameter": ("--states-per-parameter",),
    },
    "costs csv": MODEL
    | {
        "path": (),
    },
    "dryrun-guide": FILES
    | {
        "stages": ("--stages", "-s"),
        "layers": ("--layers", "-l"),
        "recompute": ("--recompute",),
        "micro_batches": ("--micro-batches", "-mb"),
    },
    "sweep": WRITTEN
    | {
        "model": (),
        "grid": ("--grid",),
        "devices": ("--devices",),
        "global_batch": ("--global-batch",),
        "stages": ("--stages", "-s"),
        "interleave": ("--interleave", "-i"),
        "schedule": ("--schedule",),
        "memory_limit": ("--memory-limit", "-mem"),
        "micro_batch_size": ("--micro-batch-size",),
        "model_micro_batch_size": ("--model-micro-batch-size",),
        "tensor_parallel": ("--tensor-parallel",),
        "memory_margin": ("--memory-margin",),
        "constant_memory": ("--constant-memory", "-mc"),
        "p2p": ("--p2p",),
        "p2p_mode": ("--p2p-mode",),
        "stage_speed": ("--stage-speed",),
        "step_extra": ("--step-extra",),
        "micro_batch_group": ("--micro-batch-group",),
        "sequence_chunks": ("--sequence-chunks",),
        "overlap_factor": ("--overlap-factor",),
        "flavour": ("--flavour",),
        "recompute": ("--recompute",),
        "max_recompute_types": ("--max-recompute-types",),
        "recompute_working_set": ("--recompute-working-set",),
        "min_layers": ("--min-layers",),
        "target": ("--target",),
        "time_limit": ("--time-limit", "-t"),
        "gap": ("--gap",),
        "seed": ("--seed",),
        "no_cut": ("--no-cut",),
        "backend": ("--backend",),
        "address": ("--address",),
        "workers": ("--workers",),
    },
    "schedule": {
        "name": (),
        "stages": ("--stages", "-s"),
        "micro_batches": ("--micro-batches", "-mb"),
        "interleave": ("--interleave", "-i"),
        "micro_batch_group_": ("--micro-batch-group",),
        "sequence_chunks": ("--sequence-chunks",),
        "order": ("--order",),
    },
    "check": {
        "config": (),
        "model": ("--model",),
        "from_": ("--from",),
        "stages": ("--stages", "-s"),
        "micro_batches": ("--micro-batches", "-mb"),
        "memory_limit": ("--memory-limit", "-mem"),
        "memory_margin_": ("--memory-margin",),
        "constant_memory": ("--constant-memory", "-mc"),
        "p2p": ("--p2p",),
        "stage_speed": ("--stage-speed",),
        "step_extra": ("--step-extra",),
        "p2p_mode_": ("--p2p-mode",),
        "schedule": ("--schedule",),
        "micro_batch_group_": ("--micro-batch-group",),
        "sequence_chunks": ("--sequence-chunks",),
        "min_layers": ("--min-layers",),
        "time_limit": ("--time-limit", "-t"),
        "seed": ("--seed",),
        "no_plan": ("--no-plan",),
        "json_": ("--json",),
    },
    "export": FILES
    | {
        "plan": (),
        "to": ("--to",),
        "into": ("--into",),
        "model": ("--model",),
        "python": ("--python",),
        "nearest_": ("--nearest",),
    },
}


# pydantic is none of ours here: typer reads a verb's words with it.
HEAVY = ("numpy", "numba", "rich", "highspy", "scipy", "llvmlite", "ruamel", "matplotlib", "joblib")


def verbs(group: Any, before=""):
    """Every verb, those of a group under its name and theirs."""
    for name, verb in group.commands.items():
        if hasattr(verb, "commands"):
            yield from verbs(verb, f"{before}{name} ")
        else:
            yield f"{before}{name}", verb
