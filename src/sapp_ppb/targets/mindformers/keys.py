"""Where MindFormers' YAML has what decides a pipeline."""

PARALLEL, PIPELINE, MODEL = "parallel_config", "parallel.pipeline_config", "model.model_config"
RECOMPUTE, SWAP, CONTEXT = "recompute_config", "swap_config", "context"
SECTIONS = (PARALLEL, PIPELINE, MODEL, RECOMPUTE, SWAP, CONTEXT)

STAGES = f"{PARALLEL}.pipeline_stage"
MICRO_BATCHES = f"{PARALLEL}.micro_batch_num"
SEQUENCE_CHUNKS = f"{PARALLEL}.seq_split_num"
INTERLEAVES = f"{PIPELINE}.pipeline_interleave"
SCHEDULER = f"{PIPELINE}.pipeline_scheduler"
CHUNKS = f"{MODEL}.pp_interleave_num"
OFFSET = f"{MODEL}.offset"
SWAPS = f"{SWAP}.swap"
MEMORY = f"{CONTEXT}.max_device_memory"
# The first that a file has counts; the names differ between models.
LAYERS = tuple(f"{MODEL}.{name}" for name in ("num_layers", "num_hidden_layers"))
MTP_LAYERS = tuple(f"{MODEL}.{name}" for name in ("mtp_depth", "mtp_num_layers", "num_nextn_predict_layers"))
