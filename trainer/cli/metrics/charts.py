"""Metrics as small line charts of characters, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from rich.text import Text

from trainer.cli.console import duration, printable
from trainer.cli.jobs.progress import short_value
from trainer.progress.interest import MetricValue, by_interest
from trainer.progress.samples import MetricId, Sample

_BRAILLE = 0x2800
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bit of a dot by its column and row in the cell (Unicode, "Braille Patterns")."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """Draws lines of Braille dots, or of asterisks in ASCII."""

    width: int
    height: int
    ascii_only: bool = False
    """Whether a cell is one dot. Default: 2 by 4 dots."""

    @property
    def columns(self) -> int:
        """Dots from left to right."""
        return self.width if self.ascii_only else 2 * self.width

    @property
    def rows(self) -> int:
        """Dots from bottom to top."""
        return self.height if self.ascii_only else 4 * self.height

    def draw(self, points: Sequence[tuple[float, float]]) -> list[str]:
        """The lines of a chart through points in the order of their x, scaled to fill it."""
        cells = [[0] * self.width for _ in range(self.height)]
        before: tuple[int, int] | None = None
        for column, row in self._dots(points):
            for x, y in _line(before or (column, row), (column, row)):
                self._set(cells, x, y)
            before = column, row
        return ["".join(map(self._character, line)) for line in cells]

    def _dots(self, points: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
        """One dot for each column with points, at the mean of their y."""
        if not points:
            return []
        left, right = points[0][0], points[-1][0]
        by_column: dict[int, list[float]] = {}
        for x, y in points:
            column = 0 if right <= left else int((x - left) / (right - left) * (self.columns - 1) + 0.5)
            by_column.setdefault(min(max(column, 0), self.columns - 1), []).append(y)
        means = {column: mean(ys) for column, ys in sorted(by_column.items())}
        low, high = min(means.values()), max(means.values())
        return [(column, self._row(mean, low, high)) for column, mean in means.items()]

    def _row(self, value: float, low: float, high: float) -> int:
        if high <= low:
            return self.rows // 2
        # Halved, since the difference of the greatest floats overflows.
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


_HEIGHT = 4
_WIDEST, _NARROWEST = 60, 36
_GAP = 3


def charts(series: Mapping[MetricId, Sequence[Sample]], width: int, *, ascii_only: bool = False) -> list[Text]:
    """Charts of all metrics by interest, as many side by side as fit."""
    lines: list[Text] = []
    for is_eval, title in ((False, "Training"), (True, "Evaluation")):
        metrics = [
            MetricValue(each.name, samples[-1].value, is_eval)
            for each, samples in series.items()
            if each.is_eval == is_eval
        ]
        if not metrics:
            continue
        ordered = [series[MetricId(is_eval, metric.name)] for metric in by_interest(metrics)]
        lines += [Text(), Text(title, style="bold")] if lines else [Text(title, style="bold")]
        lines += _grid(ordered, width, ascii_only=ascii_only)
    return lines


def _grid(series: Sequence[Sequence[Sample]], width: int, *, ascii_only: bool) -> Iterator[Text]:
    columns = max((width + _GAP) // (_NARROWEST + _GAP), 1)
    columns = min(columns, len(series))
    chart_width = min((width - _GAP * (columns - 1)) // columns, _WIDEST)
    for start in range(0, len(series), columns):
        row = [list(_chart(each, chart_width, ascii_only=ascii_only)) for each in series[start : start + columns]]
        if start:
            yield Text()
        for texts in zip(*row, strict=True):
            line = Text()
            for text in texts:
                line.append(" " * _GAP if line.cell_len else "").append_text(text)
                line.append(" " * (chart_width - text.cell_len))
            line.rstrip()
            yield line


def _chart(samples: Sequence[Sample], width: int, *, ascii_only: bool) -> Iterator[Text]:
    """Name and last value, the line with its greatest and least value, and the ends of its axis."""
    values = [float(sample.value) for sample in samples]
    high, low = (samples[values.index(pick(values))].value for pick in (max, min))
    labels = [short_value(high), *[""] * (_HEIGHT - 2), short_value(low)]
    margin = max(map(len, labels)) + 1
    last = f"last {short_value(samples[-1].value)}"
    name = Text(printable(samples[-1].metric.name), style="cyan")
    name.truncate(width - len(last) - 1, overflow="ellipsis" if not ascii_only else "crop")
    yield name.append(" " * max(width - name.cell_len - len(last), 1)).append(last, style="default")
    xs, left, right = _axis(samples)
    canvas = Canvas(max(width - margin, 1), _HEIGHT, ascii_only=ascii_only)
    for label, dots in zip(labels, canvas.draw(list(zip(xs, values, strict=True))), strict=True):
        yield Text(f"{label:>{margin - 1}} ", style="dim").append(dots, style="not dim green")
    yield Text(f"{'':{margin}}{left}{right:>{max(width - margin - len(left), 1)}}", style="dim")


def _axis(samples: Sequence[Sample]) -> tuple[list[float], str, str]:
    """Steps if all samples have one and they grow, else epochs likewise, else time."""
    for name, counts in (("step", [each.step for each in samples]), ("epoch", [each.epoch for each in samples])):
        known = [count for count in counts if count is not None]
        if len(known) == len(samples) and known == sorted(known) and (known[0] < known[-1] or len(known) == 1):
            return [float(count) for count in known], f"{name} {known[0]}", str(known[-1])
    start = samples[0].time
    seconds = [
        sample.time.seconds - start.seconds + (sample.time.nanoseconds - start.nanoseconds) / 1e9 for sample in samples
    ]
    return seconds, start.moment.strftime("%H:%M:%S"), f"+{duration(seconds[-1])}"
