"""Metrics of a training as charts side by side, those of training and of evaluation apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from trainer.cli.console import duration, printable
from trainer.cli.jobs.metric_order import by_interest, short_value
from trainer.cli.jobs.progress import Metric
from trainer.cli.metrics.canvas import Canvas
from trainer.cli.metrics.samples import Series

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trainer.cli.metrics.samples import Sample

_HEIGHT = 4
_WIDEST, _NARROWEST = 60, 36
_GAP = 3


def charts(series: Mapping[Series, Sequence[Sample]], width: int, *, ascii_only: bool = False) -> list[Text]:
    """All metrics, the most telling first, as many charts side by side as there is room for."""
    lines: list[Text] = []
    for is_eval, title in ((False, "Training"), (True, "Evaluation")):
        metrics = [
            Metric(each.name, samples[-1].value, is_eval) for each, samples in series.items() if each.is_eval == is_eval
        ]
        if not metrics:
            continue
        ordered = [series[Series(is_eval, metric.name)] for metric in by_interest(metrics)]
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
    """Name and last value, the line with its greatest and least value, and what is at its ends."""
    values = [float(sample.value) for sample in samples]
    high, low = (samples[values.index(pick(values))].value for pick in (max, min))
    labels = [short_value(high), *[""] * (_HEIGHT - 2), short_value(low)]
    margin = max(map(len, labels)) + 1
    last = f"last {short_value(samples[-1].value)}"
    name = Text(printable(samples[-1].name), style="cyan")
    name.truncate(width - len(last) - 1, overflow="ellipsis" if not ascii_only else "crop")
    yield name.append(" " * max(width - name.cell_len - len(last), 1)).append(last, style="default")
    xs, left, right = _axis(samples)
    canvas = Canvas(max(width - margin, 1), _HEIGHT, ascii_only=ascii_only)
    for label, dots in zip(labels, canvas.draw(list(zip(xs, values, strict=True))), strict=True):
        yield Text(f"{label:>{margin - 1}} ", style="dim").append(dots, style="not dim green")
    yield Text(f"{'':{margin}}{left}{right:>{max(width - margin - len(left), 1)}}", style="dim")


def _axis(samples: Sequence[Sample]) -> tuple[list[float], str, str]:
    """Steps where all samples have some and they grow, else time."""
    steps = [sample.step for sample in samples if sample.step is not None]
    if len(steps) == len(samples) and steps == sorted(steps) and (steps[0] < steps[-1] or len(steps) == 1):
        return [float(step) for step in steps], f"step {steps[0]}", str(steps[-1])
    start = samples[0].time
    seconds = [
        sample.time.seconds - start.seconds + (sample.time.nanoseconds - start.nanoseconds) / 1e9 for sample in samples
    ]
    return seconds, start.moment.strftime("%H:%M:%S"), f"+{duration(seconds[-1])}"
