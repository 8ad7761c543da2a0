"""A model: the chain of layers that is to be spread over pipeline stages."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sapp_ppb.costs.checks import LARGEST_COUNT, number_fault, shown, text_fault
from sapp_ppb.costs.combine import layers_of_kind
from sapp_ppb.costs.cost import Cost
from sapp_ppb.costs.layer import Layer, LayerKind, strategies_of
from sapp_ppb.costs.recompute import Recompute
from sapp_ppb.costs.strategy import RecomputeType, names_faults, numbered, type_named
from sapp_ppb.costs.tied import tied_faults
from sapp_ppb.errors import InputError

_NUMBERS = ("constant_memory_mb", "op_overhead_ms", "hop_ms")


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """
    Layers in file order; along the chain the HEADs come first and the TAILs last.

    Attributes
    ----------
    name
        Name of the model.
    layers
        Layers of unique names, at least one of them BODY.  The strategies of BODY layers
        are numbered alike, in the order in which they first appear.
    constant_memory_mb
        Memory that every stage holds besides its layers, MB (``stage_const_mem``).
    op_overhead_ms
        Milliseconds that every op of every cell takes besides its layers.
    hop_ms
        Milliseconds that every message between two stages takes besides the problem's own.

    Raises
    ------
    InputError
        If a value is not allowed, with all faults at once.

    Examples
    --------
    >>> from sapp_ppb.costs.layer_times import layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=10)
    >>> Model(name="tiny", layers=(body,)).total_backward_ms  # 4 * 2 * 10
    80.0
    """

    name: str
    layers: tuple[Layer, ...]
    constant_memory_mb: float = 0.0
    op_overhead_ms: float = 0.0
    hop_ms: float = 0.0

    def __post_init__(self) -> None:
        """Check every field, then keep one form of each value."""
        faults = self._faults()
        if faults:
            raise InputError(f"model {shown(self.name)}", faults)
        object.__setattr__(self, "layers", _numbered_alike(self.layers))
        for field in _NUMBERS:
            object.__setattr__(self, field, float(getattr(self, field)) + 0.0)

    def _faults(self) -> list[str]:
        """One sentence a fault."""
        checks = [text_fault("name", self.name)]
        checks += [number_fault(field, getattr(self, field)) for field in _NUMBERS]
        faults = [fault for fault in checks if fault]
        if not isinstance(self.layers, tuple | list) or not all(
            isinstance(layer, Layer) for layer in self.layers
        ):
            return [*faults, f"layers must be a tuple of Layer (got {shown(self.layers)})"]
        names = [layer.name for layer in self.layers]
        return faults + name_faults(names) + body_faults(self.layers) + tied_faults(self.layers)

    @property
    def types(self) -> tuple[RecomputeType, ...]:
        """What a plan chooses from: the five recompute types, then the strategies of its layers."""
        return numbered(self.bodies[0].strategies)

    def type_named(self, label: str) -> RecomputeType:
        """
        Type of a label such as ``"full"``, or the name of a strategy.

        Raises
        ------
        InputError
            If no type has this label; the message lists those that exist.
        """
        return type_named(label, self.types)

    @property
    def heads(self) -> tuple[Layer, ...]:
        """HEAD layers, in file order; they sit in the first cell."""
        return layers_of_kind(self.layers, LayerKind.HEAD)

    @property
    def bodies(self) -> tuple[Layer, ...]:
        """BODY layers, in file order, which is their order along the chain."""
        return layers_of_kind(self.layers, LayerKind.BODY)

    @property
    def tails(self) -> tuple[Layer, ...]:
        """TAIL layers, in file order; they sit in the last cell."""
        return layers_of_kind(self.layers, LayerKind.TAIL)

    @property
    def body_count(self) -> int:
        """N, the number of BODY layers, counts included."""
        return sum(layer.count for layer in self.bodies)

    @property
    def mtp_count(self) -> int:
        """Layers of multi-token prediction among them, the last of the chain."""
        return sum(layer.count for layer in self.bodies if layer.is_mtp)

    @property
    def estimated(self) -> frozenset[Cost]:
        """Costs that are estimated in at least one layer."""
        return frozenset().union(*(layer.estimated for layer in self.layers))

    @property
    def total_forward_ms(self) -> float:
        """Forward time of one micro-batch through the whole chain, milliseconds."""
        return sum(layer.count * layer.forward_ms for layer in self.layers)

    @property
    def total_backward_ms(self) -> float:
        """Backward time of one micro-batch without recompute, milliseconds."""
        return sum(layer.count * layer.backward_ms[Recompute.NONE] for layer in self.layers)

    @property
    def total_parameter_mb(self) -> float:
        """Memory of all parameters, MB; those that layers share are counted in each of them."""
        return sum(layer.count * layer.parameter_mb for layer in self.layers)

    def describe(self) -> str:
        """
        Text for people: a line for the model, then its layers along the chain.

        Examples
        --------
        >>> from sapp_ppb.costs.layer_times import layer_from_times
        >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=10)
        >>> print(Model(name="tiny", layers=(body,)).describe())
        tiny: 4 BODY layers, forward 40 ms, backward 80 ms, parameters 0 MB, constant 0 MB a stage
        Dec: BODY x 4, forward 10 ms, parameters 0 MB
          none       backward 20 ms, activation 0 MB
        """
        first = (
            f"{self.name}: {self.body_count} BODY layers, forward {self.total_forward_ms:,.10g} ms, "
            f"backward {self.total_backward_ms:,.10g} ms, parameters {self.total_parameter_mb:,.10g} MB, "
            f"constant {self.constant_memory_mb:,.10g} MB a stage"
        )
        if self.op_overhead_ms or self.hop_ms:
            first += f", besides {self.op_overhead_ms:,.10g} ms an op and {self.hop_ms:,.10g} ms a hop"
        chain = self.heads + self.bodies + self.tails
        return "\n".join([first, *(layer.describe() for layer in chain)])


def _numbered_alike(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Layers whose strategies have the same numbers in all of them."""
    names = strategies_of(layers)
    return tuple(layer.renumbered(names) if layer.kind is LayerKind.BODY else layer for layer in layers)


def name_faults(names: Sequence[str]) -> list[str]:
    """
    Faults of names that must differ.

    Examples
    --------
    >>> name_faults(["Emb", "Dec", "Dec"])
    ["layer names must be unique (got 'Dec' 2 times)"]
    """
    return [
        f"layer names must be unique (got {shown(name)} {times} times)"
        for name, times in Counter(names).items()
        if times > 1
    ]


def body_faults(layers: Sequence[Layer]) -> list[str]:
    """
    Faults that only the whole chain shows: no BODY layer, too many, or one out of its place.

    Examples
    --------
    >>> body_faults([])
    ['at least one layer must be of kind BODY (got none)']
    """
    counts = [layer.count for layer in layers_of_kind(layers, LayerKind.BODY)]
    if not counts:
        found = ", ".join(sorted({layer.kind.value for layer in layers})) or "none"
        return [f"at least one layer must be of kind BODY (got {found})"]
    if sum(counts) > LARGEST_COUNT:
        return [f"the BODY layers must be at most {LARGEST_COUNT} together (got {sum(counts)})"]
    bodies = layers_of_kind(layers, LayerKind.BODY)
    return names_faults(strategies_of(layers)) + [
        f"layer {shown(layer.name)} is for multi-token prediction and must come after {shown(later.name)}, "
        "as the last BODY layer"
        for layer, later in pairwise(bodies)
        if layer.is_mtp and not later.is_mtp
    ]
