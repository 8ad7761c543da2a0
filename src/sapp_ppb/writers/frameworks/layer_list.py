"""A plan with one line a layer, for people and programs that know no framework: CSV and JSON."""

import csv
import io
import json
from collections.abc import Iterator

from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.targets.cell_types import cell_types
from sapp_ppb.targets.config import LAYERS_COLUMNS, LAYERS_FORMAT, LAYERS_VERSION

# Index, name, stage, chunk and recompute; None where nothing can be recomputed.
_Row = tuple[int, str, int, int, str | None]


def layers_csv_text(plan: Plan) -> str:
    """
    Table of a plan's layers along the chain, as CSV.

    A HEAD or TAIL is never recomputed, and so has nothing in the last column.

    Raises
    ------
    InputError
        If the last stage or chunk holds no layer: the table would not show that it exists.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> layers = (layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=1),
    ...           layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1))
    >>> problem = Problem(model=Model(name="tiny", layers=layers), stages=2, micro_batches=4)
    >>> print(layers_csv_text(plan_from_matrices(problem, {"Dec": {"none": [[1, 1]]}})), end="")
    index,name,stage,chunk,recompute
    0,Emb,0,0,
    1,Dec,0,0,none
    2,Dec,1,0,none
    """
    rows = list(_rows(plan))
    places = (("stage", 2, plan.problem.stages), ("chunk", 3, plan.problem.interleave))
    faults = [
        f"{word} {number - 1} is the last and holds no layer, which a table of layers does not show; "
        "write JSON, or plan with --min-layers 1"
        for word, column, number in places
        if max(int(str(row[column])) for row in rows) < number - 1
    ]
    if faults:
        raise InputError("plan", faults)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(LAYERS_COLUMNS)
    table.writerows((*row[:-1], row[-1] or "") for row in rows)
    return text.getvalue()


def layers_json_text(plan: Plan) -> str:
    """
    Layers of a plan along the chain, with its sizes and schedule, as JSON.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=1, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=1, micro_batches=4)
    >>> print(layers_json_text(plan_from_matrices(problem, {"Dec": {"none": [[1]]}})), end="")
    {
      "format": "sapp-ppb-layers",
      "version": 1,
      "stages": 1,
      "interleave": 1,
      "micro_batches": 4,
      "schedule": "1f1b",
      "layers": [
        {"index": 0, "name": "Dec", "stage": 0, "chunk": 0, "recompute": "none"}
      ]
    }
    """
    problem = plan.problem
    order = problem.order_file
    sizes = {
        "format": LAYERS_FORMAT,
        "version": LAYERS_VERSION,
        "stages": problem.stages,
        "interleave": problem.interleave,
        "micro_batches": problem.micro_batches,
        "schedule": problem.schedule_name.value,
        "micro_batch_group": problem.micro_batch_group,
        "order": None if order is None else {"path": order.path, "sha256": order.sha256},
    }
    given = [f'  "{key}": {_json(value)},' for key, value in sizes.items() if value is not None]
    layers = [f"    {_json(dict(zip(LAYERS_COLUMNS, row, strict=True)))}" for row in _rows(plan)]
    return "\n".join(["{", *given, '  "layers": [', ",\n".join(layers), "  ]", "}"]) + "\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _rows(plan: Plan) -> Iterator[_Row]:
    """Row of every layer along the chain."""
    for index, row in enumerate(_placed(plan)):
        yield (index, *row)


def _placed(plan: Plan) -> Iterator[tuple[str, int, int, str | None]]:
    """Name, stage, chunk, and recompute type or strategy of every layer along the chain."""
    model, cells, types = plan.problem.model, plan.problem.cells, cell_types(plan)
    names = iter([layer.name for layer in model.bodies for _ in range(layer.count)])
    place = {cell: (v, s) for v, row in enumerate(plan.problem.cell_at) for s, cell in enumerate(row)}
    for cell in range(cells):
        chunk, stage = place[cell]
        if cell == 0:
            yield from ((layer.name, stage, chunk, None) for layer in model.heads for _ in range(layer.count))
        yield from ((next(names), stage, chunk, recompute.label) for recompute in types[chunk][stage])
        if cell == cells - 1:
            yield from ((layer.name, stage, chunk, None) for layer in model.tails for _ in range(layer.count))
