"""What the tests look at in Markdown: links, headings, code blocks and the commands in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hack.reference.markdown import anchor

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^()\s]+)\)")
_COMMAND = re.compile(r"`((?:trainer|kubectl|make|python -m) [^`]+)`")


class Block(NamedTuple):
    """A code block."""

    language: str
    text: str


def pages() -> list[Path]:
    """All Markdown that comes with the sources; hidden directories, and what npm installs, are left out."""
    rooms = (path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "build", "dist")))
    found = [*ROOT.glob("*.md"), *(page for room in rooms for page in room.rglob("*.md"))]
    return sorted(page for page in found if "node_modules" not in page.parts)


def name_of(page: Path) -> str:
    """The path by which people know it."""
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """The code blocks of a page, without the indentation of the list that they are in."""
    found = _BLOCK.findall(page.read_text())
    return [Block(language, re.sub(f"^{indent}", "", text, flags=re.MULTILINE)) for indent, language, text in found]


def anchors(page: Path) -> set[str]:
    """What links may name: headings as GitHub makes fragments of them, repeated ones with a number."""
    seen: dict[str, int] = {}
    found = set()
    for heading in re.findall(r"^#{1,6} (.+)$", _BLOCK.sub("", page.read_text()), re.MULTILINE):
        fragment = anchor(re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", heading))
        number = seen[fragment] = seen.get(fragment, -1) + 1
        found.add(f"{fragment}-{number}" if number else fragment)
    return found


def links(page: Path) -> list[str]:
    """Targets of links within the sources."""
    return [target for target in _LINK.findall(_BLOCK.sub("", page.read_text())) if "://" not in target]


def cells(page: Path) -> list[str]:
    """The cells of all tables."""
    rows = re.findall(r"^ *\|(.*)\| *$", _BLOCK.sub("", page.read_text()), re.MULTILINE)
    return [cell.strip() for row in rows for cell in re.split(r"(?<!\\)\|", row)]


def commands(page: Path) -> list[list[str]]:
    """Programs with their arguments, from blocks of sessions and from code in sentences."""
    return [command for line in _lines(page) for command in _split(line)]


def _lines(page: Path) -> Iterator[str]:
    for block in blocks(page):
        if block.language in {"console", "bash", "sh"}:
            joined = block.text.replace("\\\n", " ")
            yield from (line.removeprefix("$ ") for line in joined.splitlines() if line.startswith("$ "))
    yield from (" ".join(line.split()) for line in _COMMAND.findall(_BLOCK.sub("", page.read_text())))


def _split(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    command: list[str] = []
    for word in lexer:
        if set(word) <= set("|&;<>()"):
            yield from [command] if command else []
            command = []
        else:
            command.append(word)
    yield from [command] if command else []
