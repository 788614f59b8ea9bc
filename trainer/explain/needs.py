"""What else has to be read to find the causes: most TrainJobs need no more than their JobSet and its pods."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.api.kueue import QUEUE_LABEL
from trainer.api.trainjob import TRAIN_JOB_CONTROLLER
from trainer.api.trainjob_status import ConditionType
from trainer.explain.containers import crashes, present_crashes
from trainer.explain.gang import Membership, pod_group_of
from trainer.explain.lost_nodes import lost_pods
from trainer.explain.progress import is_up
from trainer.explain.snapshot import Snapshot
from trainer.framework import FailedContainer
from trainer.framework.status.status import has_ended
from trainer.kube.objects import Object, find_condition, is_condition_true, labels_of
from trainer.workloads import JOBSETS


@dataclass(frozen=True, slots=True)
class Needs:
    """What to read beyond the TrainJob, its JobSet and its pods."""

    workload: bool = False
    """Kueue's Workload, and its position."""
    events: bool = False
    """Warnings of the namespace, and the Jobs that they are about."""
    claims: bool = False
    """Events about volume claims, which need not be warnings."""
    nodes: bool = False
    """All nodes."""
    lost_nodes: tuple[str, ...] = ()
    """Names of nodes to read where not all are read: a cluster may have thousands."""
    pod_group: Membership | None = None
    """The PodGroup of pods that wait for a node."""
    log: FailedContainer | None = None
    """The container whose last lines say most."""
    previous_log: bool = False
    """Whether to read its log of the run before the present one."""


def has_children(train_job: Object) -> bool:
    """Whether to read JobSet and pods: it may have pods, is ours, and nothing says that its Jobs could not be made.

    Kubeflow Trainer (Go) writes no condition Created.
    """
    spec = train_job.get("spec") or {}
    created = find_condition(train_job, ConditionType.CREATED) or {}
    is_ours = (spec.get("managedBy") or TRAIN_JOB_CONTROLLER) == TRAIN_JOB_CONTROLLER
    may_have_pods = not spec.get("suspend") or is_condition_true(train_job, ConditionType.STOPPING)
    return is_ours and created.get("status") != "False" and may_have_pods and not has_ended(train_job)


def needs_of(snapshot: Snapshot) -> Needs:
    """What to read, by what the JobSet and its pods say; pure."""
    jobset = snapshot.jobset
    if has_ended(snapshot.train_job):
        return Needs()
    suspended = snapshot.train_job if (snapshot.train_job.get("spec") or {}).get("suspend") else jobset
    if suspended is not None and (suspended.get("spec") or {}).get("suspend"):
        is_queued = QUEUE_LABEL in labels_of(suspended) or QUEUE_LABEL in labels_of(snapshot.train_job)
        return Needs(workload=is_queued, lost_nodes=tuple(lost_pods(snapshot)))
    if jobset is None and not snapshot.could_not_read(JOBSETS.plural):
        return Needs()
    _, crash = next(present_crashes(snapshot), ("", None))
    unsettled = not all(map(is_up, snapshot.pods)) if jobset is None else not _is_settled(jobset)
    unscheduled = [pod for pod in snapshot.pods if not (pod.get("spec") or {}).get("nodeName")]
    judged = unscheduled if jobset is not None else []  # the reasons of pods are found by way of their JobSet
    misfits = any((find_condition(pod, "PodScheduled") or {}).get("reason") == "Unschedulable" for pod in judged)
    return Needs(
        events=unsettled or any(crashes(snapshot)),
        claims=any(map(_has_claims, judged)),
        nodes=misfits,
        lost_nodes=() if misfits else tuple(lost_pods(snapshot)),
        pod_group=next((group for pod in unscheduled if (group := pod_group_of(pod)) is not None), None),
        log=FailedContainer("", *crash.key) if crash is not None else None,
        previous_log=crash is not None and not crash.is_waiting,
    )


def _is_settled(jobset: Object) -> bool:
    """Whether all its Jobs are ready or have ended."""
    counts = {each.get("name"): each for each in (jobset.get("status") or {}).get("replicatedJobsStatus") or []}
    for job in (jobset.get("spec") or {}).get("replicatedJobs") or []:
        count = counts.get(job.get("name")) or {}
        if sum(count.get(name) or 0 for name in ("ready", "succeeded", "failed")) < job.get("replicas", 1):
            return False
    return True


def _has_claims(pod: Object) -> bool:
    volumes = (pod.get("spec") or {}).get("volumes") or []
    return any(volume.get("persistentVolumeClaim") or volume.get("ephemeral") for volume in volumes)
