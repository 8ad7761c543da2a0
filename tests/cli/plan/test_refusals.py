"""``sapp-ppb plan``: one clear message for every fault of a file or an option."""

import pytest

from tests.cli.conftest import BODY, QUICK, SIZES, one_message


class TestRefusals:
    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("", "the file is empty"),
            ("{", "the JSON is broken at line 1"),
            ('{"name": "m", "layers_description": []}', "layers_description must be a list of at least one"),
            ("[]", "must hold a JSON object"),
        ],
    )
    def test_of_a_file(self, content, said, run, tmp_path):
        path = tmp_path / "model.json"
        path.write_text(content, encoding="utf-8")
        message = one_message(run("plan", path, *SIZES))
        assert message.startswith(f"error: {path}: ")
        assert said in message

    def test_of_a_missing_file(self, run, tmp_path):
        assert "there is no such file" in one_message(run("plan", tmp_path / "no.json", *SIZES))

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"time": float("nan")}, "time must be a finite number (got nan)"),
            ({"memory_activation": -60}, "memory_activation must be a number of at least 0 (got -60)"),
            ({"memory_parameter": -1}, "memory_parameter must be a number of at least 0 (got -1)"),
            ({"nb_layer": 0}, "nb_layer must be an integer of at least 1 (got 0)"),
        ],
    )
    def test_of_a_layer(self, changes, said, model_file, run):
        assert said in one_message(run("plan", model_file(**changes), *SIZES))

    def test_of_two_layers_of_one_name(self, model_file, run):
        message = one_message(run("plan", model_file(layers=[BODY, BODY]), *SIZES))
        assert "layer names must be unique (got 'Dec' 2 times)" in message

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("-s", "2", "-mb", "0"), "micro-batches must be a whole number of at least 1 (got 0)"),
            (("-s", "0", "-mb", "4"), "stages must be a whole number of at least 1 (got 0)"),
            (("-s", "-4", "-mb", "4"), "stages must be a whole number of at least 1 (got -4)"),
            ((*SIZES, "-i", "0"), "interleave must be a whole number of at least 1 (got 0)"),
            (("-s", "8", "-mb", "8", "-i", "2"), "10 BODY layers are too few"),
            ((*SIZES, "-mem", "-5"), "memory-limit must be a number of at least 0 MB (got -5.0)"),
            ((*SIZES, "-mem", "nan"), "memory-limit must be a number of at least 0 MB (got nan)"),
            ((*SIZES, "-mem", "1,2,3"), "memory-limit must be one number or 2 of them (got 3)"),
            ((*SIZES, "-mem", "56GB"), "--memory-limit: '56GB' is not a number of MB; write 57344 for 56 GB"),
            ((*SIZES, "-mem", "56,000"), "write 56000"),
            ((*SIZES, "-mem", ""), "--memory-limit: '' is not a number of MB"),
            ((*SIZES, "--p2p", "x"), "--p2p: 'x' is not a number of ms"),
            ((*SIZES, "--recompute", "ful"), "--recompute: 'ful' is unknown; one or more of none, selective"),
            ((*SIZES, "--recompute", ""), "--recompute: '' is unknown"),
            (
                (*SIZES, "--recompute", "comm"),
                "layer 'Dec' can be none, selective, full, and recompute allows",
            ),
            ((*SIZES, "--memory-margin", "5%"), "there is none; give --memory-limit"),
            ((*SIZES, "-mem", "900", "--memory-margin", "100%"), "from 0% to below 100% (got '100%')"),
            (
                (*SIZES, "-mem", "900", "--memory-margin", "-1"),
                "memory-margin must be a number of at least 0",
            ),
            ((*SIZES, "-mem", "900", "--memory-margin", "900"), "must be below the memory limit of 900 MB"),
            ((*SIZES, "--memory-margin", "5MB"), "--memory-margin: '5MB' is neither a number of MB nor"),
            (
                (*SIZES, "--tokens-per-micro-batch", "0"),
                "--tokens-per-micro-batch: must be at least 1 (got 0)",
            ),
            ((*SIZES, "--explain", "--json"), "--explain: adds to the table"),
            ((*SIZES, "-o", ""), "--output: must name a folder (got '')"),
            ((*SIZES, "--gap", "much"), "--gap: 'much' is not a share such as 0.01 or 1%"),
            ((*SIZES, "--gap", "200%"), "gap must be"),
            ((*SIZES, "-t", "-1"), "time-limit must be"),
            ((*SIZES, "--seed", "-1"), "seed must be"),
            ((*SIZES, "--schedule", "2f2b"), "--schedule: '2f2b' is unknown; one of gpipe, 1f1b"),
            ((*SIZES, "--schedule", "gpipe", "-i", "2"), "gpipe: chunks must be 1 (got 2)"),
            ((*SIZES, "--micro-batch-group", "x"), "--micro-batch-group: 'x' is neither a whole number nor"),
            ((*SIZES, "--target", "fairscale"), "target: 'fairscale' is unknown; one of mindformers"),
        ],
    )
    def test_of_an_option(self, words, said, model_file, run):
        assert said in one_message(run("plan", model_file(), *words))

    def test_of_a_path_never_steers_the_terminal(self, run):
        assert one_message(run("plan", "a\x1b[31m.json", *SIZES)).startswith(r"error: a\x1b[31m.json: ")

    def test_of_a_plan_file_in_the_place_of_the_model(self, model_file, run, tmp_path):
        run("plan", model_file(), *QUICK, "-o", tmp_path)
        message = one_message(run("plan", tmp_path / "plan.json", *SIZES))
        assert "is a plan file, not a model file" in message
        assert "note: " not in message

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (
                "name,kind,forward_ms\nDec,BODY,1\n",
                "is no JSON; a model file is, and sapp-ppb costs makes one",
            ),
            ('{"model_type": "llama", "num_hidden_layers": 32}', "sapp-ppb costs hf makes one of it"),
        ],
    )
    def test_of_what_a_model_file_is_made_of(self, text, said, run, tmp_path):
        (tmp_path / "layers").write_text(text, encoding="utf-8")
        message = one_message(run("plan", tmp_path / "layers", *SIZES))
        assert said in message
        assert "note: " not in message


@pytest.mark.parametrize("several", ["4,8", "4, 8", "4-8", "4:16", "4 8"])
@pytest.mark.parametrize("option", ["-s", "-mb", "-i"])
def test_several_sizes_are_refused_with_the_verb_that_takes_them(model_file, run, option, several):
    result = run("plan", model_file(), *QUICK, option, several)
    assert result.exit_code == 2
    assert f"'{several}' is not a whole number; for several, ask 'sapp-ppb sweep'" in result.stderr


def test_a_size_that_is_no_number_is_refused(model_file, run):
    result = run("plan", model_file(), *QUICK, "-s", "four")
    assert result.exit_code == 2
    assert "'four' is not a whole number" in result.stderr
    assert "sweep" not in result.stderr


def test_an_unknown_framework_is_told_by_its_option(model_file, run):
    result = run("plan", model_file(), *QUICK, "--target", "megatrn")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: --target: 'megatrn' is unknown; one of mindformers, megatron")
