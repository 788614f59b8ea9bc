"""What the dashboard shows of a training that has ended or is gone: a row of the history, and what its page has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from trainer.kube.objects import Object
from trainer.progress.interest import MetricValue, by_interest
from trainer_dashboard.history.queries import History, RecordedEvent, TrainingRecord
from trainer_dashboard.live.curves import SAMPLES, CurveReader
from trainer_dashboard.live.rows import page_of
from trainer_dashboard.recipe.recipe import recipe_of

LOGS: Final = 16
"""Containers whose last lines are shown side by side; a training may have thousands, of 64 KiB each."""


def past_row(record: TrainingRecord) -> Object:
    """A training in the list of the history."""
    metric = next(iter(by_interest([MetricValue(*metric) for metric in record.metrics])), None)
    texts = ("uid", "namespace", "name", "state", "reason", "message", "runtime", "image", "nodes", "progress")
    return {name: getattr(record, name) for name in texts} | {
        "runtimeKind": record.runtime_kind,
        "runtimeVersion": record.runtime_version,
        "owner": record.creator,
        "trial": None
        if record.sweep is None
        else {"sweep": record.sweep, "sweepUid": record.sweep_uid, "number": record.trial},
        "created": past_time(record.created),
        "started": past_time(record.started),
        "ended": past_time(record.ended),
        "deleted": past_time(record.deleted),
        "forgotten": past_time(record.forgotten),
        "seconds": record.seconds,
        "metric": metric and {"name": metric.name, "isEval": metric.is_eval, "value": metric.value},
    }


def past_page(history: History, record: TrainingRecord, *, may_read_logs: bool) -> Object:
    """A training on its page: its row, and the TrainJob as it was last, where it was kept."""
    job = history.document(record.uid, "trainjob")
    reported = history.parameters(record.uid) if may_read_logs else {}
    return {"training": past_row(record), "job": page_of(job, recipe_of(job, reported)) if job is not None else None}


def past_curves(history: History, uid: str) -> msgspec.Raw | None:
    """The samples of its metrics, as JSON."""
    curves = history.curves(uid)
    curves.thin_to(SAMPLES)
    return CurveReader(curves).encoded()


def past_logs(history: History, uid: str, source: str) -> Object:
    """The containers with last lines, those that train first, and the lines of the one that is asked for, or of some.

    Args:
        history: where they are.
        uid: of the training.
        source: `NODE/CONTAINER`; for none of its containers the first ones are given.
    """
    containers = history.logged_containers(uid)
    asked = [each for each in containers if source == "/".join(each)] or containers[:LOGS]
    tails = {(tail.node, tail.container): tail for tail in history.log_tails(uid, asked)}
    return {
        "containers": containers,
        "logs": [
            {
                "node": tail.node,
                "container": tail.container,
                "pod": tail.pod,
                "lines": [line.partition(" ")[::2] for line in tail.lines],
            }
            for tail in map(tails.get, asked)
            if tail is not None
        ],
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


def past_time(seconds: float | None) -> str | None:
    """A time as Kubernetes writes it; None for none, and for a number of a damaged row that is no time."""
    try:
        return None if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return None
