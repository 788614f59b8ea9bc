"""What is kept of a TrainJob in one row, so that a list reads nothing else, and of an event about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from trainer.kube.clock import parse_timestamp
from trainer.kube.events.compact import MESSAGE_LIMIT, last_seen
from trainer.kube.objects import (
    Object,
    annotations_of,
    labels_of,
    mapping_at,
    metadata_of,
    objects_in,
    uid_of,
)
from trainer.progress.interest import MetricValue
from trainer.progress.primary import training_job
from trainer.view.row import TrainJobRow
from trainer.workloads.containers import TRAINER_CONTAINERS
from trainer_dashboard.history.trial import trial_columns
from trainer_dashboard.recipe.secret_forms import clean_text

_SHORT, _LONG = 256, 1024
_NAME, _METRICS, _METRICS_LIMIT = 64, 16, 2048
CREATORS = ("field.cattle.io/creatorId", "workflows.argoproj.io/creator", "notebooks.kubeflow.org/creator")
"""Annotations or labels by which others say who has made an object."""


def row_of(job: Object, *, jobset: Object | None, runtime: Object | None) -> dict[str, Any]:
    """The columns of a TrainJob that follow from what exists now."""
    row = TrainJobRow.of(job)
    image = mapping_at(job, "spec", "trainer").get("image")
    return {
        "uid": row.uid,
        "namespace": row.namespace,
        "name": row.name,
        "created": seconds(row.created) or 0.0,
        "started": seconds(row.started),
        "ended": seconds(row.ended),
        "state": bounded(row.state),
        "reason": bounded(row.reason),
        "message": bounded(row.message, _LONG),
        "runtime_kind": bounded(row.runtime_kind),
        "runtime": bounded(row.runtime),
        "runtime_version": _version_of(runtime),
        "image": bounded(image or _image_in(jobset), _LONG),
        "nodes": row.nodes,
        "progress": row.progress.percentage,
        "metrics": _as_json(row.progress.metrics),
        **trial_columns(job),
    }


def creator_of(job: Object) -> str:
    """Who has made a TrainJob, if something says so: a person by annotation or label, else the program that wrote it.

    Args:
        job: with its managedFields.
    """
    for texts in (annotations_of(job), labels_of(job)):
        if name := next((texts[key] for key in CREATORS if texts.get(key)), ""):
            return bounded(name)
    managers = [each for each in objects_in(metadata_of(job).get("managedFields")) if not each.get("subresource")]
    first = min(managers, key=lambda each: str(each.get("time") or "9"), default={})
    return bounded(first.get("manager"))


def event_row(event: Object, uid: str) -> dict[str, Any]:
    """What is kept of an event about a TrainJob with this uid, or about what was made for it."""
    about = mapping_at(event, "involvedObject")
    return {
        "uid": uid,
        "event": uid_of(event),
        "last": bounded(last_seen(event)),
        "type": bounded(event.get("type")),
        "reason": bounded(event.get("reason")),
        "object": bounded(f"{about.get('kind') or ''} {about.get('name') or ''}", 512),
        "message": bounded(event.get("message"), MESSAGE_LIMIT),
    }


def bounded(text: object, limit: int = _SHORT) -> str:
    """A text of anybody as a database takes it: short, without secrets, and without the character NUL."""
    shown = str(text or "")[:limit].replace("\0", "")
    return clean_text(shown.encode(errors="replace").decode())


def seconds(text: object) -> float | None:
    """A timestamp as seconds since 1970; None if it is none."""
    try:
        return parse_timestamp(str(text)).timestamp() if text else None
    except (ValueError, OverflowError):
        return None


def _version_of(runtime: Object | None) -> str:
    """The generation counts the changes of its spec."""
    generation = metadata_of(runtime or {}).get("generation")
    return f"generation {generation}" if isinstance(generation, int) else ""


def _image_in(jobset: Object | None) -> str:
    """The image of the container that trains."""
    name = training_job(jobset) if jobset is not None else None
    for job in objects_in(mapping_at(jobset, "spec").get("replicatedJobs")):
        if job.get("name") == name:
            pod = mapping_at(job, "template", "spec", "template", "spec")
            containers = objects_in(pod.get("containers"))
            by_name = {each.get("name"): str(each.get("image") or "") for each in reversed(containers)}
            return next(
                (by_name[each] for each in TRAINER_CONTAINERS if each in by_name), next(iter(by_name.values()), "")
            )
    return ""


def _as_json(metrics: Sequence[MetricValue]) -> str:
    """The first of the last values: `[["loss", "0.25", false]]`, of evaluation with true."""
    kept = [(metric.name[:_NAME], metric.value[:_NAME], metric.is_eval) for metric in metrics[:_METRICS]]
    while len(text := msgspec.json.encode(kept).decode()) > _METRICS_LIMIT:
        kept.pop()
    return text
