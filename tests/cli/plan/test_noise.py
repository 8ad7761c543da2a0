"""``sapp-ppb plan``: how plans hold when the times of layers vary."""

import json

from tests.cli.conftest import QUICK, one_message


def test_noise_says_how_the_plan_and_others_hold(model_file, run):
    result = run("plan", model_file(), *QUICK, "-mem", "1200", "--noise", "5%")
    assert result.exit_code == 0
    page = result.stdout[result.stdout.index("when the times of layers vary") :]
    assert page.startswith("when the times of layers vary, with a standard deviation of 5 % (200 draws)")
    for word in ("the plan ", "runner-up 1", "95th per-", "median", "95th percentile"):
        assert word in page
    assert run("plan", model_file(), *QUICK, "-mem", "1200", "--noise", "0.05").stdout.endswith(page)


def test_noise_writes_the_plan_that_holds_best_where_it_is_another(run, model_file, tmp_path):
    # The plan of tests/planner/test_robust.py: 3 + 3 layers are faster, 2 + 4 hold better.
    big = {"name": "big", "type": "BODY", "time": 20, "nb_layer": 4}
    small = {"name": "small", "type": "BODY", "time": 10, "nb_layer": 2}
    words = ("-s", "2", "-mb", "16", "-t", "0.2", "--noise", "20%", "-o", tmp_path / "out")
    path = model_file([big, small])
    result = run("plan", path, *words)
    assert "wrote " in result.stderr
    assert "plan-p95.json" in result.stderr
    first, second = (
        json.loads((tmp_path / "out" / name).read_text()) for name in ("plan.json", "plan-p95.json")
    )
    assert first["counts"]["big"]["none"] == [[3, 1]]
    assert second["counts"]["big"]["none"] == [[2, 2]]
    assert second["outcome"]["makespan_ms"] == 3000
    assert second["outcome"]["lower_bound_ms"] == first["outcome"]["lower_bound_ms"]
    assert "its offsets: -1 1" in result.stdout
    again = one_message(run("plan", path, *words))
    assert "plan-p95.json" in again


def test_a_noise_that_can_not_be_is_refused(model_file, run):
    for noise in ("lots", "-1%", "200%", "nan"):
        assert "--noise: " in one_message(run("plan", model_file(), *QUICK, "--noise", noise))
    assert "--noise: adds to the table" in one_message(
        run("plan", model_file(), *QUICK, "--noise", "5%", "--json")
    )


def test_noise_without_a_plan_adds_nothing(model_file, run):
    result = run("plan", model_file(), *QUICK, "-mem", "300", "--noise", "5%")
    assert result.exit_code == 1
    assert "when the times of layers vary" not in result.stdout
