"""TrainJobs as a table: one line each, with a bar, the remaining time and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rich.text import Text

from trainer.cli.console import printable, short_duration
from trainer.cli.jobs.progress import in_room, progress_bar, short_remaining, short_value
from trainer.cli.jobs.state import STATE_STYLES, JobState
from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import Object
from trainer.progress.interest import by_interest, label
from trainer.view.progress import TrainingProgress
from trainer.view.row import TrainJobRow

_GAP = 2
_BAR = 10
_FEW = 3
"""Most metrics in a line."""
_METRICS = "METRICS"


@dataclass(slots=True)
class JobTable:
    """Lays out TrainJobs in columns, which never become narrower, so that later lines fit below earlier ones."""

    width: int | None = None
    """Width of the terminal, which limits the metrics; None: no limit."""
    with_namespace: bool = False
    """Whether the first column is the namespace."""
    is_wide: bool = False
    """Whether to show all columns and metrics."""
    ascii_only: bool = False
    """Whether the terminal is limited to ASCII."""
    is_growing: bool = False
    """Whether lines are printed one by one as jobs change, so that columns need room in advance."""
    _widths: dict[str, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.is_growing:
            self._widths.update({"STATE": 10, "PROGRESS": _BAR + 5, "ETA": 5, "STEP": 11})

    def lines(self, jobs: Iterable[Object], now: datetime, *, header: bool = True) -> list[Text]:
        """The table, its header first."""
        shown = [(row, JobState.of_row(row)) for row in map(TrainJobRow.of, jobs)]
        rows = [self._cells(row, state, now) for row, state in shown]
        titles = {title: Text(title) for title in self._titles()}
        self._widen([titles, *rows])
        for row, (_, state) in zip(rows, shown, strict=True):
            row[_METRICS] = Text(self._metrics(state.progress))
        self._widen([{_METRICS: row[_METRICS]} for row in [titles, *rows]])
        return [self._line(row) for row in ([titles] if header else []) + rows]

    def _widen(self, rows: Iterable[dict[str, Text]]) -> None:
        for row in rows:
            for title, cell in row.items():
                self._widths[title] = max(self._widths.get(title, 0), cell.cell_len)

    def _titles(self) -> Sequence[str]:
        namespace = ["NAMESPACE"] if self.with_namespace else []
        details = ["EPOCH", _METRICS, "UPDATED", "NODES", "RUNTIME"] if self.is_wide else [_METRICS]
        return [*namespace, "NAME", "STATE", "PROGRESS", "ETA", "STEP", *details, "AGE"]

    def _cells(self, row: TrainJobRow, state: JobState, now: datetime) -> dict[str, Text]:
        step, progress = state.step, state.shown
        epochs = f"epoch {progress.epochs}" if progress.epochs else ""
        updated = f"{short_duration((now - progress.updated).total_seconds())} ago" if progress.updated else ""
        cells = {
            "NAMESPACE": Text(row.namespace),
            "NAME": Text(row.name),
            "STATE": Text(printable(state.word), style=STATE_STYLES.get(state.word, "default")),
            "PROGRESS": self._progress(progress.percentage),
            "ETA": _eta(progress, now) if state.is_going_on else Text(),
            "STEP": Text(step.name if step is not None else progress.steps or ("" if self.is_wide else epochs)),
            "EPOCH": Text(progress.epochs),
            _METRICS: Text(),
            "UPDATED": Text(updated),
            "NODES": Text(str(row.nodes or "")),
            "RUNTIME": Text(printable(row.runtime)),
            "AGE": Text(age(row.created, now)),
        }
        return {title: cells[title] for title in self._titles()}

    def _progress(self, percentage: int | None) -> Text:
        if percentage is None:
            return Text()
        return progress_bar(percentage, _BAR, ascii_only=self.ascii_only).append(f" {percentage:3}%", style="default")

    def _metrics(self, progress: TrainingProgress) -> str:
        """All metrics, or as many of the most interesting as fit."""
        metrics = by_interest(progress.metrics)
        if self.is_wide:
            return "  ".join(f"{label(metric)} {metric.value}" for metric in metrics)
        others = [width for title, width in self._widths.items() if title != _METRICS]
        room = None if self.width is None else self.width - sum(others) - _GAP * len(others)
        return in_room((f"{label(metric)} {short_value(metric.value)}" for metric in metrics[:_FEW]), room)

    def _line(self, row: dict[str, Text]) -> Text:
        line = Text()
        titles = self._titles()
        for title in titles:
            line.append_text(row[title])
            if title != titles[-1]:
                line.append(" " * (self._widths[title] - row[title].cell_len + _GAP))
        return line


def _eta(progress: TrainingProgress, now: datetime) -> Text:
    """The remaining time, else for how long a training that reports usually has not done so."""
    if progress.silence and progress.updated is not None:
        return Text(f"no report for {short_duration((now - progress.updated).total_seconds())}", style="bold yellow")
    return Text(short_remaining(progress))


def age(created: str | None, now: datetime) -> str:
    """The age of an object by its creationTimestamp; empty when unknown."""
    return short_duration((now - parse_timestamp(created)).total_seconds()) if created else ""
