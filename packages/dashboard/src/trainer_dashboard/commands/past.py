"""Trainings of the history as tables and details."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from trainer.api.optimization import in_words
from trainer.cli.columns import columns, elided, fitted
from trainer.cli.console import note, printable, short_duration, terminal_width
from trainer.cli.jobs.details import details
from trainer.cli.jobs.progress import metrics_in
from trainer.cli.jobs.state import STATE_STYLES
from trainer.cli.processes.state_directory import existing_clusters
from trainer.progress.interest import MetricValue, by_interest
from trainer_dashboard.history.queries import History, TrainingRecord

_UID = 8
"""Characters of a uid that are shown; they tell trainings of one name apart."""
_CLUSTER = 40
"""Characters of the identity of a cluster, which may be an address."""
_METRICS = 2
_TITLES = ("UID", "NAMESPACE", "NAME", "STATE", "CREATED (UTC)", "TOOK", "NODES", "RUNTIME", "METRICS", "BY")
_SHORTEST = {"NAMESPACE": 12, "NAME": 24, "RUNTIME": 14, "METRICS": 20, "BY": 10}
"""Columns whose texts are cut, and the cells that they keep while other columns can go."""
_DISPENSABLE = ("BY", "NODES", "RUNTIME", "UID", "TOOK")
"""Columns that can go, the first one first."""
_EVENTS = 20


def past_table(records: Sequence[TrainingRecord], console: Console) -> Iterator[Text]:
    """Trainings below each other, with a header; on a terminal as many columns as fit.

    Those of several clusters have a column that tells which.
    """
    rows = [_row(record) for record in records]
    titles: tuple[str, ...] = _TITLES
    if len({record.cluster for record in records}) > 1:
        titles = (*_TITLES, "CLUSTER")
        contexts = {state.identity(): state.context for state in existing_clusters()}
        for row, record in zip(rows, records, strict=True):
            row["CLUSTER"] = contexts.get(record.cluster, printable(record.cluster)[:_CLUSTER])
    widths = {title: max(cell_len(each) for each in (title, *(row[title] for row in rows))) for title in titles}
    kept = fitted(widths, terminal_width(console), _SHORTEST, _DISPENSABLE)
    ascii_only = console.options.ascii_only
    for row, record in zip(rows, records, strict=True):
        row["METRICS"] = metrics_in(_metrics(record), kept["METRICS"], ascii_only=ascii_only)
    header = dict(zip(titles, titles, strict=True))
    shown = [
        [elided(row[title], width, ascii_only=ascii_only) for title, width in kept.items()] for row in (header, *rows)
    ]
    for index, line in enumerate(columns(shown)):
        text = Text(line)
        if index:
            text.highlight_words([rows[index - 1]["STATE"]], STATE_STYLES.get(records[index - 1].state, "default"))
        yield text


def _row(record: TrainingRecord) -> dict[str, str]:
    seconds = record.seconds
    cells = (
        record.uid[:_UID],
        printable(record.namespace),
        printable(record.name),
        printable(record.state) + ("" if record.deleted is None or record.ended is not None else ", deleted"),
        minute(record.created),
        "" if seconds is None else short_duration(seconds),
        "" if record.nodes is None else str(record.nodes),
        printable(record.runtime),
        metrics_in(_metrics(record), None),
        printable(record.creator),
    )
    return dict(zip(_TITLES, cells, strict=True))


def _metrics(record: TrainingRecord) -> list[MetricValue]:
    metrics = [MetricValue(printable(each.name), printable(each.value), each.is_eval) for each in record.metrics]
    return by_interest(metrics)[:_METRICS]


def past_details(history: History, record: TrainingRecord, console: Console) -> Iterator[Text]:
    """One training: its row, what `trainer get NAME` would have said of it, and its events."""
    yield from past_table([record], console)
    yield Text()
    yield from labelled("Image", record.image)
    yield from labelled("Sweep", f"{record.sweep}, trial {record.trial}" if record.sweep is not None else "")
    yield from labelled("Parameters", in_words(record.assignment))
    version = f", {record.runtime_version}" if record.runtime_version else ""
    yield from labelled("Runtime", f"{record.runtime_kind} {record.runtime}{version}")
    yield from labelled("Deleted", moment(record.deleted) if record.deleted is not None else "")
    if record.forgotten is not None:
        yield from labelled("Forgotten", f"all but this, {moment(record.forgotten)}")
    job = history.document(record.uid, "trainjob")
    if job is not None:
        yield from details(job, datetime.now(UTC), console, is_gone=record.deleted is not None)
    for index, event in enumerate(history.events(record.uid)[:_EVENTS]):
        text = printable(f"{event.last}Z  {event.object}  {event.reason}: {event.message}")
        yield Text(f"{'Events' if not index else '':<14}", style="bold").append(text, style="not bold default")


def labelled(name: str, text: str) -> Iterator[Text]:
    """A line of details; none where there is no text."""
    if text:
        yield Text(f"{name:<14}", style="bold").append(printable(text), style="not bold default")


def moment(seconds: float) -> str:
    """A time to the minute, with its zone."""
    text = minute(seconds)
    return f"{text} UTC" if text else ""


def minute(seconds: float) -> str:
    """A time in UTC; empty if it is none."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return ""


def say_gone(record: TrainingRecord) -> None:
    """Say that an answer is from the history."""
    if record.deleted is None:
        note(f"this is what the history has of TrainJob {record.name}, whose pods are gone ({record.uid[:_UID]})")
    else:
        when = moment(record.deleted)
        note(f"TrainJob {record.name} is gone since {when}; this is from the history ({record.uid[:_UID]})")


def past_object(record: TrainingRecord) -> dict[str, Any]:
    """A training as JSON, with times as texts."""
    times = {
        name: None if (value := getattr(record, name)) is None else datetime.fromtimestamp(value, UTC).isoformat()
        for name in ("created", "started", "ended", "deleted", "forgotten")
    }
    texts = (
        "uid",
        "cluster",
        "namespace",
        "name",
        "state",
        "reason",
        "message",
        "image",
        "nodes",
        "creator",
        "progress",
    )
    runtime = {"kind": record.runtime_kind, "name": record.runtime, "version": record.runtime_version}
    metrics = [{"name": m.name, "value": m.value, "kind": "eval" if m.is_eval else "train"} for m in record.metrics]
    trial = {"sweep": record.sweep, "trial": record.trial, "parameters": record.assignment}
    own = trial if record.sweep is not None else {}
    return {name: getattr(record, name) for name in texts} | times | {"runtime": runtime, "metrics": metrics} | own
