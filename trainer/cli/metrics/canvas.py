"""Small line charts of characters: dots of Braille, or asterisks on terminals that know nothing but ASCII."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_BRAILLE = 0x2800
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bit of a dot by its column and row in the cell (Unicode, "Braille Patterns")."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """How many dots a cell has, and how many cells a chart."""

    width: int
    height: int
    ascii_only: bool = False
    """Whether a cell is one dot. Default: it has 2 by 4 of them."""

    @property
    def columns(self) -> int:
        """Dots from left to right."""
        return self.width if self.ascii_only else 2 * self.width

    @property
    def rows(self) -> int:
        """Dots from bottom to top."""
        return self.height if self.ascii_only else 4 * self.height

    def draw(self, points: Sequence[tuple[float, float]]) -> list[str]:
        """The lines of a chart through points in the order of their x, scaled so that they fill it."""
        cells = [[0] * self.width for _ in range(self.height)]
        before: tuple[int, int] | None = None
        for column, row in self._dots(points):
            for x, y in _line(before or (column, row), (column, row)):
                self._set(cells, x, y)
            before = column, row
        return ["".join(map(self._character, line)) for line in cells]

    def _dots(self, points: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
        """One dot for each column that has points: at the mean of their y."""
        if not points:
            return []
        left, right = points[0][0], points[-1][0]
        by_column: dict[int, list[float]] = {}
        for x, y in points:
            column = 0 if right <= left else int((x - left) / (right - left) * (self.columns - 1) + 0.5)
            by_column.setdefault(min(max(column, 0), self.columns - 1), []).append(y)
        means = {column: _mean(ys) for column, ys in sorted(by_column.items())}
        low, high = min(means.values()), max(means.values())
        return [(column, self._row(mean, low, high)) for column, mean in means.items()]

    def _row(self, value: float, low: float, high: float) -> int:
        if high <= low:
            return self.rows // 2
        # Halved, since the distance of the greatest numbers is beyond them.
        return round((value / 2 - low / 2) / (high / 2 - low / 2) * (self.rows - 1))

    def _set(self, cells: list[list[int]], column: int, row: int) -> None:
        down = self.rows - 1 - row
        if self.ascii_only:
            cells[down][column] = 1
        else:
            cells[down // 4][column // 2] |= _DOTS[column % 2][down % 4]

    def _character(self, cell: int) -> str:
        if self.ascii_only:
            return "*" if cell else " "
        return chr(_BRAILLE + cell) if cell else " "


def _mean(values: Sequence[float]) -> float:
    """Between the least and the greatest, whatever is lost by rounding, so that a constant stays a straight line."""
    return min(max(sum(value / len(values) for value in values), min(values)), max(values))


def _line(start: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
    """The dots of a straight line, both ends included."""
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]))
    return [
        (
            start[0] + round((end[0] - start[0]) * step / max(steps, 1)),
            start[1] + round((end[1] - start[1]) * step / max(steps, 1)),
        )
        for step in range(steps + 1)
    ]
