"""``sapp-ppb plan``: what is printed for people, and what options add to it."""

import json

from tests.cli.conftest import BODY, HEAD, QUICK


def test_a_plan_is_printed_with_all_that_is_known_of_it(model_file, run):
    result = run("plan", model_file(), *QUICK, "-mem", "1200")
    assert result.exit_code == 0
    for word in (
        "tiny: 10 layers on 2 stages, 4 micro-batches, 1f1b",
        "head + ",
        " + tail",
        "of 1,200 MB",
        "makespan",
        "lower bound",
        "gap",
        "status",
        "stopped by",
        "bubble",
        "highest peak",
        "planned in",
        "even split, full recompute",
        "offset: [[",
        "recompute: [[",
        "select_recompute: [[",
        "select_comm_recompute: [[",
    ):
        assert word in result.stdout


def test_what_is_piped_is_plain(model_file, run):
    stdout = run("plan", model_file(), *QUICK).stdout
    assert "\x1b" not in stdout
    assert not any(line.endswith(" ") for line in stdout.splitlines())


def test_several_kinds_are_named_in_the_table(model_file, run):
    dense, moe = BODY | {"name": "Dense", "nb_layer": 4}, BODY | {"name": "Moe", "nb_layer": 6}
    stdout = run("plan", model_file(layers=[HEAD, dense, moe]), *QUICK).stdout
    assert "head + Dense 4" in stdout
    assert "Moe " in stdout


def test_a_margin_is_kept_free_and_shown(model_file, run):
    words = ("plan", model_file(), *QUICK, "-mem", "1200", "--memory-margin")
    document = json.loads(run(*words, "200", "--json").stdout)
    assert max(document["outcome"]["peak_memory_mb"]) <= 1000
    stdout = run(*words, "10%").stdout
    assert "of 1,080 MB" in stdout  # 1200 - 10 % of it
    assert "1,200 MB, of which a margin of 10% is kept free" in stdout


def test_tokens_per_second(model_file, run):
    stdout = run(
        "plan", model_file(), "-s", "1", "-mb", "4", "-t", "0.2", "--tokens-per-micro-batch", "1000"
    ).stdout
    # One stage: 4 x 3 x (5 + 100 + 8) = 1356 ms, 339 a micro-batch; 4000 / 1.356 = 2949.9.
    assert "step time     339.0 ms per micro-batch" in stdout
    assert "2,950 per second, 1,000 in each of 4 micro-batches" in stdout


def test_an_explanation_says_what_to_buy(model_file, run):
    stdout = run("plan", model_file(), *QUICK, "-mem", "1000", "--explain").stdout
    rows = stdout.split("what limits this plan\n")[1].splitlines()
    names = ("memory", "recompute", "size of layers", "busiest stage", "fill and drain", "most to gain")
    assert [row.split("  ")[0] for row in rows] == list(names)
    # 1000 MB force recompute, which nothing else in this model asks for.
    assert "more memory on every stage" in rows[-1]
