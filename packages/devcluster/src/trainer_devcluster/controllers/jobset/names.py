"""Names, labels and annotations that tie a JobSet to its Jobs and pods (jobset.x-k8s.io/v1alpha2)."""

from __future__ import annotations

import hashlib
from typing import cast

from trainer.kube.objects import Object, labels_of, name_of, namespace_of, uid_of

_PREFIX = "jobset.sigs.k8s.io"
CONTROLLER_NAME = f"{_PREFIX}/jobset-controller"
"""Value of `spec.managedBy` that names this controller."""
JOBSET_NAME = f"{_PREFIX}/jobset-name"
REPLICATED_JOB_NAME = f"{_PREFIX}/replicatedjob-name"
RESTART_ATTEMPT = f"{_PREFIX}/restart-attempt"
JOB_INDEX = f"{_PREFIX}/job-index"


def job_name(jobset: Object, replicated_job: str, index: int) -> str:
    """Name of one Job."""
    return f"{name_of(jobset)}-{replicated_job}-{index}"


def claim_name(jobset: Object, template: str) -> str:
    """Name of the claim that a template of this name becomes."""
    return f"{template}-{name_of(jobset)}"


def subdomain_of(jobset: Object) -> str:
    """Name of the headless Service under which the pods find each other: the JobSet's own unless it says otherwise."""
    network = jobset["spec"].get("network") or {}
    return network.get("subdomain") or name_of(jobset)


def replicated_job_of(job: Object) -> str:
    """Name of the replicated job that a Job belongs to."""
    return labels_of(job).get(REPLICATED_JOB_NAME, "")


def restart_attempt_of(job: Object) -> int:
    """The restart of the JobSet in which the Job was made."""
    text = labels_of(job).get(RESTART_ATTEMPT, "0")
    return int(text) if text.isdecimal() else 0


def restarts_of(jobset: Object) -> int:
    """How often the JobSet has been restarted."""
    return cast("int", (jobset.get("status") or {}).get("restarts") or 0)


def job_labels(jobset: Object, replicated_job: Object, index: int) -> dict[str, str]:
    """The labels of every Job and its pods, which are annotations as well."""
    siblings = jobset["spec"]["replicatedJobs"]
    group = _group_of(replicated_job)
    group_members = [other for other in siblings if _group_of(other) == group]
    job = job_name(jobset, replicated_job["name"], index)
    labels = {
        JOBSET_NAME: name_of(jobset),
        f"{_PREFIX}/jobset-uid": uid_of(jobset),
        REPLICATED_JOB_NAME: replicated_job["name"],
        f"{_PREFIX}/replicatedjob-replicas": str(replicas_of(replicated_job)),
        f"{_PREFIX}/global-replicas": str(_total(siblings)),
        JOB_INDEX: str(index),
        f"{_PREFIX}/job-global-index": str(_before(siblings, replicated_job) + index),
        f"{_PREFIX}/job-key": _job_key(jobset, job),
        RESTART_ATTEMPT: str(restarts_of(jobset)),
        f"{_PREFIX}/group-name": group,
        f"{_PREFIX}/group-replicas": str(_total(group_members)),
        f"{_PREFIX}/job-group-index": str(_before(group_members, replicated_job) + index),
    }
    coordinator = jobset["spec"].get("coordinator")
    if coordinator:
        leader = job_name(jobset, coordinator["replicatedJob"], coordinator.get("jobIndex") or 0)
        labels[f"{_PREFIX}/coordinator"] = f"{leader}-{coordinator.get('podIndex') or 0}.{subdomain_of(jobset)}"
    return labels


def replicas_of(replicated_job: Object) -> int:
    """How many Jobs the replicated job wants."""
    return cast("int", replicated_job.get("replicas", 1))


def _group_of(replicated_job: Object) -> str:
    return cast("str", replicated_job.get("groupName") or "default")


def _total(replicated_jobs: list[Object]) -> int:
    return sum(replicas_of(replicated_job) for replicated_job in replicated_jobs)


def _before(replicated_jobs: list[Object], replicated_job: Object) -> int:
    names = [other["name"] for other in replicated_jobs]
    return _total(replicated_jobs[: names.index(replicated_job["name"])])


def _job_key(jobset: Object, job: str) -> str:
    """Unique in the cluster and valid as a label; SHA-1 because that is what JobSet's labels hold."""
    return hashlib.sha1(f"{namespace_of(jobset)}/{job}".encode(), usedforsecurity=False).hexdigest()
