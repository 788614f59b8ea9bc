"""Jobs and pods for tests, as an API server would store them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from trainer.kube.clock import timestamp
from trainer.kube.objects import Object
from trainer_devcluster.controllers.job.pods import COMPLETION_INDEX, TRACKING_FINALIZER
from trainer_devcluster.controllers.job.spec import JobObservation

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
LONG_AGO = timestamp(NOW - timedelta(hours=1))
JOB_UID = "job-uid"


def ago(seconds: float) -> str:
    """The time so many seconds before now."""
    return timestamp(NOW - timedelta(seconds=seconds))


def make_job(status: Object | None = None, *, pod_spec: Object | None = None, **spec: Any) -> Object:
    """An Indexed Job of two pods, unless `spec` says otherwise."""
    template: Object = {
        "metadata": {"labels": {"job-name": "j"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], **(pod_spec or {})},
    }
    defaults: Object = {
        "parallelism": 2,
        "completions": 2,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed",
        "template": template,
    }
    job: Object = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "n", "uid": JOB_UID, "resourceVersion": "1"},
        "spec": {**defaults, **spec},
    }
    return job | ({"status": status} if status is not None else {})


def make_pod(
    name: str,
    phase: str = "Pending",
    *,
    index: int | None = None,
    tracked: bool = True,
    ready: bool = False,
    exit_code: int | None = None,
    finished: str = LONG_AGO,
    deleting: bool = False,
    restarts: int = 0,
) -> Object:
    """A pod of the Job; its uid is its name."""
    metadata: Object = {
        "name": name,
        "namespace": "n",
        "uid": name,
        "resourceVersion": "1",
        "creationTimestamp": LONG_AGO,
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": JOB_UID, "controller": True}],
    }
    if index is not None:
        metadata["labels"] = metadata["annotations"] = {COMPLETION_INDEX: str(index)}
    if tracked:
        metadata["finalizers"] = [TRACKING_FINALIZER]
    if deleting:
        metadata |= {"deletionTimestamp": finished, "deletionGracePeriodSeconds": 0}
    status: Object = {"phase": phase}
    if ready:
        status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}]
    code = exit_code if exit_code is not None else {"Succeeded": 0, "Failed": 1}.get(phase)
    if code is not None:
        ended = {"terminated": {"exitCode": code, "finishedAt": finished}}
        status["containerStatuses"] = [{"name": "c", "restartCount": restarts, "state": ended}]
    elif restarts:
        status["containerStatuses"] = [{"name": "c", "restartCount": restarts, "state": {"running": {}}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}, "status": status}


def make_state(job: Object, *pods: Object, now: datetime = NOW) -> JobObservation:
    """What a reconcile of the Job would see."""
    return JobObservation(job, pods, now)


def condition(
    kind: str, reason: str = "R", message: str = "M", *, since: str = LONG_AGO, value: str = "True"
) -> Object:
    """A condition of a Job."""
    return {
        "type": kind,
        "status": value,
        "reason": reason,
        "message": message,
        "lastProbeTime": since,
        "lastTransitionTime": since,
    }
