"""A layer: what one entry of a model file costs, for every recompute type."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from sapp_ppb.costs.checks import count_fault, number_fault, shown, text_fault
from sapp_ppb.costs.cost import NOTHING, Cost
from sapp_ppb.costs.recompute import Recompute
from sapp_ppb.costs.special import tie_fault, transient_fault
from sapp_ppb.costs.strategy import LayerStrategy, RecomputeType, Strategy, names_faults, numbered
from sapp_ppb.errors import InputError


class LayerKind(Enum):
    """Where a layer sits: HEAD in the first cell, TAIL in the last, BODY anywhere between."""

    HEAD = "HEAD"
    BODY = "BODY"
    TAIL = "TAIL"


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """
    One entry of a model: ``count`` equal layers in a row, priced one by one.

    Attributes
    ----------
    name
        Name, unique in its model.
    kind
        HEAD, BODY or TAIL.
    count
        How many such layers follow each other, 1 to a million.
    forward_ms
        Forward time of one layer, milliseconds; above 0 for a BODY layer.
    backward_ms
        Backward time of one layer, milliseconds, shape (types,), indexed by ``types``:
        the five of Recompute, then the strategies; what is done again included.  A HEAD
        or TAIL is never recomputed: the time of NONE is its time for every type.
    parameter_mb
        Parameters, gradients and optimizer state of one layer, MB.
    activation_mb
        Activation memory of one layer and one micro-batch, MB, shape (types,), indexed by
        ``types``; None where not given.  A 0 counts as not given and is kept as None,
        but for a strategy; for a HEAD or TAIL only that of NONE is kept.
    model_name
        Model that the layer was measured in; None where unknown.
    weight_grad_ms
        Time of the weight gradients where a schedule runs them apart, milliseconds, at
        most the backward of any considered type; None: the forward time.
    is_mtp
        Whether this is a layer of multi-token prediction, which frameworks say apart
        from the others; only a BODY layer at the end of the chain can be one.
    transient_mb
        Memory that one such layer needs on top of everything else while an op of its cell
        runs, forward or backward, MB; for a HEAD or TAIL, such as the logits of an output.
    tied_to
        Name of the HEAD or TAIL whose parameters this HEAD or TAIL uses too; None for none.
    estimated
        Costs that nobody has measured; empty where nothing is known of it.
    strategies
        Names of what the layer may do beside recomputation, of a BODY layer only; a
        model gives all of its BODY layers the same.

    Raises
    ------
    InputError
        If a value is not allowed, with all faults at once.

    Examples
    --------
    >>> from sapp_ppb.costs import layer_from_times
    >>> layer = layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=10,
    ...                          activation_mb={Recompute.NONE: 600, Recompute.FULL: 40})
    >>> layer.backward_ms[Recompute.FULL]  # (1 + 0.5) * (2 * 10)
    30.0
    >>> [recompute.label for recompute in layer.considered]
    ['none', 'full']
    """

    name: str
    kind: LayerKind
    count: int = 1
    forward_ms: float
    backward_ms: tuple[float, ...]
    parameter_mb: float = 0.0
    activation_mb: tuple[float | None, ...] = (None,) * len(Recompute)
    model_name: str | None = None
    weight_grad_ms: float | None = None
    is_mtp: bool = False
    transient_mb: float = 0.0
    tied_to: str | None = None
    estimated: frozenset[Cost] = NOTHING
    strategies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check every field, then keep one form of each value."""
        faults = [fault for fault in self._faults() if fault]
        if not faults and self.weight_grad_ms is not None:
            object.__setattr__(self, "weight_grad_ms", float(self.weight_grad_ms) + 0.0)
            fault = self.split_fault()
            faults = [fault] if fault else []
        if faults:
            raise InputError(f"layer {shown(self.name)}", faults)
        backward = tuple(float(value) + 0.0 for value in self.backward_ms)  # + 0.0: -0.0 becomes 0.0
        activation = tuple(
            float(value) + 0.0 if value or (value is not None and isinstance(r, Strategy)) else None
            for r, value in zip(self.types, self.activation_mb, strict=True)
        )
        if self.kind is not LayerKind.BODY:
            backward = (backward[Recompute.NONE],) * len(Recompute)
            activation = (activation[Recompute.NONE],) + (None,) * (len(Recompute) - 1)
        object.__setattr__(self, "count", int(self.count))
        object.__setattr__(self, "forward_ms", float(self.forward_ms) + 0.0)
        object.__setattr__(self, "backward_ms", backward)
        object.__setattr__(self, "parameter_mb", float(self.parameter_mb) + 0.0)
        object.__setattr__(self, "activation_mb", activation)
        object.__setattr__(self, "transient_mb", float(self.transient_mb) + 0.0)
        object.__setattr__(self, "strategies", tuple(self.strategies))

    def _faults(self) -> list[str | None]:
        """One sentence or None for every check, in the order of the fields."""
        is_kind, is_body = isinstance(self.kind, LayerKind), self.kind is LayerKind.BODY
        strategies = self._strategy_faults()
        types = numbered(() if strategies else tuple(self.strategies))
        return [
            text_fault("name", self.name),
            None if is_kind else f"kind must be a LayerKind (got {shown(self.kind)})",
            count_fault("count", self.count),
            number_fault("forward_ms", self.forward_ms, above_zero=is_body),
            *_by_type_faults("backward_ms", self.backward_ms, types, may_miss=False),
            number_fault("parameter_mb", self.parameter_mb),
            *_by_type_faults("activation_mb", self.activation_mb, types, may_miss=True),
            None if self.model_name is None else text_fault("model_name", self.model_name),
            None if self.weight_grad_ms is None else number_fault("weight_grad_ms", self.weight_grad_ms),
            self._mtp_fault(),
            transient_fault(self.transient_mb, is_body=is_body),
            tie_fault(self.tied_to, name=self.name, count=self.count, is_body=is_body),
            self._estimated_fault(),
            *strategies,
        ]

    def _mtp_fault(self) -> str | None:
        if self.is_mtp and self.kind is not LayerKind.BODY:
            return f"is_mtp is for BODY layers (got {shown(self.kind)})"
        return None

    def _strategy_faults(self) -> list[str]:
        faults = names_faults(self.strategies)
        if not faults and self.strategies and self.kind is not LayerKind.BODY:
            return [f"strategies are for BODY layers (got {shown(self.kind)})"]
        return faults

    def _estimated_fault(self) -> str | None:
        given: object = self.estimated
        if isinstance(given, frozenset) and all(isinstance(cost, Cost) for cost in given):
            return None
        return f"estimated must be a frozenset of Cost (got {shown(given)})"

    @property
    def family(self) -> str:
        """
        Name without the number at its end, which layers of a kind that do not stand together have.

        Examples
        --------
        >>> from sapp_ppb.costs import layer_from_times
        >>> layer_from_times(name="mamba.12", kind=LayerKind.BODY, forward_ms=10).family
        'mamba'
        """
        return re.sub(r"(?<=.)\.[0-9]+$", "", self.name)

    @property
    def weight_ms(self) -> float:
        """Milliseconds of one layer's weight gradients, when they are run apart."""
        return self.forward_ms if self.weight_grad_ms is None else self.weight_grad_ms

    @property
    def types(self) -> tuple[RecomputeType, ...]:
        """What its times and memory are indexed by: the five recompute types, then its strategies."""
        return numbered(self.strategies)

    def split_fault(self, types: Iterable[RecomputeType] | None = None) -> str | None:
        """
        Say why a backward can not be split: nothing is left for its input gradients.

        Parameters
        ----------
        types
            Recompute types that matter; None: all that are considered.

        Examples
        --------
        >>> from sapp_ppb.costs import layer_from_times
        >>> layer = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=4, backward_ms=3)
        >>> layer.split_fault()
        'weight_grad_ms must be at most the backward time with none, 3 ms (got 4 ms, the forward time)'
        """
        for r in self.considered if types is None else types:
            if self.backward_ms[r] < self.weight_ms:
                given = "" if self.weight_grad_ms is not None else ", the forward time"
                return (
                    f"weight_grad_ms must be at most the backward time with {r.label}, "
                    f"{self.backward_ms[r]:,.10g} ms (got {self.weight_ms:,.10g} ms{given})"
                )
        return None

    @property
    def considered(self) -> tuple[RecomputeType, ...]:
        """
        Types that a plan may choose for this layer: least recomputed first, then its strategies.

        A BODY layer has those whose activation memory is given; one without any
        is balanced on time alone, with NONE.  A HEAD or TAIL has NONE.
        """
        given = tuple(r for r in self.types if self.activation_mb[r] is not None)
        return given if given and self.kind is LayerKind.BODY else (Recompute.NONE,)

    def activation(self, recompute: RecomputeType) -> float:
        """Activation memory of one layer and one micro-batch, MB; 0.0 where not given."""
        return self.activation_mb[recompute] or 0.0

    def least_work_first(self, types: Sequence[RecomputeType]) -> tuple[RecomputeType, ...]:
        """
        Order types by what they add: as they are numbered, or by backward time with strategies among them.

        Examples
        --------
        >>> from sapp_ppb.costs import layer_from_times
        >>> swap = LayerStrategy(name="swap", backward_ms=21, activation_mb=9)
        >>> layer = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=10, strategies=[swap])
        >>> [r.label for r in layer.least_work_first(layer.types)]  # 20, 20.8, 21, 22.5 ms and so on
        ['none', 'selective', 'swap', 'comm', 'both', 'full']
        """
        if not any(isinstance(r, Strategy) for r in types):
            return tuple(sorted(types))
        return tuple(sorted(types, key=lambda r: (self.backward_ms[r], r)))

    def offering(self, strategies: Sequence[LayerStrategy]) -> "Layer":
        """
        Give a layer without strategies some.

        Raises
        ------
        InputError
            If names are equal, or the layer is no BODY layer.
        """
        if not strategies:
            return self
        return replace(
            self,
            strategies=tuple(strategy.name for strategy in strategies),
            backward_ms=self.backward_ms + tuple(strategy.backward_ms for strategy in strategies),
            activation_mb=self.activation_mb + tuple(strategy.activation_mb for strategy in strategies),
        )

    @property
    def offered(self) -> tuple[str, ...]:
        """Names of the strategies that it has costs for."""
        return tuple(r.label for r in self.types[len(Recompute) :] if self.activation_mb[r] is not None)

    def renumbered(self, names: tuple[str, ...]) -> "Layer":
        """
        Give the strategies of the layer other numbers, so that a model's layers agree.

        Parameters
        ----------
        names
            Those offered among them; of the others it has no activation memory.
        """
        if names == self.strategies:
            return self
        own = dict(
            zip(
                (r.label for r in self.types),
                zip(self.backward_ms, self.activation_mb, strict=True),
                strict=True,
            )
        )
        absent = (self.backward_ms[Recompute.NONE], None)
        costs = [own.get(r.label, absent) for r in numbered(names)]
        return replace(
            self,
            strategies=names,
            backward_ms=tuple(backward for backward, _ in costs),
            activation_mb=tuple(activation for _, activation in costs),
        )

    def describe(self) -> str:
        """
        Text for people: a line for the layer, then one a considered recompute type.

        Examples
        --------
        >>> from sapp_ppb.costs import layer_from_times
        >>> layer = layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=13, parameter_mb=9236)
        >>> print(layer.describe())
        Emb: HEAD x 1, forward 13 ms, parameters 9,236 MB
          none       backward 26 ms, activation 0 MB
        """
        model = f" of {self.model_name}" if self.model_name else ""
        lines = [
            f"{self.name}{model}: {self.kind.value} x {self.count}, forward {self.forward_ms:,.10g} ms, "
            f"parameters {self.parameter_mb:,.10g} MB{self._special_words}"
        ]
        lines += [
            f"  {r.label:<10} backward {self.backward_ms[r]:,.10g} ms, "
            f"activation {self.activation(r):,.10g} MB"
            for r in self.considered
        ]
        return "\n".join(lines)

    @property
    def _special_words(self) -> str:
        """What sets the layer apart from others."""
        words = ", of multi-token prediction" if self.is_mtp else ""
        words += f", tied to {self.tied_to}" if self.tied_to is not None else ""
        return words + (f", {self.transient_mb:,.10g} MB more while it runs" if self.transient_mb else "")


def strategies_of(layers: Sequence[Layer]) -> tuple[str, ...]:
    """
    Names of the strategies that layers offer, in the order in which they first appear.

    Examples
    --------
    >>> strategies_of([])
    ()
    """
    return tuple(dict.fromkeys(name for layer in layers for name in layer.offered))


def _by_type_faults(
    field: str, values: object, types: Sequence[RecomputeType], *, may_miss: bool
) -> list[str | None]:
    """Faults of a tuple that is indexed by types."""
    try:
        given: tuple[object, ...] = tuple(values)  # type: ignore[arg-type]  # whatever can be walked through
    except TypeError:
        given = ()
    if isinstance(values, str | Mapping) or len(given) != len(types):
        word = "recompute type" if len(types) == len(Recompute) else "recompute type and strategy"
        return [f"{field} must be {len(types)} numbers, one a {word} (got {shown(values)})"]
    return [
        number_fault(f"{field} of {r.label}", given[r]) for r in types if not (may_miss and given[r] is None)
    ]
