"""``sapp-ppb export``: into every framework's words, into files, and what can not be said."""

import json
from pathlib import Path

import pytest

from sapp_ppb.readers import read_model, read_plan
from sapp_ppb.readers.frameworks.framework import read_config
from sapp_ppb.targets import cell_types
from sapp_ppb.writers.frameworks.exports import EXPORTS

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
MIXED = {"none": [[2, 4]], "full": [[3, 1]]}


def plan_document(counts, *, micro_batches=4, mtp=None, **problem):
    """Plan file of the small model; what it says of time is not judged when it is read."""
    rows = next(iter(next(iter(counts.values())).values()))
    sizes = {"stages": len(rows[0]), "interleave": len(rows), "micro_batches": micro_batches}
    fixed = {"memory_limit_mb": None, "constant_memory_mb": 0, "p2p_ms": 0.0, "min_layers_per_cell": 1}
    return {
        "format": "sapp-ppb-plan",
        "version": 1,
        "model": "tiny",
        **({} if mtp is None else {"mtp": mtp}),
        "problem": {**sizes, "schedule": "1f1b" if len(rows) == 1 else "interleaved", **fixed, **problem},
        "counts": counts,
        "outcome": {
            "status": "feasible",
            "makespan_ms": 1.0,
            "lower_bound_ms": None,
            "stopped_by": "budget",
            "seconds": 0.0,
            "seed": 0,
            "peak_memory_mb": [0.0] * len(rows[0]),
            "bubble": None,
        },
    }


@pytest.fixture
def plan_file(tmp_path):
    def write(counts, **more):
        path = tmp_path / "plan.json"
        path.write_text(json.dumps(plan_document(counts, **more)), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("to", EXPORTS)
def test_what_is_written_is_read_back_as_the_same_plan(to, plan_file, model_file, run, tmp_path):
    path = plan_file({"Dec": {"full": [[4, 6]]}})
    result = run("export", path, "--to", to, "--model", model_file())
    assert (result.exit_code, result.stderr) == (0, "")
    written = tmp_path / EXPORTS[to].file_name
    written.write_text(result.stdout, encoding="utf-8")
    plan = read_plan(path, read_model(model_file())).plan
    found = read_config(written, to)
    assert plan is not None
    assert found.types == cell_types(plan)
    assert (found.stages, found.interleave, found.broken) == (2, 1, ())


@pytest.mark.parametrize("to", ["mindformers", "megatron", "torchtitan"])
def test_no_model_file_is_needed(to, plan_file, model_file, run):
    path = plan_file({"Dec": {"full": [[4, 6]]}})
    with_model = run("export", path, "--to", to, "--model", model_file())
    assert run("export", path, "--to", to).stdout == with_model.stdout != ""


def test_statements_of_python_are_read_back(plan_file, run, tmp_path):
    result = run("export", plan_file({"Dec": {"full": [[4, 6]]}}), "--to", "torchtitan", "--python")
    file = tmp_path / "job.py"
    file.write_text(result.stdout, encoding="utf-8")
    found = read_config(file)
    assert found.types is not None
    assert [len(cell) for cell in found.types[0]] == [4, 6]


def test_a_list_without_a_model_has_body_layers_only_and_says_so(plan_file, run):
    result = run("export", plan_file({"Dec": {"none": [[1, 1]]}}), "--to", "csv")
    assert result.stdout == "index,name,stage,chunk,recompute\n0,Dec,0,0,none\n1,Dec,1,0,none\n"
    assert "no HEAD and no TAIL" in result.stderr


def test_layers_of_multi_token_prediction_are_told_by_the_plan_file(plan_file, run):
    counts = {"Dec": {"none": [[3, 2]]}, "Mtp": {"none": [[0, 1]]}}
    result = run("export", plan_file(counts, mtp=["Mtp"]), "--to", "megatron")
    assert '"Et*3|t*2mL"' in result.stdout.replace("ttt", "t*3").replace("tt", "t*2")
    assert run("export", plan_file(counts), "--to", "megatron").stdout.count("m") < result.stdout.count("m")


def test_a_plan_that_can_not_be_said_is_exit_1_with_reasons_and_the_nearest(plan_file, run):
    result = run("export", plan_file({"Dec": MIXED}), "--to", "megatron")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Megatron-LM can not express this plan" in result.stderr
    assert "one recompute setting holds for the whole model" in result.stderr
    # Blocks of 2 change one layer on each stage, as blocks of 1 and 3 change two on one; 3 adds no memory.
    assert "--recompute-method block --recompute-num-layers 3, which differs in 2 layers" in result.stderr
    assert "it may not fit the memory" in result.stderr
    assert "--nearest writes it" in result.stderr


def test_the_nearest_plan_is_written_where_that_is_asked_for(plan_file, run):
    result = run("export", plan_file({"Dec": MIXED}), "--to", "megatron", "--nearest")
    assert result.exit_code == 0
    assert "--recompute-num-layers 3" in result.stdout
    assert "which differs in 2 layers" in result.stderr


def test_with_the_model_the_nearest_plan_is_priced(plan_file, model_file, run):
    path = plan_file({"Dec": MIXED}, memory_limit_mb=600)
    result = run("export", path, "--to", "megatron", "--model", model_file())
    assert "makespan " in result.stderr
    assert "over the limit on 2 of 2 stages" in result.stderr


def test_no_plan_is_near_where_the_schedule_is_refused(plan_file, run):
    result = run("export", plan_file({"Dec": MIXED}, schedule="gpipe"), "--to", "megatron", "--nearest")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Megatron-LM has no schedule gpipe" in result.stderr
    assert "nearest: none with this split" in result.stderr


def test_a_table_that_can_not_show_all_cells_is_exit_1(plan_file, run):
    path = plan_file({"Dec": {"none": [[3, 0]]}}, min_layers_per_cell=0)
    result = run("export", path, "--to", "csv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "stage 1 is the last and holds no layer" in result.stderr


CASES = {
    "mindformers/pretrain_deepseek3_671b.yaml": (16, 1, 61, 1, 32),
    "mindformers/finetune_llama3_1_70b.yaml": (8, 1, 80, 0, 256),
    "mindformers/finetune_qwen2_5_32b_8k.yaml": (2, 1, 64, 0, 128),
    "megatron/deepseekv3_proxy_pp4_model_config.yaml": (4, 2, 14, 1, 64),
    "megatron/uneven_pipeline_model_config.yaml": (4, 1, 12, 0, 8),
    "torchtitan/debug_model.toml": (2, 1, 6, 0, 8),
    "torchtitan/deepseek_v3_671b.toml": (4, 2, 61, 0, 8),
}


def full_counts(stages, chunks, layers, mtp):
    """Split evenly, what is left over to the first cells, and fully recomputed; MTP to the last cell."""
    cells = stages * chunks
    sizes = [layers // cells + (cell < layers % cells) for cell in range(cells)]
    rows = [sizes[chunk * stages : (chunk + 1) * stages] for chunk in range(chunks)]
    last = [
        [mtp * (chunk == chunks - 1 and stage == stages - 1) for stage in range(stages)]
        for chunk in range(chunks)
    ]
    return {"Dec": {"full": rows}} | ({"Mtp": {"full": last}} if mtp else {})


@pytest.mark.parametrize("name", CASES)
def test_real_configurations_take_a_plan_and_give_it_back(name, plan_file, run, tmp_path):
    stages, chunks, layers, mtp, micro_batches = CASES[name]
    counts = full_counts(stages, chunks, layers, mtp)
    path = plan_file(counts, micro_batches=micro_batches, mtp=["Mtp"] if mtp else None)
    config = tmp_path / Path(name).name
    before = (CONFIGS / name).read_bytes()
    config.write_bytes(before)
    result = run("export", path, "--into", config)  # whose it is, is told by the file
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    assert result.stderr.startswith(f"edited {config}:\n")
    found = read_config(config, layers=layers + mtp)
    assert found.broken == ()
    assert (found.stages, found.interleave) == (stages, chunks)
    assert found.types is not None
    sizes = [len(cell) for row in found.types for cell in row]
    per_entry = [[count for row in by_type["full"] for count in row] for by_type in counts.values()]
    wanted = [sum(of_cell) for of_cell in zip(*per_entry, strict=True)]
    assert sizes == wanted
    # Lines that are not named as changed are there as before.
    gone = {int(line.split()[0]) for line in result.stderr.splitlines()[1:] if line.split()[1:2] == ["-"]}
    kept = [line for number, line in enumerate(before.splitlines(), 1) if number not in gone]
    remaining = iter(config.read_bytes().splitlines())
    assert all(line in remaining for line in kept)
    again = run("export", path, "--into", config)
    assert again.stderr == f"{config} says this plan already; nothing changed\n"


def test_an_edit_that_can_not_be_leaves_the_file_alone(plan_file, run, tmp_path):
    config = tmp_path / "run.sh"
    config.write_text("--pipeline-model-parallel-size 2 --num-layers 99\n", encoding="utf-8")
    result = run("export", plan_file({"Dec": {"none": [[5, 5]]}}), "--into", config)
    assert (result.exit_code, result.stdout) == (2, "")
    assert config.read_text(encoding="utf-8") == "--pipeline-model-parallel-size 2 --num-layers 99\n"


def test_a_new_file_is_written_once(plan_file, run, tmp_path):
    path, file = plan_file({"Dec": {"none": [[5, 5]]}}), tmp_path / "new" / "megatron.sh"
    assert run("export", path, "--to", "megatron", "-o", file).stderr == f"wrote {file}\n"
    again = run("export", path, "--to", "megatron", "-o", file)
    assert (again.exit_code, again.stdout) == (2, "")
    assert "give --force to replace it" in again.stderr
    assert run("export", path, "--to", "megatron", "-o", file, "--force").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            (),
            "--to: says what to write, and is missing; one of mindformers, megatron, torchtitan, mindspeed",
        ),
        (("--to", "jax"), "--to: 'jax' is unknown; one of mindformers, megatron"),
        (
            ("--to", "megatron", "--into", "x", "-o", "y"),
            "--into: edits a file, and --output writes a new one",
        ),
        (
            ("--to", "csv", "--into", "x"),
            "--into: edits a framework's configuration; write csv with --output",
        ),
        (("--to", "megatron", "--python"), "--python: goes with --to torchtitan and without --into"),
        (("--to", "torchtitan", "--python", "--into", "job.py"), "--python: goes with --to torchtitan"),
        (("--into", "nothing"), "nothing: does not tell whose configuration it is; give --to"),
        (("--to", "megatron", "--into", "none.sh"), "none.sh: there is no such file"),
    ],
)
def test_what_is_refused(words, said, plan_file, run):
    result = run("export", plan_file({"Dec": {"none": [[5, 5]]}}), *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_a_plan_of_nothing_that_fits_is_refused(model_file, run, tmp_path):
    run("plan", model_file(), "-s", "2", "-mb", "4", "-mem", "600", "-t", "0.2", "-o", tmp_path / "out")
    for words in ((), ("--model", model_file())):
        result = run("export", tmp_path / "out" / "plan.json", "--to", "megatron", *words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "give" in result.stderr


def test_a_folder_gets_every_file_of_a_form(plan_file, run, tmp_path):
    path = plan_file({"Dec": {"full": [[4, 6]]}})
    folder = tmp_path / "planned"
    folder.mkdir()
    result = run("export", path, "--to", "pytorch", "-o", folder)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"wrote {folder / 'pytorch.py'}\nwrote {folder / 'schedule.csv'}\n"
    assert [len(cell) for cell in (read_config(folder / "pytorch.py").types or ((),))[0]] == [4, 6]
    assert (folder / "schedule.csv").read_text(encoding="utf-8").startswith("0F0,0F1,0B0,")
    again = run("export", path, "--to", "pytorch", "-o", folder)
    assert again.exit_code == 2
    assert "pytorch.py, schedule.csv exist; give --force to replace them" in again.stderr


def test_a_folder_that_is_not_there_is_told_by_its_slash(plan_file, run, tmp_path):
    result = run(
        "export", plan_file({"Dec": {"full": [[4, 6]]}}), "--to", "deepspeed", "-o", f"{tmp_path}/new/"
    )
    assert result.exit_code == 0
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["deepspeed_plan.py"]


@pytest.mark.parametrize("to", ["colossalai", "deepspeed", "pytorch"])
def test_a_script_is_edited_with_what_it_is_told_apart_by(to, plan_file, run, tmp_path):
    first = plan_file({"Dec": {"full": [[4, 6]]}})
    script = tmp_path / "job.py"
    script.write_text("# mine\n" + run("export", first, "--to", to).stdout, encoding="utf-8")
    result = run("export", plan_file({"Dec": {"none": [[7, 3]]}}), "--into", script)
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"edited {script}:" in result.stderr
    found = read_config(script)
    assert (found.target, found.broken) == (to, ())
    assert [len(cell) for cell in (found.types or ((),))[0]] == [7, 3]
    assert script.read_text(encoding="utf-8").startswith("# mine\n")
