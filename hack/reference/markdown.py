"""The little of Markdown that the reference consists of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

LONGEST_CELL = 200
"""Characters; what is longer is read below the table, where lines have the whole width."""

_CONTINUED = " ..."
_NO_MARKUP = str.maketrans({"|": "\\|", "<": "&lt;", ">": "&gt;", "*": "\\*"})


def page(title: str, *blocks: str) -> str:
    """A page of the reference, which says where it comes from."""
    note = "<!-- Made by `python -m hack.generate_reference`; what it says is written in the code. -->"
    return "\n\n".join([note, f"# {title}", *filter(None, blocks)]) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already; empty without rows.

    A cell that is too long ends after a sentence, and goes on in a list below the table.
    """
    lines, rests = [], []
    for row in rows:
        parts = [_split(each) for each in row]
        lines.append(f"| {' | '.join(first for first, _ in parts)} |".replace("|  |", "| |").replace("|  |", "| |"))
        long = [(column, rest) for column, (_, rest) in zip(columns, parts, strict=True) if rest]
        for column, rest in long:
            rests.append(f"* {row[0]}{f', {column}' if len(long) > 1 else ''}: {rest}")
    if not lines:
        return ""
    head = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*head, *lines, *(["", *rests] if rests else [])])


def _split(text: str) -> tuple[str, str]:
    """What a cell shows, and what is left for below: whole sentences, or all of one that is too long."""
    if len(text) <= LONGEST_CELL:
        return text, ""
    ends = [
        found.start() for found in re.finditer(r"(?<=[.;]) ", text) if found.start() <= LONGEST_CELL - len(_CONTINUED)
    ]
    return (text[: ends[-1]] + _CONTINUED, text[ends[-1] + 1 :]) if ends else ("see below", text)


def prose(text: str) -> str:
    """A docstring as one line of a cell or paragraph; its code spans, in single backticks, stay."""
    pieces = " ".join(text.replace("``", "`").split()).split("`")
    return "`".join(
        cell(piece) if number % 2 == 0 else piece.replace("|", "\\|") for number, piece in enumerate(pieces)
    )


def cell(text: str) -> str:
    """Text in which nothing is markup."""
    return text.translate(_NO_MARKUP)


def code(value: object) -> str:
    """A literal in a cell."""
    return f"`{value}`".replace("|", "\\|")


def anchor(heading: str) -> str:
    """The fragment by which a heading is linked, as on GitHub: lower case, blanks to hyphens, few other characters."""
    kept = "".join(char for char in heading.strip().lower() if char.isalnum() or char in "-_ ")
    return kept.replace(" ", "-")


def link(heading: str) -> str:
    """A link to a heading of the same page."""
    return f"[{heading}](#{anchor(heading)})"
