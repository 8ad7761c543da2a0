"""Which layers each cell of a plan file holds, for those who do not have its model yet."""

from dataclasses import replace
from os import PathLike

from sapp_ppb.costs import LayerKind, LayerStrategy, Model, Recompute, layer_from_times
from sapp_ppb.costs.checks import shown
from sapp_ppb.costs.strategy import MOST_STRATEGIES, name_fault
from sapp_ppb.costs.unit_layer import unit_layer
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.readers.formats.json_file import read_document
from sapp_ppb.readers.plans.plan_entry import LABELS
from sapp_ppb.readers.plans.plan_file import PLAN_OTHERWISE, read_plan


def read_plan_counts(path: str | PathLike[str]) -> Plan:
    """
    Plan of a plan file, over a model that has its layers' names and counts and nothing else.

    Layers of multi-token prediction are those that the file names.  A layer holds less
    under a type that recomputes more, as real ones do; how much less is made up.  A type
    that is none of recomputation is taken for a strategy, which holds as little as full does.

    Raises
    ------
    InputError
        If the file can not be read, or holds no plan.
    """
    raw = _read(path)
    counts = raw.get("counts") if isinstance(raw, dict) else None
    named_mtp = raw.get("mtp") if isinstance(raw, dict) else None
    mtp = named_mtp if isinstance(named_mtp, list) else []
    held_mb = tuple(float(len(Recompute) - recompute) for recompute in Recompute)
    layers, strategies = [], _strategies(raw)
    for name, by_type in counts.items() if isinstance(counts, dict) else ():
        matrices = by_type.values() if isinstance(by_type, dict) else ()
        rows = [row for matrix in matrices if isinstance(matrix, list) for row in matrix]
        entries = [entry for row in rows if isinstance(row, list) for entry in row]
        total = sum(entry for entry in entries if isinstance(entry, int))
        if total > 0:
            layer = unit_layer(name, total)
            layer = replace(layer, is_mtp=name in mtp, activation_mb=held_mb)
            layers.append(layer.offering(strategies))
    if not layers:
        raise InputError(
            str(path), [f"holds no layers; give a plan file that has a plan (got {shown(counts)} in counts)"]
        )
    named = raw.get("model") if isinstance(raw, dict) else None
    # A HEAD and a TAIL allow first and last cells without a BODY layer, as the plan may have had them.
    ends = [
        layer_from_times(name=f"unknown {kind.value}", kind=kind, forward_ms=1.0)
        for kind in (LayerKind.HEAD, LayerKind.TAIL)
    ]
    model = Model(name=named if isinstance(named, str) and named else "plan", layers=(*layers, *ends))
    plan = read_plan(path, model).plan
    if plan is None:
        raise InputError(str(path), ["holds no plan, because none fits; give one that has a plan"])
    return plan


def _read(path: str | PathLike[str]) -> object:
    """Read the file; one that is a model file is refused by its name."""
    document = read_document(path, PLAN_OTHERWISE)
    if isinstance(document.value, dict) and "layers_description" in document.value:
        raise InputError(str(path), [f"is a model file, not a plan file; {PLAN_OTHERWISE}"])
    if document.faults:
        raise InputError(str(path), document.faults)
    return document.value


def _strategies(raw: object) -> list[LayerStrategy]:
    """Make a strategy of every name that stands where types do; what can not be one is left to be refused."""
    document = raw if isinstance(raw, dict) else {}
    problem = document.get("problem")
    asked = problem if isinstance(problem, dict) else {}
    fixed = asked["fix"].get("recompute") if isinstance(asked.get("fix"), dict) else None
    tables = [table for table in (document.get("counts"), fixed) if isinstance(table, dict)]
    by_layer = [types for table in tables for types in table.values() if isinstance(types, dict)]
    labels = [label for types in by_layer for label in types]
    labels += asked["recompute"] if isinstance(asked.get("recompute"), list) else []
    names = dict.fromkeys(
        label
        for label in labels
        if isinstance(label, str) and label not in LABELS and not name_fault("", label)
    )
    return [
        LayerStrategy(name=name, backward_ms=2.0, activation_mb=1.0) for name in list(names)[:MOST_STRATEGIES]
    ]


def bodies_alone(plan: Plan) -> Plan:
    """Leave out the HEAD and TAIL that stand in for those of a model that is not given."""
    problem = plan.problem
    model = replace(problem.model, layers=problem.model.bodies)
    bare = replace(problem, model=model, min_layers_per_cell=0)
    return Plan(problem=bare, counts=plan.counts)
