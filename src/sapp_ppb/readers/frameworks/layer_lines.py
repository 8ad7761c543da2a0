"""Lines of a list of layers, whatever the file: each checked, then put in the order of the chain."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sapp_ppb.costs import Recompute, RecomputeType
from sapp_ppb.costs.checks import LARGEST_COUNT, shown, text_fault
from sapp_ppb.costs.strategy import type_named

_SHOWN_FAULTS = 20


@dataclass(frozen=True, kw_only=True)
class LayerLine:
    """
    A line, and the place in the file where it stands.

    Attributes
    ----------
    index
        Number of the layer along the chain, HEAD and TAIL included.
    name, stage, chunk
        What it is called and where it lives.
    recompute
        Its type; None for a HEAD or TAIL.
    place
        For messages.
    """

    index: int
    name: str
    stage: int
    chunk: int
    recompute: RecomputeType | None
    place: str


@dataclass
class LayerLines:
    """
    Checks lines one by one, and gathers what is wrong.

    Attributes
    ----------
    from_text
        Whether numbers are written as text.
    types
        Recompute types and strategies that lines may name.
    faults
        One sentence a fault.
    layers
        Lines without a fault.

    Examples
    --------
    >>> lines = LayerLines(from_text=True)
    >>> lines.add("line 2", {"index": "0", "name": "Dec", "stage": "0", "chunk": "-1", "recompute": "none"})
    >>> lines.faults
    ["line 2: chunk must be a whole number from 0 on (got '-1')"]
    """

    from_text: bool
    types: Sequence[RecomputeType] = tuple(Recompute)
    faults: list[str] = field(default_factory=list)
    layers: list[LayerLine] = field(default_factory=list)

    def add(self, place: str, values: Mapping[str, object]) -> None:
        """Keep a line, or say what is wrong with it."""
        before = len(self.faults)
        index, stage, chunk = (self._number(place, key, values[key]) for key in ("index", "stage", "chunk"))
        name, recompute = values["name"], self._recompute(place, values["recompute"])
        if fault := text_fault("name", name):
            self.faults.append(f"{place}: {fault}")
        if len(self.faults) == before:
            self.layers.append(
                LayerLine(
                    index=index, name=str(name), stage=stage, chunk=chunk, recompute=recompute, place=place
                )
            )

    def _number(self, place: str, key: str, value: object) -> int:
        if (
            self.from_text
            and isinstance(value, str)
            and value.isascii()
            and value.isdigit()
            and len(value) < 10
        ):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < LARGEST_COUNT:
            self.faults.append(f"{place}: {key} must be a whole number from 0 on (got {shown(value)})")
            return 0
        return value

    def _recompute(self, place: str, value: object) -> RecomputeType | None:
        labels = [recompute.label for recompute in self.types]
        if value in (None, ""):
            return None
        if value in labels:
            return type_named(str(value), self.types)
        self.faults.append(
            f"{place}: recompute must be one of {', '.join(labels)}, or nothing for a HEAD or TAIL "
            f"(got {shown(value)})"
        )
        return None

    def in_order(self) -> list[LayerLine]:
        """Layers along the chain, with faults for indices and for HEAD and TAIL among them."""
        times = Counter(layer.index for layer in self.layers)
        doubled = [index for index, number in times.items() if number > 1]
        if not self.faults:
            self.faults += [f"index {index} stands {times[index]} times; give each once" for index in doubled]
            missing = sorted(set(range(len(self.layers))) - set(times))
            self.faults += [
                f"index {index} is missing; give every index from 0 on" for index in missing[:_SHOWN_FAULTS]
            ]
        layers = sorted(self.layers, key=lambda layer: layer.index)
        bodies = [at for at, layer in enumerate(layers) if layer.recompute is not None]
        if not bodies and not self.faults:
            self.faults.append("no layer has a recompute type; write none where nothing is recomputed")
        elif bodies:
            inner = layers[bodies[0] : bodies[-1] + 1]
            self.faults += [
                f"{layer.place}: recompute is missing between layers that have one; write none"
                for layer in inner
                if layer.recompute is None
            ]
        return layers
