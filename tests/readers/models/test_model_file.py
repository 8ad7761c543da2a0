"""Model files: what is read, and what is refused of a file as a whole."""

from pathlib import Path

import pytest

from sapp_ppb.costs import LayerKind, Recompute
from sapp_ppb.errors import FileNote
from sapp_ppb.readers import read_model
from tests.readers.models.conftest import body, faults

ROOT = Path(__file__).parents[3]
EXAMPLES, OLDER = ROOT / "examples", ROOT / "tests" / "data" / "sapp"


class TestWhatIsRead:
    def test_the_llama_example_holds_the_numbers_of_its_source(self):
        model = read_model(EXAMPLES / "llama2_70b.json")
        (layer,) = model.bodies
        assert (model.name, model.body_count, layer.name) == ("llama2_70b", 96, "LLamaDecodeLayer")
        assert layer.activation_mb == (994, 739, None, 403, 32)
        assert model.total_forward_ms == 9726  # 13 + 96 * 100 + 113
        assert model.total_parameter_mb == 179190  # 9,236 + 96 * 1,710 + 5,794

    def test_the_demo_example_holds_the_numbers_of_its_source(self):
        model = read_model(EXAMPLES / "demo.json")
        assert model.bodies[0].activation_mb == (852, 767, 535, 511, None)
        assert model.total_forward_ms == 8910  # 90 + 96 * 90 + 180
        assert model.total_parameter_mb == 210984  # 4,245 + 96 * 2,141 + 1,203

    def test_a_file_of_the_older_tool_is_read_as_it_is(self):
        model = read_model(OLDER / "test.json")
        (layer,) = model.bodies
        assert [(one.name, one.kind, one.count) for one in model.layers] == [
            ("LlamaEmbedding", LayerKind.HEAD, 1),
            ("LLamaDecodeLayer", LayerKind.BODY, 96),
            ("LlamaRMSNorm", LayerKind.TAIL, 1),
        ]
        assert layer.considered == (Recompute.NONE, Recompute.FULL)
        assert layer.backward_ms[Recompute.FULL] == 540  # 1.5 * 2 * 180
        assert layer.backward_ms[Recompute.COMM] == 450  # select_comm_coef 0.25: 1.25 * 360
        assert layer.model_name == "llama2_70b_prof"

    def test_a_contradicting_count_of_the_older_tool_is_noted_and_overruled(self):
        with pytest.warns(
            FileNote, match="auto_partition_layer says 96 of 'LLamaDecodeLayer' but nb_layer 192"
        ):
            model = read_model(OLDER / "sim.json")
        assert model.body_count == 192

    def test_the_constant_memory_of_a_stage_is_read(self):
        with pytest.warns(FileNote, match="auto_partition_layer names 'NumberOfLayers', which is no layer"):
            model = read_model(OLDER / "seq.json")
        assert model.constant_memory_mb == 3422

    def test_forward_time_wins_over_time_everywhere(self, model_file):
        layer = body(model_file({"forward_time": 50}))
        assert (layer.forward_ms, layer.backward_ms[Recompute.NONE]) == (50, 100)  # 2 * 50, not 2 * 100

    def test_forward_time_alone_is_enough(self, model_file):
        assert body(model_file({"time": ..., "forward_time": 50})).forward_ms == 50

    def test_backward_time_is_the_base_of_every_recompute_type(self, model_file):
        layer = body(model_file({"backward_time": 80, "recompute_coef": 0.25}))
        assert layer.backward_ms[Recompute.NONE] == 80
        assert layer.backward_ms[Recompute.FULL] == 100  # 1.25 * 80

    def test_heads_and_tails_have_their_own_times_and_counts(self, model_file):
        # the older tool ignored forward_time, backward_time and nb_layer of both
        head = {"name": "E", "type": "HEAD", "time": 9, "forward_time": 5, "backward_time": 7, "nb_layer": 3}
        (layer,) = read_model(model_file(more=[head])).heads
        assert (layer.forward_ms, layer.backward_ms[Recompute.NONE], layer.count) == (5, 7, 3)

    def test_the_activation_of_a_head_is_live(self, model_file):
        head = {"name": "E", "type": "HEAD", "time": 9, "nb_layer": 1, "memory_activation": 40}
        assert read_model(model_file(more=[head])).heads[0].activation(Recompute.NONE) == 40

    @pytest.mark.parametrize("key", ["recompute_time", "recompute_time "])
    def test_both_spellings_of_recompute_time_are_read(self, model_file, key):
        # the older tool read only the one with the trailing blank: 300 instead of 777
        assert body(model_file({key: 777})).backward_ms[Recompute.FULL] == 777

    def test_both_spellings_may_agree(self, model_file):
        both = {"recompute_time": 777, "recompute_time ": 777.0}
        assert body(model_file(both)).backward_ms[Recompute.FULL] == 777

    @pytest.mark.parametrize("r", list(Recompute))
    def test_a_given_zero_time_is_a_value(self, model_file, r):
        assert body(model_file({r.time_key: 0})).backward_ms[r] == 0

    def test_a_weight_gradient_time_is_read(self, model_file):
        assert body(model_file({"weight_grad_time": 9})).weight_grad_ms == 9.0
        assert body(model_file()).weight_grad_ms is None

    def test_what_makes_a_layer_special_is_read(self, model_file):
        head = {"name": "Emb", "type": "HEAD", "time": 1, "nb_layer": 1, "memory_parameter": 10}
        tail = head | {"name": "Out", "type": "TAIL", "tied_to": "Emb", "transient_mb": 7}
        model = read_model(
            model_file({"mtp": True, "tied_to": None, "transient_mb": None}, more=[head, tail])
        )
        assert model.bodies[0].is_mtp
        assert [layer.tied_to for layer in model.layers] == [None, None, "Emb"]
        assert [layer.transient_mb for layer in model.layers] == [0.0, 0.0, 7.0]

    def test_overheads_are_read_and_are_0_when_not_given(self, model_file):
        model = read_model(model_file(top={"op_overhead_ms": 0.4, "hop_ms": 2}))
        assert (model.op_overhead_ms, model.hop_ms) == (0.4, 2.0)
        model = read_model(model_file(top={"hop_ms": None}))
        assert (model.op_overhead_ms, model.hop_ms) == (0.0, 0.0)

    def test_null_counts_as_not_given(self, model_file):
        path = model_file(
            {"memory_recompute": None, "backward_time": None, "recompute_time ": None, "model_name": None},
            {"stage_const_mem": None, "pre_defined_layer": None},
        )
        assert body(path).activation_mb == (None,) * 5

    def test_several_body_layers_keep_their_order(self, model_file):
        moe = {"name": "Moe", "type": "BODY", "time": 250, "nb_layer": 58}
        assert [layer.name for layer in read_model(model_file(more=[moe])).bodies] == ["Dec", "Moe"]


class TestWhatIsRefused:
    def test_two_layers_of_one_name(self, model_file):
        tail = {"name": "Dec", "type": "TAIL", "time": 1, "nb_layer": 1}
        assert faults(model_file(more=[tail])) == ("layer names must be unique (got 'Dec' 2 times)",)

    def test_a_model_without_a_body_layer(self, model_file):
        assert faults(model_file({"type": "HEAD"})) == ("at least one layer must be of kind BODY (got HEAD)",)

    def test_more_than_a_million_body_layers(self, model_file):
        moe = {"name": "Moe", "type": "BODY", "time": 1, "nb_layer": 10**6}
        assert faults(model_file(more=[moe])) == (
            "the BODY layers must be at most 1000000 together (got 1000004)",  # 4 + 10^6
        )

    @pytest.mark.parametrize("value", [[], {}, 3, None, "x"])
    def test_layers_that_are_no_list(self, model_file, value):
        assert faults(model_file(top={"layers_description": value})) == (
            f"layers_description must be a list of at least one object (got {value!r})",
        )

    def test_a_tie_that_only_the_whole_file_shows_to_be_wrong(self, model_file):
        entry = {"name": "Out", "type": "TAIL", "time": 1, "nb_layer": 1, "tied_to": "Dec"}
        assert faults(model_file(more=[entry])) == (
            "layer 'Out' is tied to 'Dec', which must be a HEAD or TAIL (got BODY)",
        )

    def test_layers_that_are_missing(self, model_file):
        assert faults(model_file(top={"layers_description": ...})) == ("layers_description is missing",)

    @pytest.mark.parametrize("value", [3, None, "x", []])
    def test_a_layer_that_is_no_object(self, model_file, value):
        assert faults(model_file(more=[value])) == (
            f"layers_description[1] must be an object (got {value!r})",
        )

    @pytest.mark.parametrize("content", ["[]", "3", "null", '"x"'])
    def test_a_document_that_is_no_object(self, tmp_path, content):
        path = tmp_path / "model.json"
        path.write_text(content)
        assert faults(path)[0].startswith("must hold a JSON object (got ")

    @pytest.mark.parametrize("value", [-1, "3", True])
    def test_a_constant_memory_that_is_no_number(self, model_file, value):
        assert faults(model_file(top={"stage_const_mem": value})) == (
            f"stage_const_mem must be a number of at least 0 (got {value!r})",
        )

    @pytest.mark.parametrize("key", ["op_overhead_ms", "hop_ms"])
    def test_an_overhead_that_is_no_number(self, model_file, key):
        assert faults(model_file(top={key: -0.5})) == (f"{key} must be a number of at least 0 (got -0.5)",)

    def test_a_missing_file(self, tmp_path):
        assert faults(tmp_path / "none.json") == ("there is no such file; check the path",)

    def test_everything_at_once(self, tmp_path):
        path = tmp_path / "model.json"
        path.write_text(
            """{"name": "", "stage_const_mem": -1, "layers_description": [
                {"name": "E", "type": "head", "time": "x", "nb_layer": 1.0},
                {"name": "Dec", "type": "BODY", "time": NaN, "nb_layer": 3, "nb_layer": 0},
                {"name": "Dec", "type": "BODY", "time": 0, "nb_layer": 2, "memory_parameter": -5},
                null]}"""
        )
        assert faults(path) == (
            "layers_description[1] gives a key more than once ('nb_layer'); keep one",
            "layers_description[1].time must be a finite number (got nan)",
            "name must be text that is not empty (got '')",
            "stage_const_mem must be a number of at least 0 (got -1)",
            "layers_description[0].type must be one of HEAD, BODY, TAIL (got 'head'); write HEAD",
            "layers_description[0].nb_layer must be an integer of at least 1 (got 1.0)",
            "layers_description[0].time must be a number of at least 0 (got 'x')",
            "layers_description[1].nb_layer must be an integer of at least 1 (got 0)",
            "layers_description[2].time must be a number above 0 for a BODY layer (got 0)",
            "layers_description[2].memory_parameter must be a number of at least 0 (got -5)",
            "layers_description[3] must be an object (got None)",
            "layer names must be unique (got 'Dec' 2 times)",
        )
