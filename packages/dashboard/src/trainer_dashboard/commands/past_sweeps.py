"""Sweeps of the history as tables, details and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from trainer.api.optimization import in_words
from trainer.cli.columns import columns, elided, fitted
from trainer.cli.console import printable, short_duration, terminal_width
from trainer.cli.jobs.state import STATE_STYLES
from trainer.kube.objects import Object, mapping_at
from trainer_dashboard.commands.past import labelled, minute, moment
from trainer_dashboard.history.queries import TrainingRecord
from trainer_dashboard.history.sweep_queries import SweepHistory, SweepRecord
from trainer_dashboard.history.training import seconds
from trainer_dashboard.sweep.trials import trial_of, trials_of

_SHORTEST: Final = {"NAMESPACE": 12, "NAME": 24, "BEST": 20, "PARAMETERS": 20, "MESSAGE": 20}
"""Columns whose texts are cut, and the cells that they keep while other columns can go."""
_DISPENSABLE: Final = ("ALGORITHM", "MESSAGE", "UID", "TOOK")
"""Columns that can go, the first one first."""
_UID: Final = 8


def sweep_table(records: Sequence[SweepRecord], console: Console) -> Iterator[Text]:
    """Sweeps below each other, with a header; on a terminal as many columns as fit."""
    yield from _table([_row(record) for record in records], [record.state for record in records], console)


def sweep_details(history: SweepHistory, record: SweepRecord, console: Console) -> Iterator[Text]:
    """One sweep: its row, how it ended, and its trials by number, the best one marked."""
    yield from sweep_table([record], console)
    yield Text()
    yield from labelled("Objective", f"{record.direction} {record.metric}")
    yield from labelled("Message", ": ".join(filter(None, (record.reason, record.message))))
    yield from labelled("Deleted", moment(record.deleted) if record.deleted is not None else "")
    trials = past_trials(history, record)
    if not trials:
        return
    yield Text()
    by_uid = {each.uid: each for each in history.trials(record)}
    rows = [_trial_row(trial, by_uid.get(trial["uid"]), record) for trial in trials]
    yield from _table(rows, [trial["state"] for trial in trials], console)


def past_trials(history: SweepHistory, record: SweepRecord) -> list[Object]:
    """The trials as a page shows them, by number: what the status has recorded, and what is kept of their TrainJobs."""
    sweep = history.object_of(record.uid)
    spec = mapping_at(sweep, "spec")
    return trials_of(sweep, filter(None, (trial_of(spec, job) for job in history.train_jobs(record))))


def sweep_object(record: SweepRecord) -> dict[str, Any]:
    """A sweep as JSON, with times as texts."""
    times = {
        name: None if (value := getattr(record, name)) is None else datetime.fromtimestamp(value, UTC).isoformat()
        for name in ("created", "started", "ended", "deleted")
    }
    texts = ("uid", "cluster", "namespace", "name", "state", "reason", "message", "metric", "direction", "algorithm")
    counts = {name: getattr(record, name) for name in ("trials", "running", "succeeded", "failed", "pruned")}
    best = {"trainJob": record.best, "value": record.value} if record.best else None
    return {name: getattr(record, name) for name in texts} | times | counts | {"best": best}


def _row(record: SweepRecord) -> dict[str, str]:
    took = record.seconds
    best = f"{record.best.removeprefix(f'{record.name}-')} {record.metric}={record.value}" if record.best else ""
    has_counts = record.succeeded is not None
    return {
        "UID": record.uid[:_UID],
        "NAMESPACE": printable(record.namespace),
        "NAME": printable(record.name),
        "STATE": printable(record.state) + ("" if record.deleted is None or record.ended is not None else ", deleted"),
        "TRIALS": (f"{record.over}/" if has_counts else "") + str(record.trials or 1),
        "FAILED": "" if record.failed is None else str(record.failed),
        "PRUNED": "" if record.pruned is None else str(record.pruned),
        "BEST": printable(best),
        "ALGORITHM": printable(record.algorithm),
        "CREATED (UTC)": minute(record.created),
        "TOOK": "" if took is None else short_duration(took),
    }


def _trial_row(trial: Object, training: TrainingRecord | None, record: SweepRecord) -> dict[str, str]:
    took = _seconds(trial, training)
    assignment = training.assignment if training is not None else {}
    known = in_words(assignment) or ", ".join(filter(None, trial["parameters"]))
    return {
        "TRIAL": f"{trial['number']}{'*' if trial['name'] == record.best else ''}",
        "STATE": printable(trial["state"]),
        record.metric.upper() or "VALUE": printable(trial["valueText"]),
        "STEP": "" if trial["step"] is None else str(trial["step"]),
        "PARAMETERS": printable(known),
        "TOOK": "" if took is None else short_duration(took),
        "MESSAGE": printable(trial["message"].partition("\n")[0]),
    }


def _seconds(trial: Object, training: TrainingRecord | None) -> float | None:
    """How long a trial ran: of a pruned one, whose TrainJob never ends, until it was suspended."""
    started, ended = seconds(trial["started"]), seconds(trial["ended"])
    if started is not None and ended is not None:
        return max(ended - started, 0)
    return training.seconds if training is not None else None


def _table(rows: Sequence[dict[str, str]], states: Sequence[str], console: Console) -> Iterator[Text]:
    titles = [title for title in rows[0] if any(row[title] for row in rows)]
    widths = {title: max(cell_len(each) for each in (title, *(row[title] for row in rows))) for title in titles}
    kept = fitted(widths, terminal_width(console), _SHORTEST, _DISPENSABLE)
    ascii_only = console.options.ascii_only
    header = dict(zip(titles, titles, strict=True))
    shown = [
        [elided(row[title], width, ascii_only=ascii_only) for title, width in kept.items()] for row in (header, *rows)
    ]
    for index, line in enumerate(columns(shown)):
        text = Text(line)
        if index:
            text.highlight_words([rows[index - 1]["STATE"]], STATE_STYLES.get(states[index - 1], "default"))
        yield text
