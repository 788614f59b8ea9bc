"""Columns of tables, in cells of a terminal: wide characters take two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len, set_cell_size

GAP = 2
"""Cells between two columns."""
_NARROWEST = 9
"""Cells of a column whose texts are cut, where nothing else helps."""


def columns(rows: Sequence[Sequence[str]], gap: int = GAP) -> Iterator[str]:
    """Rows as lines with texts below each other."""
    widths = [max(map(cell_len, column)) + gap for column in zip(*rows, strict=True)]
    for row in rows:
        yield "".join(set_cell_size(text, width) for text, width in zip(row, widths, strict=True)).rstrip()


def total(widths: Mapping[str, int]) -> int:
    """Cells of a line."""
    return sum(widths.values()) + GAP * (len(widths) - 1)


def fitted(
    widths: Mapping[str, int], room: int | None, shortest: Mapping[str, int], dispensable: Sequence[str]
) -> dict[str, int]:
    """Widths with which the columns fit.

    Args:
        widths: those of whole texts, by title.
        room: cells of a line; None for as many as it takes.
        shortest: columns whose texts may be cut, with the cells that they keep while there are columns that can go.
        dispensable: columns that can go, the first one first.

    Returns:
        The columns that stay. They are still wider than the room if it is too small for what cannot go.
    """
    if room is None:
        return dict(widths)
    present = [title for title in dispensable if title in widths]
    for gone in range(len(present) + 1):
        kept = {title: width for title, width in widths.items() if title not in present[:gone]}
        _cut(kept, room, shortest)
        if total(kept) <= room:
            return kept
    _cut(kept, room, dict.fromkeys(shortest, _NARROWEST))
    return kept


def _cut(widths: dict[str, int], room: int, shortest: Mapping[str, int]) -> None:
    """Take from the widest column cell by cell."""
    cuttable = [title for title in widths if title in shortest]
    while total(widths) > room:
        longer = [title for title in cuttable if widths[title] > shortest[title]]
        if not longer:
            return
        widths[max(longer, key=widths.__getitem__)] -= 1


def elided(text: str, width: int, *, ascii_only: bool = False) -> str:
    """A text with its beginning and its end, which tells names with random endings apart: `a-long-na…x7k2p`."""
    if cell_len(text) <= width:
        return text
    behind = max((width - 1) // 2, 0)
    end = text[len(text) - behind :]
    while cell_len(end) > behind:
        end = end[1:]
    beginning = set_cell_size(text, max(width - 1 - cell_len(end), 0)).rstrip()  # of half a wide character a blank
    return beginning + ("~" if ascii_only else "…") + end
