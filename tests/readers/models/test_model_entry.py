"""Layers of model files: what is refused, and what is marked as an estimate."""

import pytest

from sapp_ppb.costs import Cost, Recompute
from sapp_ppb.readers import read_model
from tests.readers.models.conftest import body, faults

NUMBER_KEYS = [
    "time",
    "forward_time",
    "memory_parameter",
    *(key for r in Recompute for key in (r.memory_key, r.coefficient_key, r.time_key)),
]


class TestWhatIsRefused:
    @pytest.mark.parametrize("value", [-1, -0.5, "x", "5", True, [], {}])
    @pytest.mark.parametrize("key", NUMBER_KEYS)
    def test_what_is_no_number_of_at_least_zero(self, model_file, key, value):
        assert faults(model_file({key: value})) == (
            f"layers_description[0].{key} must be a number of at least 0 (got {value!r})",
        )

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
    @pytest.mark.parametrize("key", [*NUMBER_KEYS, "nb_layer"])
    def test_what_is_not_finite(self, model_file, key, value):
        assert faults(model_file({key: value})) == (
            f"layers_description[0].{key} must be a finite number (got {value!r})",
        )

    @pytest.mark.parametrize("key", NUMBER_KEYS)
    def test_what_is_far_too_large(self, model_file, key):
        (fault,) = faults(model_file({key: 10**16}))
        assert fault.startswith(f"layers_description[0].{key} must be at most 1e+15 (got 10000000000000000)")

    @pytest.mark.parametrize("value", [0, -3, 1.0, 2.5, True, "3", None, []])
    def test_a_count_that_is_no_integer_of_at_least_one(self, model_file, value):
        assert faults(model_file({"nb_layer": value})) == (
            f"layers_description[0].nb_layer must be an integer of at least 1 (got {value!r})",
        )

    def test_a_lower_case_type_with_what_to_write(self, model_file):
        assert faults(model_file(more=[{"name": "E", "type": "head", "time": 1, "nb_layer": 1}])) == (
            "layers_description[1].type must be one of HEAD, BODY, TAIL (got 'head'); write HEAD",
        )

    @pytest.mark.parametrize("value", ["NECK", "", 3, None])
    def test_an_unknown_type_with_those_that_exist(self, model_file, value):
        assert faults(model_file({"type": value})) == (
            f"layers_description[0].type must be one of HEAD, BODY, TAIL (got {value!r})",
        )

    @pytest.mark.parametrize("key", ["name", "type", "time", "nb_layer"])
    def test_a_missing_key(self, model_file, key):
        assert faults(model_file({key: ...})) == (f"layers_description[0].{key} is missing",)

    @pytest.mark.parametrize("value", ["", " ", 7, "a\x1bb"])
    def test_a_name_that_can_not_be_printed(self, model_file, value):
        assert faults(model_file({"name": value}))[0].startswith("layers_description[0].name must be text")
        assert faults(model_file(top={"name": value}))[0].startswith("name must be text")

    @pytest.mark.parametrize("key", ["time", "forward_time"])
    def test_a_body_layer_that_takes_no_time(self, model_file, key):
        assert faults(model_file({key: 0})) == (
            f"layers_description[0].{key} must be a number above 0 for a BODY layer (got 0)",
        )

    def test_two_recompute_times_that_differ(self, model_file):
        assert faults(model_file({"recompute_time": 5, "recompute_time ": 6})) == (
            "layers_description[0].recompute_time is given twice and differs "
            "(5, and with a trailing blank 6); keep one",
        )

    def test_a_backward_time_that_is_too_large_only_when_computed(self, model_file):
        assert (
            "layers_description[0]: backward_ms of none must be at most 1e+15"
            in (faults(model_file({"time": 9e14}))[0])
        )

    @pytest.mark.parametrize(
        ("tail", "words"),
        [
            ({"transient_mb": -1}, "[1].transient_mb must be a number of at least 0 (got -1)"),
            ({"transient_mb": True}, "[1].transient_mb must be a number of at least 0 (got True)"),
            ({"tied_to": 3}, "[1].tied_to must be text that is not empty (got 3)"),
            ({"tied_to": "Out"}, "[1]: tied_to must name another layer (got 'Out', its own name)"),
            ({"tied_to": "Emb", "nb_layer": 2}, "[1]: tied_to is for a layer with a count of 1 (got 2)"),
        ],
    )
    def test_a_special_layer_that_can_not_be(self, model_file, tail, words):
        entry = {"name": "Out", "type": "TAIL", "time": 1, "nb_layer": 1} | tail
        assert faults(model_file(more=[entry])) == (f"layers_description{words}",)

    def test_memory_for_a_moment_of_a_layer_that_the_plan_moves(self, model_file):
        assert faults(model_file({"transient_mb": 7})) == (
            "layers_description[0]: transient_mb is for HEAD and TAIL layers (got 7.0 for a BODY)",
        )

    def test_a_weight_gradient_that_takes_longer_than_its_backward(self, model_file):
        assert faults(model_file({"time": 10, "weight_grad_time": 30})) == (
            "layers_description[0]: weight_grad_ms must be at most the backward time with none, 20 ms "
            "(got 30 ms)",
        )


class TestWhatIsEstimated:
    @pytest.mark.parametrize(
        ("source", "costs"),
        [
            ("estimate", set(Cost)),
            ("measured", set()),
            (None, set()),
            ({"time": "estimate", "memory_activation": "measured"}, {Cost.FORWARD}),
            ({"memory_parameter": "estimate", "backward_time": "estimate"}, {Cost.PARAMETER, Cost.BACKWARD}),
        ],
    )
    def test_one_word_marks_every_cost_and_an_object_some(self, model_file, source, costs):
        path = model_file({"source": source})
        assert body(path).estimated == costs
        assert read_model(path).estimated == costs

    def test_a_file_without_marks_has_no_estimates(self, model_file):
        assert read_model(model_file()).estimated == set()

    @pytest.mark.parametrize(
        ("source", "words"),
        [
            ("guess", "must be 'estimate' or 'measured', or an object of them by key (got 'guess')"),
            (True, "must be 'estimate' or 'measured', or an object of them by key (got True)"),
            (["time"], "must be 'estimate' or 'measured', or an object of them by key (got ['time'])"),
            ({"time": 3}, "must say 'estimate' or 'measured' of each key (got time 3)"),
            ({"memory": "estimate"}, "knows no 'memory'; one of time, backward_time, weight_grad_time, "),
        ],
    )
    def test_another_word_is_refused_beside_the_other_faults(self, model_file, source, words):
        found = faults(model_file({"source": source, "nb_layer": 0}))
        assert len(found) == 2
        assert found[1].startswith(f"layers_description[0].source {words}")
