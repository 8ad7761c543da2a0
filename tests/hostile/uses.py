"""Readers, each with what is done first with what it reads."""

import json
from collections.abc import Callable
from pathlib import Path

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Plan, plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.targets.config import PipelineConfig

DATA = Path(__file__).parents[1] / "data"
BODY = "Dec"


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


def model(path: Path) -> object:
    from sapp_ppb.readers import read_model
    from sapp_ppb.writers import model_to_json

    return model_to_json(read_model(path))


def layers_csv(path: Path) -> object:
    from sapp_ppb.readers import read_layers_csv
    from sapp_ppb.writers import model_to_json

    return model_to_json(read_layers_csv(path, name="table"))


def plan(path: Path) -> object:
    from sapp_ppb.readers import read_plan
    from sapp_ppb.writers import plan_to_json

    return plan_to_json(read_plan(path, model_of()))


def plan_counts(path: Path) -> object:
    from sapp_ppb.readers.plans.plan_counts import bodies_alone, read_plan_counts

    return bodies_alone(read_plan_counts(path))


def plan_under(path: Path) -> object:
    from sapp_ppb.readers import read_all_plans

    return read_all_plans([path, path], problem_of())


def order(path: Path) -> object:
    from sapp_ppb.errors import InputError, ScheduleError
    from sapp_ppb.readers import read_order
    from sapp_ppb.schedules import ScheduleName

    order = read_order(path)
    sizes = {"schedule": ScheduleName.CUSTOM, "order_file": order}
    try:
        return Problem(model=model_of(), stages=2, micro_batches=2, **sizes).order  # type: ignore[arg-type]
    except ScheduleError as error:  # which commands say as they say an InputError
        raise InputError(str(path), [str(error)]) from None


def manual(path: Path) -> object:
    from sapp_ppb.readers.older.manual_plan import read_manual_plans

    return read_manual_plans(path, Problem(model=model_of(96), stages=16, micro_batches=32))


def init(path: Path) -> object:
    from sapp_ppb.readers.older.init_yaml import read_init

    return read_init(path)


def peaks(path: Path) -> object:
    from sapp_ppb.readers.measurements.peaks import read_peaks

    return read_peaks([str(path)])


def trace(path: Path) -> object:
    from sapp_ppb.estimation import Wanted, cells_of_split, model_from_ops, model_from_scopes
    from sapp_ppb.readers.measurements.trace_file import read_trace

    content = read_trace(path, [BODY])
    if content.scopes is not None:
        model_from_scopes([content.scopes], [Wanted(name=BODY, kind=LayerKind.BODY)], 2)
    if content.ops is not None:
        model_from_ops([content.ops], [cells_of_split("--split", "1,1", BODY)])
    return content


def device(path: Path) -> object:
    from sapp_ppb.readers.models.device_file import read_device

    return read_device(str(path))


def hf(path: Path) -> object:
    from sapp_ppb.estimation import TrainingSetup, estimate_transformer
    from sapp_ppb.readers.models.device_file import read_device
    from sapp_ppb.readers.models.hf_config import read_hf_config
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


def galvatron_times(path: Path) -> object:
    return _galvatron(path, GALVATRON_MEMORY)


def galvatron_memory(path: Path) -> object:
    return _galvatron(GALVATRON_TIMES, path)


def graph(path: Path) -> object:
    from sapp_ppb.estimation import model_from_graph
    from sapp_ppb.readers import read_operator_graph

    return model_from_graph(read_operator_graph(path), name="graph")


def measured(path: Path) -> object:
    from sapp_ppb.readers.measurements.measured_steps import read_measured_steps

    (path.parent / "plan.json").write_bytes(plan_files()[0])
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


def config(path: Path) -> object:
    from sapp_ppb.readers.frameworks.framework import read_config

    return _use(read_config(path))


def config_of(framework: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        from sapp_ppb.readers.frameworks.framework import read_config

        return _use(read_config(path, framework))

    return read


def pytorch_order(path: Path) -> object:
    """Read a configuration whose order is the file."""
    from sapp_ppb.readers.frameworks.framework import read_config

    config = path.parent / "job.json"
    sizes = {
        "pipeline_stages": [[0, 0, 2], [1, 2, 4]],
        "n_microbatches": 4,
        "checkpoint_layers": {"1": "full"},
    }
    config.write_text(json.dumps(sizes | {"schedule_csv": path.name}), encoding="utf-8")
    return _use(read_config(config, "pytorch"))


def grid(path: Path) -> object:
    from sapp_ppb.sweep.grid_options import read_grid

    return read_grid(path, {})


_SWEEP: dict[str, object] = {"package": "1", "models": "a", "problems": "b", "options": {}}


def rows(path: Path) -> object:
    """Open a sweep that was begun; it moves aside what is none, so that it works on a copy."""
    from sapp_ppb.sweep.store import ROWS_FILE, Store, is_sweep

    folder = path.parent / "sweep"
    folder.mkdir(exist_ok=True)
    (folder / ROWS_FILE).write_bytes(path.read_bytes())
    is_sweep(folder)
    store = Store(folder, _SWEEP)
    store.close()
    return store.answers


def rows_file() -> bytes:
    """Bounds and answers of a sweep."""
    from sapp_ppb.sweep.answer import Answer, RowStatus, to_object

    answer = Answer(
        status=RowStatus.FEASIBLE, makespan_ms=2.5, peak_memory_mb=(1.0,), counts=(((3,),),), seconds=1.0
    )
    header = {"format": "sapp-ppb-sweep", "version": 1, "sweep": _SWEEP}
    lines = [header, {"place": 1, "bound_ms": 5.5}, {"place": 0, "answer": to_object(answer)}]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def into(target: str) -> Callable[[Path], object]:
    """Put a plan into a configuration, as ``export --into`` does."""

    def edit(path: Path) -> object:
        from sapp_ppb.readers.formats.text_file import read_text
        from sapp_ppb.writers.frameworks.exports import export_named

        form = export_named(target)
        text = read_text(path, largest_mb=0.25, format_name="a configuration", keep_mark=True)
        assert form.into is not None
        return form.into(text, even_plan(), str(path))

    return edit


def plan_files() -> tuple[bytes, ...]:
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
