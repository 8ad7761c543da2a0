"""
Measured against simulated step times: ``make accuracy``.

The configurations of ``tests_torch/configurations.py`` run in real processes, which
needs PyTorch.  ``--stored`` looks at the runs that are kept instead.
"""

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

from accuracy_table import table

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "tests" / "data" / "runs"
PAGE = ROOT / "docs" / "accuracy.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- made by `make accuracy` -->", "<!-- end of what is made -->"


def run_everything(steps, folder):
    """Run every configuration, and write a file of each run in place of those that were there."""
    sys.path.insert(0, str(ROOT))  # the real runs are in no package
    from tests_torch.configurations import OTHERS, PROMISED
    from tests_torch.real_runs import run_plans

    plans = PROMISED | OTHERS
    runs = run_plans(list(plans.values()), steps)
    for old in folder.glob("*.json"):
        old.unlink()
    for name, run in zip(plans, runs, strict=True):
        file = folder / f"{re.sub('[^a-z0-9]+', '-', name)}.json"
        file.write_text(text_of(run.document()), encoding="utf-8")


def text_of(run):
    """Write a run document with one op a line, so that changes can be read."""
    ops = ",\n".join("  " + json.dumps(op) for op in run["ops"])
    rest = json.dumps({key: value for key, value in run.items() if key != "ops"})
    return rest[:-1] + ', "ops": [\n' + ops + "\n]}\n"


def keep(lines):
    """Write the table, and what it comes to, into their pages."""
    replace(PAGE, f"{BEGIN}.*{END}", "\n".join([BEGIN, *lines, END]))
    for figures in (r"\d+ configurations: ", "Calibrated, "):
        replace(README, f"(?m)^{figures}[^\\n]*", next(line for line in lines if re.match(figures, line)))


def replace(path, pattern, made):
    """Replace what was made before in a page."""
    page = path.read_text(encoding="utf-8")
    path.write_text(re.sub(pattern, lambda _: made, page, flags=re.DOTALL), encoding="utf-8")


def main():
    """Print the table; keep it and its runs when asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--stored", action="store_true", help="take the runs that are kept")
    parser.add_argument("--steps", type=int, default=5, help="steps of each run, besides the first")
    parser.add_argument("--keep", action="store_true", help="keep the runs, the table and what it comes to")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = RUNS if options.stored or options.keep else Path(folder)
        if not options.stored:
            run_everything(options.steps, runs)
        lines = table(runs)
    print("\n".join(lines))
    if options.keep:
        keep(lines)


if __name__ == "__main__":
    main()
