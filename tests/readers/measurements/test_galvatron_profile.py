"""Galvatron's two files: what is read of the real ones, and what of broken ones is refused."""

import json
import re
from pathlib import Path

import pytest

from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.readers.measurements.galvatron_memory import read_galvatron_memory
from sapp_ppb.readers.measurements.galvatron_profile import read_galvatron
from sapp_ppb.readers.measurements.galvatron_times import read_galvatron_times

DATA = Path(__file__).parents[2] / "data" / "profiles" / "galvatron"
TIMES = DATA / "computation_profiling_bf16_llama2-7b_all.json"
MEMORY = DATA / "memory_profiling_bf16_llama2-7b_all.json"


def written(folder, value, name="profile.json"):
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def faults(read, *arguments, **options):
    with pytest.raises(InputError) as caught:
        read(*arguments, **options)
    return caught.value.faults


def memory_with(**changes):
    """Build a small memory profile, with keys replaced, or left out where None."""
    ends = {"512": {"model_states": {"1": 100.0}, "activation": {"1": 10.0}}}
    layer = {"512": {"parameter_size": 50.0, "tp_activation_per_bsz_dict": {"1": 40.0, "checkpoint": 4.0}}}
    whole = {"layertype_0": layer, "other_memory_pp_on_first": ends, "other_memory_pp_on_last": ends}
    return {key: value for key, value in (whole | changes).items() if value is not None}


class TestTheRealFiles:
    def test_times_are_of_one_layer_and_one_sample(self):
        times = read_galvatron_times(TIMES)
        # The file's own lines layertype_0_bsz8_seq2048 and layertype_other_bsz8_seq2048.
        assert times.layer_ms[0, 8, 2048] == 3.9369729995727534
        assert times.other_ms[8, (2048,)] == 2.958646392822267
        assert {batch for _, batch, _ in times.layer_ms} == set(range(1, 13))
        assert times.profiled_layers == (2, 4)

    def test_they_are_what_follows_from_the_small_models(self, tmp_path):
        # That a time is of one sample is told by the file itself: with 8 samples two layers more
        # take 149.652 - 86.661 = 62.992 ms, and 62.992 / 2 / 8 = 3.937.
        raw = json.loads(TIMES.read_text())
        small = {key: value for key, value in raw.items() if key.startswith("layernum")}
        derived, given = read_galvatron_times(written(tmp_path, small)), read_galvatron_times(TIMES)
        assert derived.layer_ms == pytest.approx(given.layer_ms, rel=1e-12)
        assert derived.other_ms == pytest.approx(given.other_ms, rel=1e-9)
        assert given.layer_ms[0, 8, 2048] == pytest.approx((149.65230712890624 - 86.66073914) / 2 / 8)

    def test_memory_is_of_a_layer_and_of_both_ends(self):
        memory = read_galvatron_memory(MEMORY)
        layer = memory.layers[0, 2048]
        # parameter_size is 778.2236328125: a quarter of the states of a whole layer.
        assert layer.states_mb == {size: 4 * 778.2236328125 / size for size in (1, 2, 4, 8)}
        assert layer.activation_mb[2] == 273.28173828125
        assert layer.checkpoint_mb == 32.0
        assert memory.first[2048,].states_mb[4] == 775.68310546875
        assert memory.last[2048,].activation_mb[1] == 717.560302734375
        assert memory.sequence_parallel

    def test_parameter_size_is_about_the_parameters_of_llama_in_fp32(self):
        # 4 projections of 4096^2 and 3 of 4096 x 11008, 4 bytes each: 772 MB; it was measured within 1 %.
        parameters = 4 * 4096**2 + 3 * 4096 * 11008
        states = read_galvatron_memory(MEMORY).layers[0, 2048].states_mb[1]
        assert states / 4 == pytest.approx(4 * parameters / 2**20, rel=0.01)

    def test_both_make_a_profile(self):
        profile = read_galvatron(TIMES, MEMORY)
        assert (profile.kinds, profile.source) == (1, str(TIMES))
        assert set(profile.layer_memory) == {(0, 2048)}


class TestTimes:
    def test_two_kinds_are_told_by_what_differs(self, tmp_path):
        # Base 1 layer each 20 ms; one more of kind 0 adds 6, two more of kind 1 add 8; batch 2.
        path = written(
            tmp_path,
            {
                "layernum[1,1]_bsz2_seq[512,128]": 20,
                "layernum[2,1]_bsz2_seq[512,128]": 26,
                "layernum[1,3]_bsz2_seq[512,128]": 28,
            },
        )
        times = read_galvatron_times(path)
        assert times.layer_ms == {(0, 2, 512): 3.0, (1, 2, 128): 2.0}
        assert times.other_ms == {(2, (512, 128)): 5.0}  # 20 / 2 - 3 - 2

    def test_time_outside_the_layers_is_at_least_0(self, tmp_path):
        path = written(tmp_path, {"layernum[2]_bsz1_seq8": 10, "layernum[4]_bsz1_seq8": 30})
        assert read_galvatron_times(path).other_ms == {(1, (8,)): 0.0}  # 10 - 2 * 10

    def test_unknown_keys_are_named(self, tmp_path):
        path = written(tmp_path, {"layertype_0_bsz1_seq8": 1, "layertype_0_bsz0_seq8": 1, "hello": 1})
        with pytest.warns(FileNote, match="'layertype_0_bsz0_seq8', 'hello': unknown and ignored"):
            read_galvatron_times(path)

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ('{"layertype_0_bsz1_seq8": 4.39', "the JSON is broken at line 1"),
            ("[1, 2]", r"must hold a JSON object that is not empty \(got \[1, 2\]\)"),
            ("{}", r"must hold a JSON object that is not empty"),
            ({"layertype_0_bsz1_seq8": "4.4"}, r"_seq8 must be a number above 0 \(got '4.4'\)"),
            ({"layertype_0_bsz1_seq8": True}, r"_seq8 must be a number above 0 \(got True\)"),
            ({"layertype_0_bsz1_seq8": 0}, r"_seq8 must be a number above 0 \(got 0\)"),
            ({"layertype_0_bsz1_seq8": -1}, r"_seq8 must be a number above 0 \(got -1\)"),
            ({"layertype_0_bsz1_seq8": 4.4e9}, r"_seq8 must be at most 10,000,000 .*check the unit"),
            ('{"layertype_0_bsz1_seq8": NaN}', r"^layertype_0_bsz1_seq8 must be a finite number \(got nan\)"),
            ({"layertype_0_bsz1_seq8_mlp": 1.0}, "times parts of layers alone, such as layertype_0_bsz1"),
            ({"layernum[2]_bsz1_seq8": 1.0}, "has no times of layers, which are named"),
            ({"layernum[2]_bsz1_seq8": 9, "layernum[4]_bsz1_seq8": 8}, "must take longer than layernum"),
            ({"layernum[2,2]_bsz1_seq8": 9}, "must say as many sequence lengths as layer counts"),
            (memory_with(), "holds no times; is it the memory profile, which --memory takes?"),
        ],
    )
    def test_what_is_none_is_refused(self, content, said, tmp_path):
        found = faults(read_galvatron_times, written(tmp_path, content))
        assert len(found) == 1
        assert re.search(said, found[0])

    def test_every_fault_is_named_at_once(self, tmp_path):
        content = {"layertype_0_bsz1_seq8": -1, "layertype_other_bsz1_seq8": None, "layertype_1_bsz1_seq8": 0}
        assert len(faults(read_galvatron_times, written(tmp_path, content))) == 3


class TestMemory:
    def test_a_checkpoint_that_was_not_measured_is_none(self, tmp_path):
        for kept in ({"1": 40.0}, {"1": 40.0, "checkpoint": -1}):
            layer = {"512": {"parameter_size": 50.0, "tp_activation_per_bsz_dict": kept}}
            path = written(tmp_path, memory_with(layertype_0=layer))
            assert read_galvatron_memory(path).layers[0, 512].checkpoint_mb is None

    def test_of_both_sorts_one_is_chosen(self, tmp_path):
        both = memory_with()
        both |= {f"{key}_sp": value for key, value in memory_with().items()}
        both["layertype_0_sp"] = {"512": {"parameter_size": 8.0, "tp_activation_per_bsz_dict": {"1": 4.0}}}
        path = written(tmp_path, both)
        assert read_galvatron_memory(path, True).layers[0, 512].states_mb == {1: 32.0}
        assert read_galvatron_memory(path, False).layers[0, 512].states_mb == {1: 200.0}
        (said,) = faults(read_galvatron_memory, path)
        assert said.endswith("give --sequence-parallel or --no-sequence-parallel")

    def test_the_other_sort_is_not_there(self, tmp_path):
        path = written(tmp_path, memory_with())
        (said,) = faults(read_galvatron_memory, path, True)
        assert said == "has no memory with sequence parallelism, only that of the other sort"

    def test_other_keys_are_named(self, tmp_path):
        with pytest.warns(FileNote, match="'model_config': unknown and ignored"):
            read_galvatron_memory(written(tmp_path, memory_with(model_config={"dim": 4096})))

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"other_memory_pp_on_last": None}, "other_memory_pp_on_last is missing"),
            ({"other_memory_pp_on_first": 3}, r"_first must be an object that is not empty \(got 3\)"),
            ({"other_memory_pp_on_first": {"512": {}}}, r"_first.512 must be an object that is not empty"),
            ({"other_memory_pp_on_first": {"model_states": {}}}, "must hold sequence lengths"),
            (
                {"other_memory_pp_on_first": {"512": {"model_states": {"1": 1.0}}}},
                "other_memory_pp_on_first.512.activation is missing",
            ),
            ({"layertype_0": {"512": {"parameter_size": 1.0}}}, "tp_activation_per_bsz_dict is missing"),
            ({"layertype_0": {"x": {}}}, r"layertype_0 must hold sequence lengths \(got 'x'\)"),
            (
                {"layertype_0": {"512": {"tp_activation_per_bsz_dict": {"1": 1.0}}}},
                "layertype_0.512.parameter_size is missing",
            ),
            (
                {"layertype_0": {"512": {"parameter_size": 8.2e8, "tp_activation_per_bsz_dict": {"1": 1}}}},
                "parameter_size must be at most 10,000,000 .*check the unit",  # bytes for MB
            ),
            (
                {"layertype_0": {"512": {"parameter_size": 1, "tp_activation_per_bsz_dict": {"all": 1}}}},
                r"must hold tensor-parallel sizes \(got 'all'\)",
            ),
            (
                {
                    "layertype_0": {
                        "512": {
                            "parameter_size": 1,
                            "tp_activation_per_bsz_dict": {"1": 1, "checkpoint": "4"},
                        }
                    }
                },
                r"checkpoint must be a number of at least 0 \(got '4'\)",
            ),
            ({"layertype_0": None}, "has no memory of layers"),
            ({"layertype_0": None, "1_1_8": {}}, r"has measurements alone \(1_1_8\); let Galvatron process"),
        ],
    )
    def test_what_is_none_is_refused(self, changes, said, tmp_path):
        if changes.get("layertype_0", 0) is None:
            changes |= {"other_memory_pp_on_first": None}
        found = faults(read_galvatron_memory, written(tmp_path, memory_with(**changes)))
        assert len(found) == 1
        assert re.search(said, found[0])

    def test_times_are_no_memory(self):
        (said,) = faults(read_galvatron_memory, TIMES)
        assert said == "holds no memory; is it the profile of times, which --computation takes?"

    def test_a_cut_copy_of_the_real_file_is_refused(self, tmp_path):
        text = MEMORY.read_text()
        (said,) = faults(read_galvatron_memory, written(tmp_path, text[: len(text) // 2]))
        assert said.startswith("the JSON is broken at line ")


def test_kinds_must_be_in_both_files(tmp_path):
    times = {"layertype_0_bsz1_seq512": 1, "layertype_1_bsz1_seq512": 1}
    paths = (written(tmp_path, times, "times.json"), written(tmp_path, memory_with()))
    (said,) = faults(read_galvatron, *paths)
    assert said == f"{paths[1]} has no memory of layertype_1, and there is a layertype_1"
