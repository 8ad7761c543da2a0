"""Strategies of a layer in a model file: the whole backward time, or what moves over a host link."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sapp_ppb.costs.checks import number_fault, shown
from sapp_ppb.costs.host_link import exposed_ms
from sapp_ppb.costs.layer import Layer
from sapp_ppb.costs.recompute import Recompute
from sapp_ppb.costs.strategy import LayerStrategy, name_fault, names_faults
from sapp_ppb.readers.models.model_notes import unknown_key_notes

_LINK_KEYS = ("host_mb", "host_gb_per_s", "hidden_share")
_KEYS = ("name", "memory_activation", "backward_time", *_LINK_KEYS)


@dataclass(frozen=True, kw_only=True)
class StrategyEntry:
    """
    One strategy as the file gives it; nothing of it is wrong.

    Attributes
    ----------
    name, memory_activation
        Name, and MB that the layer holds on the device.
    backward_time
        Whole backward, milliseconds; None: it follows from the link.
    link
        ``host_mb``, ``host_gb_per_s`` and ``hidden_share``; empty beside a backward time.
    """

    name: str
    memory_activation: float
    backward_time: float | None
    link: Mapping[str, float]

    def of(self, layer: Layer) -> LayerStrategy:
        """
        Price the strategy for a layer that otherwise keeps everything.

        Examples
        --------
        >>> from sapp_ppb.costs.layer import LayerKind
        >>> from sapp_ppb.costs.layer_times import layer_from_times
        >>> layer = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=100)
        >>> link = {"host_mb": 1000, "host_gb_per_s": 10.48576, "hidden_share": 0.4}
        >>> entry = StrategyEntry(name="swap", memory_activation=40, backward_time=None, link=link)
        >>> round(entry.of(layer).backward_ms, 9)  # 200 + (100 - 40) out + (100 - 80) back
        280.0
        """
        backward_ms = layer.backward_ms[Recompute.NONE]
        if self.backward_time is None:
            backward_ms += exposed_ms(**self.link, forward_ms=layer.forward_ms, backward_ms=backward_ms)
        return LayerStrategy(
            name=self.name,
            backward_ms=backward_ms if self.backward_time is None else self.backward_time,
            activation_mb=self.memory_activation,
        )


@dataclass
class StrategyEntries:
    """
    Reads the strategies of a layer, and gathers what is wrong and what is odd.

    Attributes
    ----------
    faults, notes
        One sentence each.
    entries
        Those without a fault.

    Examples
    --------
    >>> found = StrategyEntries()
    >>> found.read([{"name": "full", "memory_activation": -1}], "strategies")
    >>> print("; ".join(found.faults))
    strategies[0].name is that of a recompute type; choose another (got 'full'); \
strategies[0].memory_activation must be a number of at least 0 (got -1); \
strategies[0] must give backward_time, or host_mb, host_gb_per_s and hidden_share
    """

    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    entries: list[StrategyEntry] = field(default_factory=list)

    def read(self, raw: object, place: str) -> None:
        """Read a list of objects; null counts as not given."""
        if raw is None:
            return
        if not isinstance(raw, list):
            self.faults.append(f"{place} must be a list of objects, one a strategy (got {shown(raw)})")
            return
        for index, entry in enumerate(raw):
            self._read_one(entry, f"{place}[{index}]")
        if not self.faults:
            self.faults += [f"{place}: {fault}" for fault in names_faults([e.name for e in self.entries])]

    def _read_one(self, raw: object, place: str) -> None:
        if not isinstance(raw, dict):
            self.faults.append(f"{place} must be an object (got {shown(raw)})")
            return
        self.notes += unknown_key_notes(raw, _KEYS, f"{place}.")
        given = {key: raw[key] for key in _KEYS if raw.get(key) is not None}
        faults = [
            *(f"{place}.{key} is missing" for key in ("name", "memory_activation") if key not in given),
            *(fault for key, value in given.items() if (fault := _fault_of(f"{place}.{key}", key, value))),
            *_way_faults(given, place),
        ]
        # The reader of JSON has named a number that is not finite.
        infinite = any(isinstance(value, float) and not math.isfinite(value) for value in given.values())
        self.faults += faults
        if not faults and not infinite:
            time = given.get("backward_time")
            self.entries.append(
                StrategyEntry(
                    name=given["name"],
                    memory_activation=given["memory_activation"],
                    backward_time=time,
                    link={key: given[key] for key in _LINK_KEYS if key in given},
                )
            )


def _fault_of(place: str, key: str, value: object) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if key == "name":
        return name_fault(place, value)
    fault = number_fault(place, value, above_zero=key == "host_gb_per_s")
    if key == "hidden_share" and isinstance(value, int | float) and not fault and value > 1:
        return f"{place} must be from 0 to 1 (got {shown(value)})"
    return fault


def _way_faults(given: Mapping[str, object], place: str) -> list[str]:
    """Faults of how the time is said: whole, or by the link, one of the two."""
    link = [key for key in _LINK_KEYS if key in given]
    words = f"{', '.join(_LINK_KEYS[:-1])} and {_LINK_KEYS[-1]}"
    if "backward_time" in given:
        return [f"{place} gives backward_time and {', '.join(link)}; keep one"] if link else []
    if not link:
        return [f"{place} must give backward_time, or {words}"]
    return [f"{place}.{key} is missing beside {link[0]}" for key in _LINK_KEYS if key not in given]
