"""``sapp-ppb plan``: an output that can not be written is refused before any planning."""

import os

import pytest

from tests.cli.conftest import SIZES, one_message


class TestRefusals:
    def test_of_a_plan_file_that_exists_comes_before_any_planning(
        self, model_file, run, tmp_path, monkeypatch
    ):
        (tmp_path / "plan.json").write_text("mine", encoding="utf-8")
        monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", lambda *_, **__: pytest.fail("planned"))
        assert "the file exists; give --force" in one_message(
            run("plan", model_file(), *SIZES, "-o", tmp_path)
        )

    @pytest.mark.parametrize(
        ("place", "said"),
        [("file/out", "is no folder"), ("taken", "is a folder where plan.json should be")],
    )
    def test_of_an_output_that_can_not_be_written_comes_before_any_planning(
        self, place, said, model_file, run, tmp_path, monkeypatch
    ):
        (tmp_path / "file").write_text("mine", encoding="utf-8")
        (tmp_path / "taken" / "plan.json").mkdir(parents=True)
        monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", lambda *_, **__: pytest.fail("planned"))
        assert said in one_message(run("plan", model_file(), *SIZES, "-o", tmp_path / place, "--force"))

    def test_of_a_folder_without_permission_comes_before_any_planning(
        self, model_file, run, tmp_path, monkeypatch
    ):
        # The tests may run as root, who may write everywhere.
        monkeypatch.setattr("os.access", lambda _, mode, **__: not mode & os.W_OK)
        monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", lambda *_, **__: pytest.fail("planned"))
        message = one_message(run("plan", model_file(), *SIZES, "-o", tmp_path / "new" / "out"))
        assert message == f"error: {tmp_path}: the folder may not be written to; give another --output\n"

    def test_of_a_file_where_the_folder_should_be(self, model_file, run, tmp_path):
        (tmp_path / "out").write_text("mine", encoding="utf-8")
        message = one_message(run("plan", model_file(), *SIZES, "-o", tmp_path / "out"))
        assert "is no folder" in message
