"""
The times of a Galvatron profile: ``computation_profiling_*.json``.

All are milliseconds of the forward on one device.  ``layertype_0_bsz8_seq2048`` is one layer
and one sample of a batch of 8, ``layertype_other_bsz8_seq2048`` all that is no layer;
``layernum[2]_bsz8_seq2048`` is the whole batch through a model of 2 layers, from which
the others follow where they are missing.
"""

import re
from dataclasses import dataclass, field
from os import PathLike

from sapp_ppb.errors import InputError
from sapp_ppb.readers.measurements.galvatron_keys import (
    LENGTH,
    SEQUENCES,
    Findings,
    open_profile,
    sequences_of,
)

_BATCH = r"([1-9]\d{0,5})"
_LAYER = re.compile(rf"layertype_(\d{{1,3}})_bsz{_BATCH}_seq({LENGTH})")
_OTHER = re.compile(rf"layertype_other_bsz{_BATCH}_seq{SEQUENCES}")
_WHOLE = re.compile(rf"layernum\[(\d{{1,6}}(?:,\d{{1,6}})*)\]_bsz{_BATCH}_seq{SEQUENCES}")
_PART = re.compile(r"(layertype|layernum).*_(attention|mlp)")

Counts = tuple[int, ...]  # layers of each kind in the small model that was timed
Sequences = tuple[int, ...]


@dataclass(kw_only=True)
class GalvatronTimes:
    """
    Times of a profile, milliseconds.

    Attributes
    ----------
    layer_ms
        One layer, one sample; by kind, batch size and sequence length.
    other_ms
        One sample through all that is no layer; by batch size and sequence lengths.
    whole_ms
        The whole batch through small models; by batch size, sequence lengths and layers.
    """

    layer_ms: dict[tuple[int, int, int], float] = field(default_factory=dict)
    other_ms: dict[tuple[int, Sequences], float] = field(default_factory=dict)
    whole_ms: dict[tuple[int, Sequences], dict[Counts, float]] = field(default_factory=dict)

    @property
    def profiled_layers(self) -> tuple[int, ...]:
        """Layer counts of the small models."""
        return tuple(
            sorted({count for totals in self.whole_ms.values() for counts in totals for count in counts})
        )


def read_galvatron_times(path: str | PathLike[str]) -> GalvatronTimes:
    """
    Read times of layers, as Galvatron processed them or as they follow from those of small models.

    Warns
    -----
    FileNote
        For keys that are not read.

    Raises
    ------
    InputError
        If the file can not be read, has no times of layers, or a value is not allowed;
        with all faults at once.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "times.json")
    ...     _ = path.write_text('{"layernum[2]_bsz8_seq512": 88, "layernum[4]_bsz8_seq512": 152}')
    ...     times = read_galvatron_times(path)
    >>> times.layer_ms, times.other_ms  # (152 - 88) / 2 layers / 8 samples; 88 / 8 - 2 * 4
    ({(0, 8, 512): 4.0}, {(8, (512,)): 3.0})
    """
    raw, found = open_profile(path)
    times = GalvatronTimes()
    parts = []
    for key, value in raw.items():
        if _PART.fullmatch(key):
            parts.append(key)
        elif not _take(key, value, times, found):
            found.unknown.append(key)
    for place in times.whole_ms:
        _derive(*place, times, found)
    found.unknown += parts
    if not times.layer_ms and not found.faults:
        raise InputError(found.path, [_nothing(raw, parts)])
    found.finish()
    return times


def _take(key: str, value: object, times: GalvatronTimes, found: Findings) -> bool:
    """Take the time of a key that is known."""
    if match := _LAYER.fullmatch(key):
        kind, batch, sequence = map(int, match.groups())
        times.layer_ms[kind, batch, sequence] = found.number(key, value, above_zero=True)
    elif match := _OTHER.fullmatch(key):
        times.other_ms[int(match[1]), sequences_of(match[2])] = found.number(key, value)
    elif match := _WHOLE.fullmatch(key):
        counts, sequences = sequences_of(match[1]), sequences_of(match[3])
        if len(counts) != len(sequences):
            found.faults.append(f"{key} must say as many sequence lengths as layer counts")
        totals = times.whole_ms.setdefault((int(match[2]), sequences), {})
        totals[counts] = found.number(key, value, above_zero=True)
    else:
        return False
    return True


def _derive(batch: int, sequences: Sequences, times: GalvatronTimes, found: Findings) -> None:
    """Derive what is missing of one batch size from two small models that differ in one kind alone."""
    totals = times.whole_ms[batch, sequences]
    base = min(totals)
    if found.faults or any(len(counts) != len(base) for counts in totals):
        return
    for kind, sequence in enumerate(sequences):
        more = next((counts for counts in sorted(totals) if _only_differs(counts, base, kind)), None)
        if (kind, batch, sequence) in times.layer_ms or more is None:
            continue
        layers = more[kind] - base[kind]
        ms = (totals[more] - totals[base]) / layers / batch
        if ms <= 0:
            models = f"layernum{list(more)} must take longer than layernum{list(base)}"
            found.faults.append(f"{models} with bsz{batch} (got {totals[more]:g} and {totals[base]:g} ms)")
            return
        times.layer_ms[kind, batch, sequence] = ms
    keys = [(kind, batch, sequence) for kind, sequence in enumerate(sequences)]
    if (batch, sequences) not in times.other_ms and all(key in times.layer_ms for key in keys):
        in_layers = sum(count * times.layer_ms[key] for count, key in zip(base, keys, strict=True))
        times.other_ms[batch, sequences] = max(totals[base] / batch - in_layers, 0.0)


def _only_differs(counts: Counts, base: Counts, kind: int) -> bool:
    return all((a > b) if at == kind else a == b for at, (a, b) in enumerate(zip(counts, base, strict=True)))


def _nothing(raw: dict[str, object], parts: list[str]) -> str:
    """Say what a file without times of layers seems to be."""
    if parts:
        return f"times parts of layers alone, such as {parts[0]}; profile whole layers (--profile_unit all)"
    if any(isinstance(value, dict) for value in raw.values()):
        return "holds no times; is it the memory profile, which --memory takes?"
    return "has no times of layers, which are named layertype_0_bsz8_seq2048 or layernum[2]_bsz8_seq2048"
