"""The README says what there is; tests/test_pages.py runs what a reader may copy from it."""

import re
from pathlib import Path

import sapp_ppb

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_room_of_the_readme_exists_and_every_room_is_named():
    rooms = {
        path.name for path in Path(sapp_ppb.__file__).parent.iterdir() if (path / "__init__.py").exists()
    }
    named = set(re.findall(r"^\| `(\w+)/`", TEXT, re.MULTILINE))
    named |= {"readers", "writers"}  # one line names both
    assert named == rooms


def test_one_command_shows_it_and_one_tests_it_within_the_first_screen():
    first = TEXT.split("## ")[0]
    assert re.findall(r"^make (\w+)", first, re.MULTILINE) == ["demo", "test"]
    assert len(first.splitlines()) < 70


def test_every_page_of_docs_is_within_reach():
    """From the README or from a page that it leads to, so that nobody needs the site's menu."""
    docs, found = ROOT / "docs", set()
    fresh = [ROOT / "README.md"]
    while fresh:
        page = fresh.pop()
        for link in re.findall(r"\]\(\s*([^)#\s]+\.md)", page.read_text(encoding="utf-8")):
            target = (page.parent / link).resolve()
            if target not in found and target.exists():
                found.add(target)
                fresh.append(target)
    assert sorted(set(docs.rglob("*.md")) - found - {docs / "index.md"}) == []
