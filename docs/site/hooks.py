"""
What the site needs besides the pages: files outside of docs/ that they lead to, and a check.

Pages are written for a code host, where they are read too.  There a link may lead out of
docs/; the site gets a copy of such a file, and a folder becomes its name alone.
"""

import posixpath
import re
from pathlib import Path

from markdown_it import MarkdownIt
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = ("CHANGELOG.md", "benchmarks/results.md")  # pages of the site that lie elsewhere
LINK = re.compile(r"\]\(\s*(?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
TAGS = ("li", "table", "pre", "blockquote", "h2", "h3")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie elsewhere, and every file that a page leads to."""
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    for page in [file for file in files.documentation_pages() if file.abs_src_path]:
        text = Path(str(page.abs_src_path)).read_text(encoding="utf-8")
        for link, _ in LINK.findall(text):
            name = _outside(page.src_uri, link)
            if name and (ROOT / name).is_file() and files.get_file_from_path(name) is None:
                files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where things are on the site."""

    def placed(match: re.Match[str]) -> str:
        name = _outside(page.file.src_uri, match[1])
        if name is None:
            return match[0]
        if files.get_file_from_path(name) is None:
            raise PluginError(f"{page.file.src_uri} leads to {match[1]}, which is no file")
        return f"]({posixpath.relpath(name, posixpath.dirname(page.file.src_uri) or '.')}{match[2] or ''})"

    def named(match: re.Match[str]) -> str:
        name = _outside(page.file.src_uri, match[2])
        is_folder = name is not None and (ROOT / name).is_dir()
        return match[1] if is_folder else match[0]

    return LINK.sub(placed, re.sub(r"\[([^\]]*)\]\(([^)#\s]+)\)", named, markdown))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Refuse a page that the site lays out otherwise than a code host does."""
    markdown = page.markdown or ""
    if "\n::: " in markdown:
        return re.sub(r"\.\. (\[\d+\]) ", r"\1 ", html.replace("]_", "]"))  # footnotes of docstrings
    there = MarkdownIt("commonmark").enable("table").render(markdown)
    other = []
    for tag in TAGS:
        here, on_host = (len(re.findall(f"<{tag}[ >]", text)) for text in (html, there))
        if here != on_host:
            other.append(f"{tag}: {here} here, {on_host} there")
    if other:
        raise PluginError(f"{page.file.src_uri} is laid out otherwise on a code host ({', '.join(other)})")
    return html


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Take from the site what the theme would fetch from elsewhere; refuse a page that fetches more."""
    here = posixpath.relpath("frame_worker.js", posixpath.dirname(page.file.src_uri) or ".")
    output = output.replace("https://unpkg.com/iframe-worker/shim", here)
    if fetched := re.findall(r'<(?:script|img|iframe)[^>]* src="(?:https?:)?//[^"]*"', output):
        raise PluginError(f"{page.file.src_uri} asks the network: {fetched[0]}")
    return output


def _outside(page: str, link: str) -> str | None:
    """Path from the root of what a link of a page leads to, when that is not in docs/."""
    if page in PAGES:
        path = posixpath.normpath(posixpath.join("docs", "..", posixpath.dirname(page), link))
        return path.removeprefix("docs/") if path.startswith("docs/") else path
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link))
    return None if path.startswith("docs/") else path
