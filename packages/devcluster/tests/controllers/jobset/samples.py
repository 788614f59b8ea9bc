"""JobSets and their Jobs for tests, as an API server would store them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from trainer.kube.clock import timestamp
from trainer.kube.objects import Object
from trainer_devcluster.controllers.jobset.construction import build_job

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
UID = "jobset-uid"


def ago(seconds: float) -> str:
    """The time so many seconds before now."""
    return timestamp(NOW - timedelta(seconds=seconds))


def make_replicated_job(name: str = "node", replicas: int = 1, *, pods: int = 2, **fields: Any) -> Object:
    """A replicated job whose Jobs have `pods` pods."""
    job_spec = {
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "template": {"metadata": {}, "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
    }
    template = {"metadata": {"labels": {"from": "template"}}, "spec": job_spec}
    return {"name": name, "groupName": "default", "replicas": replicas, "template": template, **fields}


def make_jobset(*replicated_jobs: Object, status: Object | None = None, **spec: Any) -> Object:
    """A JobSet with its defaults; by default with one replicated job."""
    defaults: Object = {
        "replicatedJobs": list(replicated_jobs) or [make_replicated_job()],
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All"},
        "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
    }
    jobset: Object = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "js", "namespace": "n", "uid": UID, "resourceVersion": "1"},
        "spec": {**defaults, **spec},
    }
    return jobset | ({"status": status} if status is not None else {})


def make_job(jobset: Object, name: str = "node", index: int = 0, status: Object | None = None) -> Object:
    """A Job of the JobSet as the API server would have stored it."""
    replicated_job = next(entry for entry in jobset["spec"]["replicatedJobs"] if entry["name"] == name)
    job = build_job(jobset, replicated_job, index)
    job["metadata"] |= {"uid": f"uid-{job['metadata']['name']}", "resourceVersion": "1"}
    return {**job, "status": status or {}}


RUNNING: Object = {"active": 2, "ready": 2, "startTime": ago(60)}


def complete() -> Object:
    """Status of a Job that has succeeded."""
    return {"succeeded": 2, "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": ago(5)}]}


def failed(seconds_ago: float = 5, reason: str = "BackoffLimitExceeded", message: str = "m") -> Object:
    """Status of a Job that has failed."""
    condition = {"type": "Failed", "status": "True", "reason": reason, "message": message}
    return {"failed": 2, "conditions": [{**condition, "lastTransitionTime": ago(seconds_ago)}]}


def conditions_of(status: Object | None) -> dict[str, tuple[str, str]]:
    """Status and reason of each condition, by type."""
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in (status or {}).get("conditions") or []}
