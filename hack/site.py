"""Build the documentation as a site, from the Markdown that a code host shows: `make docs`.

README.md and all that it leads to, in docs/ and beside it, is copied with its place in the repository, so that the same
links work on both. Zensical makes pages of it and refuses links that lead nowhere. A page that would load anything from
another host is an error: the site works where there is no internet, and tells nobody who reads it.

    python -m hack.site

A file that is linked and is no Markdown comes along as it is. The site is build/site, and opens from the disk, too.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).parents[1]
STAGED = ROOT / "build" / "pages"
SITE = ROOT / "build" / "site"
_LINK = re.compile(r"\]\(([^()\s#]+)[^()\s]*\)")
_LOADING_TAGS = {"audio", "embed", "iframe", "img", "script", "source", "video"}
_LOADED_RELS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "manifest"}


def sources(root: Path = ROOT) -> set[Path]:
    """README.md, the pages and code of docs/, and every file that they link to, directly or by each other."""
    found = {
        root / "README.md",
        *(path for path in (root / "docs").rglob("*") if path.suffix in {".md", ".py", ".png"}),
    }
    unread = [path for path in found if path.suffix == ".md"]
    while unread:
        page = unread.pop()
        for target in _LINK.findall(page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve()
            if "://" in target or path in found or not path.is_file() or not path.is_relative_to(root):
                continue
            found.add(path)
            if path.suffix == ".md":
                unread.append(path)
    return found


def stage(target: Path, root: Path = ROOT) -> None:
    """Copy the sources to `target`, anew and each to its place."""
    shutil.rmtree(target, ignore_errors=True)
    for source in sources(root):
        copy = target / source.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)


class _Assets(HTMLParser):
    """Addresses that a browser loads by itself when it shows a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what the element loads; links that people follow are none of it."""
        given = dict(attrs)
        if tag in _LOADING_TAGS:
            self.found.append(given.get("src") or "")
        elif tag == "link" and _LOADED_RELS & set((given.get("rel") or "").split()):
            self.found.append(given.get("href") or "")
        if "mermaid" in (given.get("class") or "").split():
            self.found.append("//unpkg.com/mermaid")  # the theme's script fetches it for such a diagram


def loads_from_elsewhere(text: str, suffix: str) -> list[str]:
    """The addresses of other hosts that a page (`.html`) or a style sheet (`.css`) loads by itself."""
    if suffix == ".css":
        loaded = re.findall(r"(?:url\(|@import\s+)[\"']?([^\"')\s]+)", text)
    else:
        assets = _Assets()
        assets.feed(text)
        loaded = assets.found
    return [address for address in loaded if re.match(r"(?:https?:)?//", address)]


def foreign(site: Path) -> Iterator[str]:
    """One line for each address of another host that the site loads."""
    for path in sorted(site.rglob("*")):
        if path.suffix in {".html", ".css"}:
            for address in loads_from_elsewhere(path.read_text(encoding="utf-8"), path.suffix):
                yield f"{path.relative_to(site)} loads {address}"


def main() -> int:
    """Build it; 1 where a link leads nowhere, or a page would load something of another host."""
    stage(STAGED)
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"]
    built = subprocess.run(command, cwd=ROOT, check=False)
    if built.returncode:
        return built.returncode
    problems = list(foreign(SITE))
    for problem in problems:
        sys.stderr.write(f"error: {problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
