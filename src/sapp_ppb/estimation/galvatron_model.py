"""
A model out of a profile of Galvatron, for sizes that were profiled.

Times divide by the tensor-parallel size, as Galvatron has it, without the communication
that this adds, which is not in the profile.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sapp_ppb.costs import Layer, LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.costs.checks import count_fault, listed, number_fault
from sapp_ppb.costs.profiled import GalvatronProfile, ProfiledMemory
from sapp_ppb.errors import InputError, Note

FIRST, LAST = "other_first", "other_last"  # names of the HEAD and of the TAIL, after Galvatron's keys
# Bytes of a parameter's states in mixed precision: weights and gradients of 2, three states of 4.
_WEIGHT, _GRADIENT, _OPTIMIZER = 2 / 16, 2 / 16, 12 / 16
_MOST_DEVICES = 10**6
Choice = TypeVar("Choice", bound=int | tuple[int, ...])


@dataclass(frozen=True, kw_only=True)
class GalvatronSizes:
    """
    For which sizes a model is wanted; None takes the only one that was profiled.

    Attributes
    ----------
    layers
        Layers of the model, one number a kind.
    tp
        Tensor-parallel size.
    sequence
        Sequence length: one for all kinds of layers, or one a kind.
    micro_batch
        Samples of a micro-batch.
    dp
        Data-parallel devices over which ZeRO divides.
    zero
        Stage of ZeRO: 0 divides nothing, 1 the optimizer's state, 2 the gradients too, 3 the
        weights too.
    head_share
        Share of the time outside the layers that is the first stage's, 0 to 1.
    """

    layers: tuple[int, ...] | None = None
    tp: int | None = None
    sequence: tuple[int, ...] | None = None
    micro_batch: int | None = None
    dp: int = 1
    zero: int = 0
    head_share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _Chosen:
    layers: tuple[int, ...]
    tp: int
    sequence: tuple[int, ...]
    micro_batch: int
    states_share: float
    head_share: float


def model_from_galvatron(profile: GalvatronProfile, sizes: GalvatronSizes, *, name: str) -> Model:
    """
    Model whose BODY layers are the kinds of a profile, between one HEAD and one TAIL.

    With B samples and tensor-parallel size T a forward takes B / T times that of a sample
    in a batch of B, a backward twice that.  States are those of the profile at T, times
    what ZeRO leaves of them; activations those of a sample at T, times B.  A layer that is
    recomputed keeps its ``checkpoint``, which sequence parallelism divides by T.  What is no
    layer is the HEAD's on the first stage and the TAIL's on the last; its time is the
    TAIL's, but for ``head_share``.

    Warns
    -----
    Note
        That the communication of tensor parallelism is missing, where there is any.

    Raises
    ------
    InputError
        If a size was not profiled, or is not given and several were; all at once.

    Examples
    --------
    >>> memory = ProfiledMemory(states_mb={2: 400.0}, activation_mb={2: 30.0}, checkpoint_mb=8.0)
    >>> profile = GalvatronProfile(source="p", kinds=1, layer_ms={(0, 4, 512): 3.0},
    ...     other_ms={(4, (512,)): 2.0}, layer_memory={(0, 512): memory}, first={(512,): memory},
    ...     last={(512,): memory}, sequence_parallel=True)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     model = model_from_galvatron(profile, GalvatronSizes(layers=(32,), dp=8, zero=3), name="tiny")
    >>> body = model.bodies[0]
    >>> body.forward_ms, body.parameter_mb  # 3 * 4 / 2, 400 / 8
    (6.0, 50.0)
    >>> body.activation_mb[Recompute.NONE], body.activation_mb[Recompute.FULL]  # 30 * 4, 8 * 4 / 2
    (120.0, 16.0)
    >>> [layer.forward_ms for layer in model.heads + model.tails]  # all of 2 * 4 / 2 is the TAIL's
    [0.0, 4.0]
    """
    chosen = _choose(profile, sizes)
    if chosen.tp > 1:
        said = f"times are those of one device divided by {chosen.tp}; what its tensor parallelism adds"
        warnings.warn(f"{profile.source}: {said} is not in the profile", Note, stacklevel=2)
    per_sample = chosen.micro_batch / chosen.tp
    other_ms = profile.other_ms[chosen.micro_batch, chosen.sequence] * per_sample
    layers = [_end(FIRST, LayerKind.HEAD, other_ms * chosen.head_share, profile.first, chosen)]
    for kind, (count, sequence) in enumerate(zip(chosen.layers, chosen.sequence, strict=True)):
        memory = profile.layer_memory[kind, sequence]
        activation = {Recompute.NONE: memory.activation_mb[chosen.tp] * chosen.micro_batch}
        if memory.checkpoint_mb is not None:
            divided = chosen.tp if profile.sequence_parallel else 1
            activation[Recompute.FULL] = memory.checkpoint_mb * chosen.micro_batch / divided
        layers.append(
            layer_from_times(
                name=f"layertype_{kind}",
                kind=LayerKind.BODY,
                count=count,
                forward_ms=profile.layer_ms[kind, chosen.micro_batch, sequence] * per_sample,
                parameter_mb=memory.states_mb[chosen.tp] * chosen.states_share,
                activation_mb=activation,
            )
        )
    layers.append(_end(LAST, LayerKind.TAIL, other_ms * (1 - chosen.head_share), profile.last, chosen))
    return Model(name=name, layers=tuple(layers))


def zero_share(zero: int, dp: int) -> float:
    """
    Share of the model states that ZeRO leaves on a device, in mixed precision.

    Of the 16 bytes of a parameter 2 are its weight, 2 its gradient and 12 the optimizer's.

    References
    ----------
    Rajbhandari et al., SC 2020, arXiv:1910.02054, section 5 and figure 1.

    Examples
    --------
    >>> [zero_share(stage, 4) for stage in (0, 1, 2, 3)]  # (2 + 2 + 12/4) / 16, (2 + 14/4) / 16, 1/4
    [1.0, 0.4375, 0.34375, 0.25]
    """
    divided = (
        (_OPTIMIZER if zero >= 1 else 0) + (_GRADIENT if zero >= 2 else 0) + (_WEIGHT if zero >= 3 else 0)
    )
    return 1 - divided + divided / dp


def _end(
    name: str,
    kind: LayerKind,
    forward_ms: float,
    memory: Mapping[tuple[int, ...], ProfiledMemory],
    chosen: _Chosen,
) -> Layer:
    held = memory[chosen.sequence]
    return layer_from_times(
        name=name,
        kind=kind,
        forward_ms=forward_ms,
        parameter_mb=held.states_mb[chosen.tp] * chosen.states_share,
        activation_mb={Recompute.NONE: held.activation_mb[chosen.tp] * chosen.micro_batch},
    )


def _choose(profile: GalvatronProfile, sizes: GalvatronSizes) -> _Chosen:
    """Sizes that were profiled, those taken that are the only ones."""
    faults: list[str] = []
    layers = _layers(profile, sizes.layers, faults)
    given = sizes.sequence
    if given is not None and len(given) == 1:
        given *= profile.kinds
    sequence = _one_of("--sequence", given, _sequences(profile), faults)
    micro_batch = tp = None
    if sequence is not None:
        micro_batch = _one_of("--micro-batch", sizes.micro_batch, _batches(profile, sequence), faults)
        tp = _one_of("--tp", sizes.tp, _tensor_sizes(profile, sequence), faults)
    if count_fault("", sizes.dp):
        faults.append(f"--dp must be from 1 to {_MOST_DEVICES} (got {sizes.dp})")
    if sizes.zero not in (0, 1, 2, 3):
        faults.append(f"--zero must be one of 0, 1, 2, 3 (got {sizes.zero})")
    if number_fault("", sizes.head_share) or sizes.head_share > 1:
        faults.append(f"--head-share must be from 0 to 1 (got {sizes.head_share:g})")
    if faults or layers is None or sequence is None or micro_batch is None or tp is None:
        raise InputError(profile.source, faults)
    return _Chosen(
        layers=layers,
        tp=tp,
        sequence=sequence,
        micro_batch=micro_batch,
        states_share=zero_share(sizes.zero, sizes.dp),
        head_share=sizes.head_share,
    )


def _layers(
    profile: GalvatronProfile, given: tuple[int, ...] | None, faults: list[str]
) -> tuple[int, ...] | None:
    """Layers of each kind, which no profile says: small models are profiled."""
    if given is None:
        small = listed(profile.profiled_layers)
        said = f"; those of the profile ({small}) are of small models" if small else ""
        faults.append(f"--layers must say how many layers the model has{said}")
    elif len(given) != profile.kinds:
        kinds = ", ".join(f"layertype_{kind}" for kind in range(profile.kinds))
        faults.append(f"--layers must give a number for each of {kinds} (got {len(given)})")
    else:
        faults += [f"--layers: {fault.lstrip()}" for count in given if (fault := count_fault("", count))]
    return given


def _sequences(profile: GalvatronProfile) -> list[tuple[int, ...]]:
    """Sequence lengths of which everything was profiled."""
    timed = {sequence for _, sequence in profile.other_ms if len(sequence) == profile.kinds}
    return sorted(
        sequence
        for sequence in timed & set(profile.first) & set(profile.last)
        if all(entry in profile.layer_memory for entry in enumerate(sequence)) and _batches(profile, sequence)
    )


def _batches(profile: GalvatronProfile, sequence: tuple[int, ...]) -> list[int]:
    """Batch sizes of which every time was profiled."""
    return sorted(
        batch
        for batch, other in profile.other_ms
        if other == sequence
        and all((kind, batch, length) in profile.layer_ms for kind, length in enumerate(sequence))
    )


def _tensor_sizes(profile: GalvatronProfile, sequence: tuple[int, ...]) -> list[int]:
    """Tensor-parallel sizes of which all memory was profiled."""
    parts = [profile.layer_memory[entry] for entry in enumerate(sequence)]
    parts += [profile.first[sequence], profile.last[sequence]]
    return sorted(set.intersection(*(set(part.states_mb) & set(part.activation_mb) for part in parts)))


def _one_of(option: str, given: Choice | None, known: Sequence[Choice], faults: list[str]) -> Choice | None:
    """Take what is given, if it was profiled, or the only one."""
    if not known:
        faults.append(f"{option}: none is profiled in full, in times and in memory of all layers and stages")
    elif given is None and len(known) > 1:
        faults.append(f"{option} must be given: {listed(map(_text, known))} were profiled")
    elif given is not None and given not in known:
        faults.append(
            f"{option} must be one that was profiled: {listed(map(_text, known))} (got {_text(given)})"
        )
    else:
        return known[0] if given is None else given
    return None


def _text(value: int | tuple[int, ...]) -> str:
    return ",".join(str(part) for part in value) if isinstance(value, tuple) else str(value)
