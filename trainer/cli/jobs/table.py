"""TrainJobs as a table: one line each, with a bar, the remaining time and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from rich.text import Text

from trainer.cli.columns import GAP, elided, fitted, total
from trainer.cli.console import printable, short_duration
from trainer.cli.jobs.progress import metric_text, metrics_in, progress_bar, short_remaining
from trainer.cli.jobs.state import STATE_STYLES, JobState
from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import Object
from trainer.progress.interest import MetricValue, by_interest
from trainer.view.progress import TrainingProgress
from trainer.view.row import TrainJobRow

_BAR = 10
_FEW = 3
"""Most metrics in a line."""
_METRICS, _MESSAGE = "METRICS", "MESSAGE"
_FIRST_METRIC = 20
"""Cells that the most interesting metric gets before other columns do."""
_SPANNED = ("PROGRESS", "ETA", "STEP", "EPOCH", _METRICS)
"""Columns across which the message of a TrainJob stands that does not train; its progress stays."""
_TROUBLED = ("Failed", "Blocked", "Pending", "Stopping")
"""States with such a message."""
_LONGEST_MESSAGE = 80
_SHORTEST = {"NAMESPACE": 12, "NAME": 24, "RUNTIME": 14}
"""Columns whose texts are cut, and the cells that they keep while other columns can go."""
_DISPENSABLE = ("UPDATED", "EPOCH", "CHECKPOINT", "STEP", "NODES", "RUNTIME", "AGE")
"""Columns that can go, the first one first."""


@dataclass(slots=True)
class JobTable:
    """Lays out TrainJobs in columns, which become narrower only to fit, so that later lines fit below earlier ones."""

    width: int | None = None
    """Width of the terminal, which lines fit; None: no limit."""
    with_namespace: bool = False
    """Whether the first column is the namespace."""
    is_wide: bool = False
    """Whether to show all columns and metrics that fit."""
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
        rows, widths = self._laid_out(shown, now)
        if _METRICS in widths:
            room = None if self.width is None else self.width - total(widths) + widths[_METRICS]
            for row, (_, state) in zip(rows, shown, strict=True):
                row[_METRICS] = Text(metrics_in(self._metrics(state.progress), room, ascii_only=self.ascii_only))
            needed = max((_missing(row, widths) for row in rows), default=0)
            widths[_METRICS] = max(_widest(_METRICS, rows), needed if room is None else min(needed, room))
        former = {title: max(width, self._widths.get(title, 0)) for title, width in widths.items()}
        self._widths = former if self.width is None or total(former) <= self.width else widths
        titles = [{title: Text(title) for title in widths}] if header else []
        return [self._line(row) for row in titles + rows]

    def _laid_out(
        self, shown: Sequence[tuple[TrainJobRow, JobState]], now: datetime
    ) -> tuple[list[dict[str, Text]], dict[str, int]]:
        """The rows, shortened until they fit, and the widths of the columns that stay.

        First columns go that are empty for everybody, then the bar and the sentence of a training that is silent.
        """
        rows = [self._cells(row, state, now) for row, state in shown]
        widths = {title: _widest(title, rows) for title in self._titles()}
        if self.width is None or total(widths) <= self.width:
            return rows, widths
        said = {_METRICS} if any(_MESSAGE in row for row in rows) else set()
        widths = {title: width for title, width in widths.items() if title in said or any(row[title] for row in rows)}
        for title, shorter in (("PROGRESS", _percentage), ("ETA", partial(_eta, has_sentence=False))):
            if total(widths) > self.width and title in widths:
                for row, (_, state) in zip(rows, shown, strict=True):
                    row[title] = shorter(state, now)
                widths[title] = _widest(title, rows)
        return rows, fitted(widths, self.width, _SHORTEST, _DISPENSABLE)

    def _titles(self) -> Sequence[str]:
        namespace = ["NAMESPACE"] if self.with_namespace else []
        details = ["EPOCH", _METRICS, "UPDATED", "CHECKPOINT", "NODES", "RUNTIME"] if self.is_wide else [_METRICS]
        return [*namespace, "NAME", "STATE", "PROGRESS", "ETA", "STEP", *details, "AGE"]

    def _cells(self, row: TrainJobRow, state: JobState, now: datetime) -> dict[str, Text]:
        step, progress = state.step, state.shown
        epochs = f"epoch {progress.epochs}" if progress.epochs else ""
        updated = _ago(progress.updated, now) if progress.updated else ""
        last = state.progress.checkpoint
        checkpoint = f"{last.step}, {_ago(last.saved, now)}" if last is not None else ""
        metric = Text(next(map(metric_text, self._metrics(state.progress)), ""))
        metric.truncate(_FIRST_METRIC)
        message = state.explanation if state.word in _TROUBLED else ""
        return ({_MESSAGE: Text(message)} if message else {}) | {
            "NAMESPACE": Text(row.namespace),
            "NAME": Text(row.name),
            "STATE": Text(printable(state.word), style=STATE_STYLES.get(state.word, "default")),
            "PROGRESS": self._bar(progress.percentage),
            "ETA": _eta(state, now),
            "STEP": Text(step.name if step is not None else progress.steps or ("" if self.is_wide else epochs)),
            "EPOCH": Text(progress.epochs),
            _METRICS: metric,
            "UPDATED": Text(updated),
            "CHECKPOINT": Text(checkpoint),
            "NODES": Text(str(row.nodes or "")),
            "RUNTIME": Text(printable(row.runtime)),
            "AGE": Text(age(row.created, now)),
        }

    def _bar(self, percentage: int | None) -> Text:
        if percentage is None:
            return Text()
        return progress_bar(percentage, _BAR, ascii_only=self.ascii_only).append(f" {percentage:3}%", style="default")

    def _metrics(self, progress: TrainingProgress) -> Sequence[MetricValue]:
        metrics = by_interest(progress.metrics)
        return metrics if self.is_wide else metrics[:_FEW]

    def _line(self, row: dict[str, Text]) -> Text:
        line = Text()
        spanned = [title for title in _spanned(row) if title in self._widths]
        titles = [title for title in self._widths if title not in spanned[1:]]
        for title in titles:
            cell, width = row[title], self._widths[title]
            if title in spanned:
                cell, width = row[_MESSAGE].copy(), total({each: self._widths[each] for each in spanned})
                cell.truncate(width, overflow="crop" if self.ascii_only else "ellipsis")
            elif cell.cell_len > width:
                cell = Text(elided(cell.plain, width, ascii_only=self.ascii_only), style=cell.style)
            line.append_text(cell)
            if title != titles[-1]:
                line.append(" " * (width - cell.cell_len + GAP))
        line.rstrip()
        if self.width is not None:
            line.truncate(self.width, overflow="crop" if self.ascii_only else "ellipsis")
        return line


def _widest(title: str, rows: Sequence[dict[str, Text]]) -> int:
    return max(len(title), *(row[title].cell_len for row in rows)) if rows else len(title)


def _spanned(row: dict[str, Text]) -> Sequence[str]:
    if _MESSAGE not in row:
        return ()
    return _SPANNED[1:] if row["PROGRESS"] else _SPANNED


def _missing(row: dict[str, Text], widths: Mapping[str, int]) -> int:
    """Cells of the last column that a message needs beside those of the others."""
    others = {title: widths[title] for title in _spanned(row)[:-1] if title in widths}
    message = row.get(_MESSAGE, Text()).cell_len
    return min(message, _LONGEST_MESSAGE) - total({**others, _METRICS: 0})


def _percentage(state: JobState, now: datetime) -> Text:  # noqa: ARG001 - as _eta
    percentage = state.shown.percentage
    return Text() if percentage is None else Text(f"{percentage:7}%")


def _eta(state: JobState, now: datetime, *, has_sentence: bool = True) -> Text:
    """The remaining time, else for how long a training that reports usually has not done so."""
    progress = state.shown
    if not state.is_going_on:
        return Text()
    if progress.silence and progress.updated is not None:
        said = "no report for" if has_sentence else "silent"
        return Text(f"{said} {short_duration((now - progress.updated).total_seconds())}", style="bold yellow")
    return Text(short_remaining(progress))


def _ago(moment: datetime, now: datetime) -> str:
    return f"{short_duration((now - moment).total_seconds())} ago"


def age(created: str | None, now: datetime) -> str:
    """The age of an object by its creationTimestamp; empty when unknown."""
    return short_duration((now - parse_timestamp(created)).total_seconds()) if created else ""
