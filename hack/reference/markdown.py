"""The little of Markdown that the reference consists of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_NO_MARKUP = str.maketrans({"|": "\\|", "<": "&lt;", ">": "&gt;", "*": "\\*"})


def page(title: str, *blocks: str) -> str:
    """A page of the reference, which says where it comes from."""
    note = "<!-- Made by `python -m hack.generate_reference`; what it says is written in the code. -->"
    return "\n\n".join([note, f"# {title}", *filter(None, blocks)]) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already; empty without rows."""
    lines = [f"| {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |") for row in rows]
    return "\n".join([f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *lines]) if lines else ""


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
