"""Trainings of the history as tables and details."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from trainer.cli.console import columns, note, printable, short_duration
from trainer.cli.jobs.details import details
from trainer.cli.jobs.progress import short_value
from trainer.cli.jobs.state import STATE_STYLES
from trainer.progress.interest import MetricValue, by_interest, label
from trainer_dashboard.history.queries import History, TrainingRecord

_UID = 8
"""Characters of a uid that are shown; they tell trainings of one name apart."""
_METRICS = 2
_TITLES = ("UID", "NAMESPACE", "NAME", "STATE", "CREATED (UTC)", "TOOK", "NODES", "RUNTIME", "METRICS", "BY")
_STATE = _TITLES.index("STATE")
_EVENTS = 20


def past_table(records: Sequence[TrainingRecord]) -> Iterator[Text]:
    """Trainings below each other, with a header."""
    rows = [_TITLES, *map(_row, records)]
    for index, line in enumerate(columns(rows)):
        text = Text(line)
        if index:
            text.highlight_words([rows[index][_STATE]], STATE_STYLES.get(records[index - 1].state, "default"))
        yield text


def _row(record: TrainingRecord) -> tuple[str, ...]:
    metrics = by_interest([MetricValue(*metric) for metric in record.metrics])[:_METRICS]
    seconds = record.seconds
    return (
        record.uid[:_UID],
        printable(record.namespace),
        printable(record.name),
        printable(record.state) + ("" if record.deleted is None or record.ended is not None else ", deleted"),
        _minute(record.created),
        "" if seconds is None else short_duration(seconds),
        "" if record.nodes is None else str(record.nodes),
        printable(record.runtime),
        "  ".join(f"{printable(label(metric))} {printable(short_value(metric.value))}" for metric in metrics),
        printable(record.creator),
    )


def past_details(history: History, record: TrainingRecord) -> Iterator[Text]:
    """One training: its row, what `trainer get NAME` would have said of it, and its events."""
    yield from past_table([record])
    yield Text()
    yield from _labelled("Image", record.image)
    version = f", {record.runtime_version}" if record.runtime_version else ""
    yield from _labelled("Runtime", f"{record.runtime_kind} {record.runtime}{version}")
    yield from _labelled("Deleted", moment(record.deleted) if record.deleted is not None else "")
    if record.forgotten is not None:
        yield from _labelled("Forgotten", f"all but this, {moment(record.forgotten)}")
    job = history.document(record.uid, "trainjob")
    if job is not None:
        yield from details(job, datetime.now(UTC))
    for index, event in enumerate(history.events(record.uid)[:_EVENTS]):
        text = printable(f"{event.last}Z  {event.object}  {event.reason}: {event.message}")
        yield Text(f"{'Events' if not index else '':<14}", style="bold").append(text, style="not bold default")


def _labelled(name: str, text: str) -> Iterator[Text]:
    if text:
        yield Text(f"{name:<14}", style="bold").append(printable(text), style="not bold default")


def moment(seconds: float) -> str:
    """A time to the minute, with its zone."""
    minute = _minute(seconds)
    return f"{minute} UTC" if minute else ""


def _minute(seconds: float) -> str:
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
    return {name: getattr(record, name) for name in texts} | times | {"runtime": runtime, "metrics": metrics}
