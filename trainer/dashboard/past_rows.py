"""What the dashboard shows of a training that has ended or is gone: a row of the history, and what its page has."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trainer.dashboard.curves import CurveReader
from trainer.dashboard.rows import page_of
from trainer.progress.interest import MetricValue, by_interest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.history.queries import LogTail, RecordedEvent, TrainingRecord
    from trainer.kube.objects import Object
    from trainer.progress.curves import Curves


def past_row(record: TrainingRecord) -> Object:
    """A training in the list of the history."""
    metric = next(iter(by_interest([MetricValue(*metric) for metric in record.metrics])), None)
    texts = ("uid", "namespace", "name", "state", "reason", "message", "runtime", "image", "nodes", "progress")
    return {name: getattr(record, name) for name in texts} | {
        "runtimeKind": record.runtime_kind,
        "runtimeVersion": record.runtime_version,
        "owner": record.creator,
        "created": _time(record.created),
        "started": _time(record.started),
        "ended": _time(record.ended),
        "deleted": _time(record.deleted),
        "forgotten": _time(record.forgotten),
        "seconds": record.seconds,
        "metric": metric and {"name": metric.name, "isEval": metric.is_eval, "value": metric.value},
    }


def past_page(record: TrainingRecord, job: Object | None) -> Object:
    """A training on its page: its row, and the TrainJob as it was last, where it was kept."""
    return {"training": past_row(record), "job": page_of(job) if job is not None else None}


def past_curves(curves: Curves) -> Object:
    """The samples of its metrics."""
    return CurveReader(curves).news() or {"isReset": True, "series": []}


def past_logs(tails: Sequence[LogTail]) -> Object:
    """The last lines of its containers; those that train come first."""
    ordered = sorted(tails, key=lambda tail: (not tail.is_training, tail.node, tail.container))
    return {
        "logs": [
            {
                "node": tail.node,
                "container": tail.container,
                "pod": tail.pod,
                "lines": [line.partition(" ")[::2] for line in tail.lines],
            }
            for tail in ordered
        ]
    }


def past_events(events: Sequence[RecordedEvent]) -> Object:
    """The events about it, the newest first, as the page of a TrainJob shows them."""
    return {
        "events": [
            {
                "uid": str(number),
                "type": event.type,
                "reason": event.reason,
                "message": event.message,
                "object": event.object,
                "count": 1,
                "last": event.last,
            }
            for number, event in enumerate(events)
        ]
    }


def _time(seconds: float | None) -> str | None:
    """A time as Kubernetes writes it; None for none, and for a number of a damaged row that is no time."""
    try:
        return None if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return None
