"""Model files: what is odd but usable, and noted."""

import pytest

from sapp_ppb.errors import FileNote
from sapp_ppb.readers import read_model
from tests.readers.models.conftest import notes


class TestWhatIsNoted:
    def test_unknown_keys_are_named_with_the_nearest_known_key(self, model_file):
        path = model_file({"Memory_Activations": 5}, {"stage_const_memory": 4, "zzz": 0})
        assert notes(path) == [
            "'stage_const_memory' is unknown and ignored; the nearest known key is stage_const_mem",
            "'zzz' is unknown and ignored; known keys are name, stage_const_mem, op_overhead_ms, hop_ms, "
            "pre_defined_layer, auto_partition_layer, layers_description",
            "layers_description[0].'Memory_Activations' is unknown and ignored; "
            "the nearest known key is memory_activation",
        ]

    def test_names_that_no_layer_has_are_named(self, model_file):
        path = model_file(top={"pre_defined_layer": {"Emb": 0}, "auto_partition_layer": {"Dec": 4, "Enc": 1}})
        assert notes(path) == [
            "pre_defined_layer names 'Emb', which is no layer",
            "auto_partition_layer names 'Enc', which is no layer",
        ]

    def test_a_section_that_is_no_object_is_ignored(self, model_file):
        assert notes(model_file(top={"pre_defined_layer": [1]})) == [
            "pre_defined_layer is no object and is ignored (got [1])"
        ]

    def test_an_activation_of_zero_counts_as_not_given(self, model_file):
        path = model_file({"memory_activation": 90, "memory_select_rec": 0, "memory_recompute": 0.0})
        assert notes(path) == [
            "layers_description[0].memory_select_rec, memory_recompute: 0 MB counts as not given"
        ]

    def test_a_coefficient_beside_its_time_has_no_effect(self, model_file):
        assert notes(model_file({"backward_coef": 0.5, "backward_time": 150})) == [
            "layers_description[0].backward_coef has no effect beside backward_time"
        ]

    def test_a_tie_of_a_layer_without_parameters(self, model_file):
        head = {"name": "Emb", "type": "HEAD", "time": 1, "nb_layer": 1, "memory_parameter": 10}
        tail = {"name": "Out", "type": "TAIL", "time": 1, "nb_layer": 1, "tied_to": "Emb"}
        assert notes(model_file(more=[head, tail]))[-1] == (
            "layers_description[2].tied_to has no effect: a layer without memory_parameter shares none"
        )

    def test_recompute_of_a_head_is_ignored(self, model_file):
        head = {
            "name": "E",
            "type": "HEAD",
            "time": 9,
            "nb_layer": 1,
            "memory_recompute": 3,
            "recompute_coef": 1,
        }
        path = model_file(more=[head])
        assert notes(path) == [
            "layers_description[1].memory_recompute, recompute_coef: a HEAD is never recomputed; ignored"
        ]

    def test_a_layer_that_must_be_recomputed_is_noted(self, model_file):
        assert notes(model_file({"memory_recompute": 32})) == [
            "layers_description[0].memory_activation is not given: "
            "no plan can leave this layer without recompute"
        ]

    def test_a_recompute_time_that_is_only_the_extra_is_noted(self, model_file):
        path = model_file({"memory_activation": 90, "memory_recompute": 3, "recompute_time": 100})
        assert notes(path) == [
            "layers_description[0].backward with full takes 100 ms, less than the 200 ms without recompute; "
            "recompute_time is the whole backward time"
        ]

    def test_a_note_names_the_file(self, model_file):
        path = model_file({"colour": 1})
        with pytest.warns(FileNote, match="model.json: "):
            read_model(path)
