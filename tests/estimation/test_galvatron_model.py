"""Models out of Galvatron profiles: sizes that were profiled, and each value by hand."""

import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from sapp_ppb.costs import LayerKind, Recompute
from sapp_ppb.costs.profiled import GalvatronProfile, ProfiledMemory
from sapp_ppb.errors import InputError, Note
from sapp_ppb.estimation import GalvatronSizes, model_from_galvatron
from sapp_ppb.estimation.galvatron_model import zero_share
from sapp_ppb.readers.measurements.galvatron_profile import read_galvatron

DATA = Path(__file__).parents[1] / "data" / "profiles" / "galvatron"
MEMORY = ProfiledMemory(states_mb={1: 800.0, 2: 400.0}, activation_mb={1: 60.0, 2: 30.0}, checkpoint_mb=8.0)
SMALL = GalvatronProfile(
    source="times.json",
    kinds=1,
    layer_ms={(0, 4, 512): 3.0},
    other_ms={(4, (512,)): 2.0},
    layer_memory={(0, 512): MEMORY},
    first={(512,): MEMORY},
    last={(512,): MEMORY},
    sequence_parallel=True,
    profiled_layers=(2, 4),
)


@pytest.fixture(scope="module")
def llama():
    names = (f"{what}_profiling_bf16_llama2-7b_all.json" for what in ("computation", "memory"))
    return read_galvatron(*(DATA / name for name in names))


def model_of(profile, **sizes):
    with warnings.catch_warnings(category=Note, action="ignore"):
        return model_from_galvatron(profile, GalvatronSizes(**sizes), name="m")


def refusal(profile, **sizes):
    with pytest.raises(InputError) as caught:
        model_of(profile, **sizes)
    return caught.value.faults


def test_llama_2_7b_by_hand(llama):
    model = model_of(llama, layers=(32,), tp=2, micro_batch=8)
    head, body, tail = model.layers
    assert [layer.kind for layer in model.layers] == [LayerKind.HEAD, LayerKind.BODY, LayerKind.TAIL]
    assert (body.name, body.count) == ("layertype_0", 32)
    # layertype_0_bsz8_seq2048 = 3.93697 ms a sample, 8 samples, 2 devices: 15.7479 ms; twice backward.
    assert body.forward_ms == pytest.approx(3.9369729995727534 * 8 / 2, rel=1e-15)
    assert body.backward_ms[Recompute.NONE] == pytest.approx(31.4957839966, rel=1e-10)
    # FULL runs the forward again: 31.4958 + 15.7479.
    assert body.backward_ms[Recompute.FULL] == pytest.approx(47.2436759949, rel=1e-10)
    # Four times parameter_size 778.22 MB, on 2 devices.
    assert body.parameter_mb == 4 * 778.2236328125 / 2 == 1556.447265625
    assert body.considered == (Recompute.NONE, Recompute.FULL)
    assert body.activation(Recompute.NONE) == 273.28173828125 * 8 == 2186.25390625
    assert body.activation(Recompute.FULL) == 32.0 * 8 / 2 == 128.0  # sequence parallelism divides it
    # other_memory_pp_on_first_sp and ..._last_sp at 2, a sample's activation times 8.
    assert (head.parameter_mb, head.activation(Recompute.NONE)) == (1266.76806640625, 83.90301513671875 * 8)
    assert (tail.parameter_mb, tail.activation(Recompute.NONE)) == (1266.83056640625, 343.3006591796875 * 8)
    # layertype_other_bsz8_seq2048 = 2.95865 ms, all of it the TAIL's.
    assert (head.forward_ms, tail.forward_ms) == (0.0, pytest.approx(2.958646392822267 * 8 / 2))


def test_most_of_the_time_outside_the_layers_is_the_tails(llama):
    # Why head_share is 0: per token the output projection does 2 * 4096 * 32000 operations, a layer
    # 2 * 202,375,168 and, for attention over 2048 positions, 4 * 4096 * 2048: 0.598 of a layer.
    layer = 2 * (4 * 4096**2 + 3 * 4096 * 11008) + 4 * 4096 * 2048
    projection = 2 * 4096 * 32000 / layer * llama.layer_ms[0, 8, 2048]
    assert projection / llama.other_ms[8, (2048,)] == pytest.approx(0.796, abs=0.001)


def test_zero_divides_states_and_nothing_else(llama):
    whole = model_of(llama, layers=(32,), tp=1, micro_batch=1)
    divided = model_of(llama, layers=(32,), tp=1, micro_batch=1, dp=8, zero=1)
    for before, after in zip(whole.layers, divided.layers, strict=True):
        # 4 of 16 bytes stay, 12 are divided by 8: 5.5 / 16.
        assert after.parameter_mb == pytest.approx(before.parameter_mb * 5.5 / 16)
        assert replace(after, parameter_mb=0.0) == replace(before, parameter_mb=0.0)


@pytest.mark.parametrize(
    ("zero", "share"), [(0, 16 / 16), (1, (2 + 2 + 12 / 64) / 16), (2, (2 + 14 / 64) / 16), (3, 1 / 64)]
)
def test_what_zero_leaves_of_16_bytes_a_parameter(zero, share):
    # Figure 1 of the paper: 64 devices, 7.5 billion parameters: 120, 31.4, 16.6 and 1.88 GB.
    assert zero_share(zero, 64) == pytest.approx(share)
    assert 7.5 * 16 * zero_share(zero, 64) == pytest.approx((120, 31.4, 16.6, 1.88)[zero], abs=0.06)


def test_the_only_size_is_taken():
    lone = replace(MEMORY, states_mb={1: 800.0}, activation_mb={1: 60.0})
    profile = replace(SMALL, layer_memory={(0, 512): lone}, first={(512,): lone})
    body = model_of(profile, layers=(3,)).bodies[0]
    assert (body.forward_ms, body.activation(Recompute.NONE)) == (12.0, 240.0)  # 3 * 4 and 60 * 4


def test_without_sequence_parallelism_a_checkpoint_is_whole():
    body = model_of(replace(SMALL, sequence_parallel=False), layers=(3,), tp=2).bodies[0]
    assert body.activation(Recompute.FULL) == 8.0 * 4


def test_without_a_checkpoint_no_layer_is_recomputed():
    profile = replace(SMALL, layer_memory={(0, 512): replace(MEMORY, checkpoint_mb=None)})
    assert model_of(profile, layers=(3,), tp=1).bodies[0].considered == (Recompute.NONE,)


def test_the_head_takes_the_share_it_is_given():
    model = model_of(SMALL, layers=(3,), tp=1, head_share=0.25)
    assert [layer.forward_ms for layer in (*model.heads, *model.tails)] == [2.0, 6.0]  # of 2 * 4


def test_two_kinds_are_two_bodies():
    profile = replace(
        SMALL,
        kinds=2,
        layer_ms={(0, 4, 512): 3.0, (1, 4, 128): 5.0},
        other_ms={(4, (512, 128)): 2.0},
        layer_memory={(0, 512): MEMORY, (1, 128): MEMORY},
        first={(512, 128): MEMORY},
        last={(512, 128): MEMORY},
    )
    bodies = model_of(profile, layers=(3, 7), tp=1).bodies
    assert [(body.name, body.count, body.forward_ms) for body in bodies] == [
        ("layertype_0", 3, 12.0),
        ("layertype_1", 7, 20.0),
    ]
    assert refusal(profile, layers=(3,), tp=1) == (
        "--layers must give a number for each of layertype_0, layertype_1 (got 1)",
    )


def test_missing_communication_is_said():
    with pytest.warns(Note, match=r"divided by 2; what its tensor parallelism adds is not in the profile"):
        model_from_galvatron(SMALL, GalvatronSizes(layers=(3,), tp=2), name="m")


def test_every_choice_is_named_at_once(llama):
    assert refusal(llama) == (
        "--layers must say how many layers the model has; those of the profile (2, 4) are of small models",
        "--micro-batch must be given: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 were profiled",
        "--tp must be given: 1, 2, 4, 8 were profiled",
    )


def test_every_wrong_size_is_named_at_once(llama):
    sizes = {"layers": (0,), "tp": 3, "micro_batch": 13, "dp": 0, "zero": 4, "head_share": 1.5}
    assert refusal(llama, **sizes) == (
        "--layers: must be an integer of at least 1 (got 0)",
        "--micro-batch must be one that was profiled: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 (got 13)",
        "--tp must be one that was profiled: 1, 2, 4, 8 (got 3)",
        "--dp must be from 1 to 1000000 (got 0)",
        "--zero must be one of 0, 1, 2, 3 (got 4)",
        "--head-share must be from 0 to 1 (got 1.5)",
    )
    assert refusal(llama, layers=(32,), sequence=(4096,)) == (
        "--sequence must be one that was profiled: 2048 (got 4096)",
    )


def test_files_of_different_sequence_lengths_have_nothing_in_common():
    profile = replace(SMALL, first={(1024,): MEMORY})
    (said,) = refusal(profile, layers=(3,))
    assert said == "--sequence: none is profiled in full, in times and in memory of all layers and stages"
