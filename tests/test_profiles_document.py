"""What docs/profiles.md shows of a command is what the command prints."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "profiles.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```\nsapp-ppb ([^\n]*)\n```\n\n```\n(.*?)```", TEXT, re.DOTALL)


def test_each_of_the_three_is_shown():
    assert [words.split()[1] for words, _ in SHOWN] == ["galvatron", "pipedream", "csv"]


def test_the_table_that_is_shown_is_the_file():
    assert (ROOT / "tests" / "data" / "profiles" / "layers.csv").read_text(encoding="utf-8") in TEXT
