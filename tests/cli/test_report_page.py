"""``--output`` writes the report page, of a plan and of none."""

SIZES = ("-s", "2", "-mb", "4", "-t", "0.2")


def test_plan_writes_a_page_with_all_that_it_knows(model_file, run, tmp_path):
    run("plan", model_file(), *SIZES, "-mem", "1200", "--tokens-per-micro-batch", "1000", "-o", tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for said in (
        "tiny - pipeline plan",
        "makespan",
        "per second, 1,000 in each",
        "recompute_config:",
        "offset: [",
        "sapp-ppb-plan",
    ):
        assert said in page


def test_simulate_writes_a_page_too(model_file, run, tmp_path):
    run("plan", model_file(), *SIZES, "-o", tmp_path / "first")
    run("simulate", model_file(), tmp_path / "first" / "plan.json", "-o", tmp_path / "second")
    assert "one step" in (tmp_path / "second" / "report.html").read_text(encoding="utf-8")


def test_the_page_says_why_nothing_fits(model_file, run, tmp_path):
    result = run("plan", model_file(), *SIZES, "-mem", "600", "-o", tmp_path)
    assert result.exit_code == 1
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "No plan fits the memory." in page
    assert "--memory-limit" in page
    assert "--target" not in page


def test_a_page_that_exists_is_not_replaced_unasked(model_file, run, tmp_path):
    (tmp_path / "report.html").write_text("mine", encoding="utf-8")
    result = run("plan", model_file(), *SIZES, "-o", tmp_path)
    assert result.exit_code == 2
    assert "report.html: the file exists; give --force to replace it" in result.stderr
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "plan.json").exists()
