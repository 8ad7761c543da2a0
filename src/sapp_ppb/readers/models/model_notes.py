"""What in a model file can be read but is probably not what its author meant."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from sapp_ppb.costs.checks import shown
from sapp_ppb.costs.layer import Layer, LayerKind
from sapp_ppb.costs.recompute import Recompute
from sapp_ppb.readers.models.model_entry import LayerEntry

_MOST_KEYS = 20  # of one object; a file of another format has nothing but unknown ones


def unknown_key_notes(keys: Iterable[str], known: tuple[str, ...], prefix: str) -> list[str]:
    """
    One sentence for every key that is not read, naming the nearest that is.

    Examples
    --------
    >>> unknown_key_notes(["nb_layers"], ("time", "nb_layer"), "layers_description[0].")
    ["layers_description[0].'nb_layers' is unknown and ignored; the nearest known key is nb_layer"]
    """
    notes = []
    unknown = [key for key in keys if key not in known]
    for key in unknown[:_MOST_KEYS]:
        near = get_close_matches(key.strip().lower(), known, n=1)
        hint = f"the nearest known key is {near[0]}" if near else f"known keys are {', '.join(known)}"
        notes.append(f"{prefix}{shown(key)} is unknown and ignored; {hint}")
    hidden = len(unknown) - _MOST_KEYS
    if hidden > 0:
        notes.append(f"{prefix}{shown(unknown[-1])} and {hidden:,} keys before it are unknown and ignored")
    return notes


def partition_notes(raw: Mapping[str, object], counts: Mapping[str, int]) -> list[str]:
    """
    Say what is odd in the two sections that repeat what ``layers_description`` rules.

    Parameters
    ----------
    raw
        The top level as the file gives it.
    counts
        ``nb_layer`` of each layer by its name.
    """
    notes = []
    for section in ("pre_defined_layer", "auto_partition_layer"):
        given = raw.get(section)
        if given is None:
            continue
        if not isinstance(given, dict):
            notes.append(f"{section} is no object and is ignored (got {shown(given)})")
            continue
        notes += [f"{section} names {shown(name)}, which is no layer" for name in given if name not in counts]
        if section == "auto_partition_layer":
            notes += _count_notes(given, counts)
    return notes


def _count_notes(given: Mapping[str, object], counts: Mapping[str, int]) -> list[str]:
    """Say which counts contradict ``nb_layer``."""
    return [
        f"auto_partition_layer says {shown(count)} of {shown(name)} but nb_layer {shown(counts[name])}; "
        "nb_layer is used"
        for name, count in given.items()
        if name in counts and count != counts[name]
    ]


def entry_notes(entry: LayerEntry, layer: Layer, prefix: str) -> list[str]:
    """Name keys of one layer that have no effect, and times that look like slips."""
    given = {key: value for key, value in entry if value is not None}
    if layer.kind is not LayerKind.BODY:
        keys = [key for key in _recompute_keys() if given.get(key)]
        said = f"{prefix}{', '.join(keys)}: a {layer.kind.value} is never recomputed; ignored"
        notes = [said] if keys else []
        if layer.tied_to is not None and not layer.parameter_mb:
            notes.append(f"{prefix}tied_to has no effect: a layer without memory_parameter shares none")
        return notes + _overruled_notes(given, (Recompute.NONE,), prefix)
    zeros = ", ".join(r.memory_key for r in Recompute if given.get(r.memory_key) == 0)
    notes = [f"{prefix}{zeros}: 0 MB counts as not given"] if zeros else []
    notes += _overruled_notes(given, tuple(Recompute), prefix)
    if Recompute.NONE not in layer.considered:
        notes.append(
            f"{prefix}memory_activation is not given: no plan can leave this layer without recompute"
        )
    base = layer.backward_ms[Recompute.NONE]
    notes += [
        f"{prefix}backward with {r.label} takes {layer.backward_ms[r]:g} ms, less than the {base:g} ms "
        f"without recompute; {r.time_key if isinstance(r, Recompute) else 'its backward_time'} is the whole "
        "backward time"
        for r in layer.considered
        if layer.backward_ms[r] < base
    ]
    return notes


def _overruled_notes(given: Mapping[str, object], types: tuple[Recompute, ...], prefix: str) -> list[str]:
    """Name coefficients that stand beside the explicit time of the same type."""
    return [
        f"{prefix}{r.coefficient_key} has no effect beside {r.time_key}"
        for r in types
        if given.get(r.coefficient_key) is not None and given.get(r.time_key) is not None
    ]


def _recompute_keys() -> list[str]:
    """Keys that mean something only for a layer that may be recomputed."""
    types = [r for r in Recompute if r is not Recompute.NONE]
    return [key for r in types for key in (r.memory_key, r.coefficient_key, r.time_key)]
