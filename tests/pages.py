"""Code blocks of the documents, without their indent."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
_FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and what stands right before it."""

    language: str
    text: str
    before: str = ""

    @property
    def commands(self) -> list[str]:
        """Commands of the tool that stand in it, without what a comment says."""
        lines = re.sub(r"\\\n\s*", "", self.text).splitlines()
        return [re.split(r"\s#\s", line)[0].strip() for line in lines if line.startswith("sapp-ppb ")]


def blocks(page: Path) -> list[Block]:
    """Fenced blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            found[2],
            re.sub(f"^{found[1]}", "", found[3], flags=re.MULTILINE),
            text[: found.start()].rstrip().rpartition("\n")[2],
        )
        for found in _FENCED.finditer(text)
    ]


def shown(page: Path, language: str = "") -> list[str]:
    """Texts of the blocks of one language."""
    return [block.text for block in blocks(page) if block.language == language]


def pages() -> list[Path]:
    """Every page that people read: the README and all of docs/."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
