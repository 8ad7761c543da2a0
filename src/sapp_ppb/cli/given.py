"""Fields of a problem that the command line gives beside a configuration, which says the others itself."""

from pathlib import Path
from typing import Any

from sapp_ppb.cli.options.memory import memory_margin
from sapp_ppb.cli.options.order import AUTO, flavour, micro_batch_group, order_file, p2p_mode, schedule_name
from sapp_ppb.cli.options.values import numbers
from sapp_ppb.errors import InputError

# How the text of an option becomes a field, for those whose text is not the field itself.
_READ = {
    "memory_limit": ("memory_limit_mb", lambda text: numbers("--memory-limit", text, "MB")),
    "constant_memory": ("constant_memory_mb", lambda text: numbers("--constant-memory", text, "MB")),
    "p2p": ("p2p_ms", lambda text: numbers("--p2p", text, "ms")),
    "stage_speed": (
        "stage_speed",
        lambda text: numbers("--stage-speed", text, "times the measured speed"),
    ),
    "step_extra": ("step_extra_ms", lambda text: numbers("--step-extra", text, "ms")),
    "memory_margin_": ("memory_margin", memory_margin),
    "p2p_mode_": ("p2p_mode", p2p_mode),
    "schedule": ("schedule", schedule_name),
    "micro_batch_group_": ("micro_batch_group", micro_batch_group),
    "order": ("order_file", order_file),
    "flavour_": ("flavour", flavour),
    "min_layers": ("min_layers_per_cell", int),
}


def given_fields(**options: str | int | Path | None) -> dict[str, Any]:
    """
    Fields of ``Problem`` by name, for the options that were given.

    Raises
    ------
    InputError
        If an option is not what it must be.

    Examples
    --------
    >>> given_fields(micro_batches=8, memory_limit="56000", p2p=None)
    {'micro_batches': 8, 'memory_limit_mb': 56000.0}
    """
    if options.get("schedule") == AUTO:
        raise InputError("--schedule", [f"{AUTO} goes with sapp-ppb plan; name one schedule here"])
    fields: dict[str, Any] = {}
    for name, text in options.items():
        field, read = _READ.get(name, (name, lambda value: value))
        if text is not None:
            fields[field] = read(text)  # type: ignore[operator]
    return fields
