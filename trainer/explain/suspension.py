"""Who has suspended a TrainJob or its JobSet, and what a queue of Kueue says about it."""

from __future__ import annotations

from collections.abc import Iterator

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.kueue import QUEUE_LABEL
from trainer.api.trainjob_status import ConditionType
from trainer.explain.cause import Cause, Subject, describe, kubectl, one_line, trainer
from trainer.explain.snapshot import Snapshot
from trainer.explain.workload import INACTIVE, standing_of
from trainer.framework.deploying.deployer import MADE_ANEW_ONCE
from trainer.kube.objects import Object, find_condition, labels_of, metadata_of, name_of, objects_in
from trainer.kube.resource import Resource
from trainer.plugins.jobset.revision import is_decided

WORKLOADS = tuple(Resource("kueue.x-k8s.io", version, "workloads", "Workload") for version in ("v1beta2", "v1beta1"))
"""Kueue's, newest version first."""
LOCAL_QUEUES = Resource("visibility.kueue.x-k8s.io", "v1beta1", "localqueues", "LocalQueue")
"""LocalQueues of Kueue's visibility API, whose subresource `pendingworkloads` has positions."""
JOB_UID = "kueue.x-k8s.io/job-uid"
"""Kueue's label of a Workload: the uid of its job."""


def suspensions(snapshot: Snapshot) -> Iterator[Cause]:
    """The TrainJob, else its JobSet, is suspended."""
    spec = snapshot.train_job.get("spec") or {}
    jobset = snapshot.jobset
    if spec.get("suspend"):
        yield from _of(snapshot, snapshot.train_job, "Suspended", snapshot.subject)
        return
    if jobset is None or not (jobset.get("spec") or {}).get("suspend"):
        return
    about = Subject("JobSet", name_of(jobset), snapshot.namespace)
    if is_decided(jobset, suspend=False):
        yield _resuming(snapshot, about)
        return
    yield from _of(snapshot, jobset, "JobSetSuspended", about)


def _resuming(snapshot: Snapshot, jobset: Subject) -> Cause:
    """The TrainJob was resumed, and its JobSet is not yet: perhaps pods of the former one have to end."""
    created = (find_condition(snapshot.train_job, ConditionType.CREATED) or {}).get("message") or ""
    awaited = next((each for each in created.split("; ") if MADE_ANEW_ONCE in each), "")
    if awaited:
        message = f"{snapshot.subject} was resumed with other pods: its {awaited}"
        remedy = "wait until they have ended; a pod that does not end may be on a node that is lost"
        return Cause("Resuming", jobset, message, remedy, list_pods(jobset.name, snapshot.namespace))
    message = f"{snapshot.subject} was resumed, and the manager has yet to resume {jobset}"
    remedy = "wait a moment; if it stays so, see whether the manager runs"
    command = trainer("get", snapshot.name, "-w", namespace=snapshot.namespace)
    return Cause("Resuming", jobset, message, remedy, command)


def _of(snapshot: Snapshot, suspended: Object, reason: str, about: Subject) -> Iterator[Cause]:
    queue = labels_of(suspended).get(QUEUE_LABEL) or labels_of(snapshot.train_job).get(QUEUE_LABEL)
    workload = next(iter(snapshot.of_kind("Workload")), None)
    if workload is not None:
        yield _queued(snapshot, workload, queue or "")
        return
    if queue:
        message = f"{about} is suspended in Kueue's queue {queue}, and Kueue has no Workload for it"
        remedy = "have Kueue checked: it makes the Workload, and resumes what is admitted"
        if snapshot.could_not_read("workloads"):
            message = f"{about} is suspended in Kueue's queue {queue}, whose Workloads you may not read"
            remedy = "ask who runs Kueue why it is not admitted, or for the right to read Workloads"
        command = kubectl("get", "workloads,localqueues", namespace=snapshot.namespace)
        yield Cause(reason, about, one_line(message), remedy, command)
        return
    who = _by_whom(suspended)
    by = f"by {who}" if who else "by spec.suspend, with which it was created"
    remedy = f"resume it: {trainer('resume', snapshot.name, namespace=snapshot.namespace)}"
    if about != snapshot.subject:
        remedy = "whoever suspended it resumes it, or suspend and resume the TrainJob"
    managers = ("-o", "yaml", "--show-managed-fields")
    command = kubectl("get", about.kind.lower(), about.name, *managers, namespace=about.namespace)
    yield Cause(reason, about, one_line(f"{about} is suspended {by}"), remedy, command)


def _by_whom(obj: Object) -> str:
    """The field manager that has set spec.suspend, and when; empty if it is unknown."""
    for entry in objects_in(metadata_of(obj).get("managedFields")):
        fields = (entry.get("fieldsV1") or {}).get("f:spec")
        if isinstance(fields, dict) and "f:suspend" in fields:
            return f"{entry.get('manager')} at {entry.get('time')}"
    return ""


def _queued(snapshot: Snapshot, workload: Object, queue: str) -> Cause:
    queue = str((workload.get("spec") or {}).get("queueName") or queue)
    about = Subject("Workload", name_of(workload), snapshot.namespace)
    standing = standing_of(workload)
    stands = "waits" if standing.waits else "is"
    position = ""
    if snapshot.position is not None:
        local, cluster = snapshot.position
        position = f" at position {local + 1} ({cluster + 1} of all that share its quota)"
    message = f"{stands} in Kueue's queue {queue}{position}"
    if standing.message:
        message = f"{message}; {standing.message}"
    remedy = standing.remedy
    if standing.reason == INACTIVE:
        remedy = f"{remedy}: {trainer('resume', snapshot.name, namespace=snapshot.namespace)}"
    return Cause(standing.reason, about, one_line(message), remedy, describe(about))


def workload_selector(uids: list[str]) -> str:
    """The label selector of the Workloads of jobs."""
    return f"{JOB_UID} in ({','.join(sorted(uids))})"


def jobset_selector(name: str) -> str:
    """The label selector of the Jobs and pods of a JobSet."""
    return f"{JOBSET_NAME}={name}"


def list_pods(jobset: str, namespace: str) -> str:
    """The command that lists the pods of a JobSet with their nodes."""
    return kubectl("get", "pods", "-o", "wide", "-l", jobset_selector(jobset), namespace=namespace)
