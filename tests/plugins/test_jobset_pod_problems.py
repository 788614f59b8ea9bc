"""What keeps the pods of a JobSet from running."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.framework.samples import pod_metadata, train_job
from tests.framework.static_reader import StaticReader
from tests.plugins.test_jobset import BY_TRAIN_JOB, OURS, failed_pod, owned_jobset, static_reader
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object
from trainer.kube.resource import PODS
from trainer.plugins.jobset import JobSetPlugin
from trainer.plugins.jobset.deleted_pods import REMEMBERED, DeletedPods
from trainer.plugins.jobset.pod_index import PodIndex, problems_of


def pod(name: str = "demo-node-0-0-a", *, deleted: bool = False, uid: str = "", **status: Any) -> Object:
    """A pod of the JobSet, perhaps with the uid of the JobSet in a label."""
    metadata = pod_metadata(name, **({"jobset_uid": uid} if uid else {}))
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": "a"},
        "status": {"phase": "Pending"} | status,
    }


def unseen(name: str = "demo-node-0-0-a", scheduler: str = "coscheduling") -> Object:
    """A pod without a node, of which no scheduler has said anything."""
    return pod(name) | {"spec": {"schedulerName": scheduler}}


def waiting(reason: str, message: str | None = None, name: str = "demo-node-0-0-a", **fields: Any) -> Object:
    """A pod whose container waits."""
    state = {"waiting": {"reason": reason} | ({"message": message} if message else {})}
    return pod(name, containerStatuses=[{"name": "trainer", "state": state}], **fields)


def unscheduled(reason: str = "Unschedulable", message: str = "0/3 nodes are available") -> Object:
    """A pod without a node."""
    return pod(conditions=[{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}])


CONTAINERS_READY = {"type": "ContainersReady", "status": "True"}
COUNTS = {"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
MARKED = [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}, CONTAINERS_READY]
STARTING = ("is starting",)
UNSEEN = ("is starting", "is unseen")
HAS_SANDBOX = {"type": "PodReadyToStartContainers", "status": "True"}


@pytest.mark.parametrize(
    ("obj", "troubles"),
    [
        pytest.param(pod(), STARTING, id="has-a-node"),
        pytest.param(unseen(), UNSEEN, id="just-made"),
        pytest.param(pod(phase="Running", containerStatuses=[{"name": "a", "state": {"running": {}}}]), (), id="runs"),
        pytest.param(pod(phase="Running", conditions=MARKED), ("lost",), id="node-is-lost"),
        pytest.param(
            pod(phase="Running", conditions=MARKED, deleted=True), ("is going", "lost"), id="lost-and-being-deleted"
        ),
        pytest.param(pod(phase="Running", conditions=[*MARKED[:1]]), (), id="was-not-ready-before"),
        pytest.param(unscheduled(), ("waits", "waits for Unschedulable"), id="unschedulable"),
        pytest.param(waiting("ErrImagePull", deleted=True), ("is going",), id="is-being-deleted"),
        pytest.param(waiting("CrashLoopBackOff"), ("crashing",), id="crash-loop"),
        pytest.param(pod(phase="Failed", deleted=True), ("failed",), id="failed-and-being-deleted"),
    ],
)
def test_troubles_of_a_pod(obj: Object, troubles: tuple[str, ...]) -> None:
    """A pod is in trouble when something has to happen that does not come by itself."""
    cached = CachedObject.of(obj)
    there = () if troubles == ("failed",) else ("is there",)
    assert problems_of(cached) == tuple(f"default/demo/ {trouble}" for trouble in (*troubles, *there))
    is_news = troubles not in {(), STARTING, UNSEEN}
    changed = DeletedPods(static_reader()).problem_changed
    assert changed(None, cached) is is_news
    assert changed(CachedObject.of(pod()), cached) is is_news
    assert changed(cached, None)
    assert not changed(cached, cached)


def test_the_uid_tells_jobsets_of_one_name_apart() -> None:
    """Pods of an earlier JobSet of the same name, which are not gone yet, are not counted."""
    old = waiting("ErrImagePull", uid="old")
    own = waiting("InvalidImageName", name="b", uid="new")
    jobset = owned_jobset()
    jobset["metadata"]["uid"] = "new"
    assert reported(jobset, old, own) == [
        ("Pending", "InvalidImageName", "1 pod cannot start", "pod b: container trainer: InvalidImageName")
    ]


def reported(*objects: Object) -> list[tuple[str, str, str, str]]:
    """Type, reason, headline and details of the problems."""
    found = JobSetPlugin(static_reader(*objects)).train_job_status(train_job()).problems
    return [(str(each.type), each.reason, each.headline, each.details()) for each in found]


def jobset(
    *,
    restarts: int = 0,
    spec: Object | None = None,
    conditions: Any = (),
    metadata: Object | None = None,
    **counts: int,
) -> Object:
    """The JobSet with one replicated Job."""
    status = {
        "restarts": restarts,
        "conditions": list(conditions),
        "replicatedJobsStatus": [COUNTS | counts],
    }
    node = {"name": "node", "template": {"spec": {}}}
    owned = owned_jobset(status)
    return owned | {
        "metadata": owned["metadata"] | (metadata or {}),
        "spec": {"replicatedJobs": [node]} | (spec or {}),
    }


def test_each_reason_is_reported_with_a_number_and_an_example() -> None:
    """However many pods wait, there is one problem for each reason; those that may pass come last."""
    pods = [waiting("ErrImagePull", "not found", f"demo-node-0-{index}-x") for index in range(5)]
    assert reported(jobset(), unscheduled(), *pods) == [
        (
            "Pending",
            "ImagePullBackOff",
            "at least 4 pods cannot start",
            "for example pod demo-node-0-0-x: container trainer: not found",
        ),
        ("Pending", "Unschedulable", "1 pod cannot start", "pod demo-node-0-0-a: 0/3 nodes are available"),
    ]


def lost(index: int, node: str = "a", *, since: str = "2026-01-01T00:00:00Z", **fields: Any) -> Object:
    """A pod on a node that is lost."""
    marked = [{"type": "Ready", "status": "False", "lastTransitionTime": since}, CONTAINERS_READY]
    found = pod(f"demo-node-0-{index}-x", phase="Running", conditions=marked, **fields)
    found["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = str(index)
    return found | {"spec": {"nodeName": node}}


@pytest.mark.parametrize(
    ("pods", "headline", "details"),
    [
        pytest.param([pod(phase="Running")], "", "", id="none"),
        pytest.param(
            [lost(0), pod(phase="Running")],
            "node a is not ready since 2026-01-01T00:00:00Z, with 1 pod on it",
            "demo-node-0-0-x",
            id="one",
        ),
        pytest.param(
            [lost(index, since=f"2026-01-01T00:00:0{index}Z") for index in range(7)],
            "node a is not ready since 2026-01-01T00:00:00Z, with at least 4 pods on it",
            "demo-node-0-0-x, demo-node-0-1-x, demo-node-0-2-x, demo-node-0-3-x, demo-node-0-4-x and others",
            id="many pods",
        ),
        pytest.param(
            [lost(index, f"n-{index:03}") for index in range(100)],
            "nodes n-000, n-001, n-002, n-003, n-004 and others are not ready since 2026-01-01T00:00:00Z, "
            "with at least 64 pods on them",
            "demo-node-0-0-x, demo-node-0-1-x, demo-node-0-10-x, demo-node-0-11-x, demo-node-0-12-x and others",
            id="many nodes",
        ),
        pytest.param(
            [lost(0, "b"), lost(1, "a", deleted=True)],
            "nodes a, b are not ready since 2026-01-01T00:00:00Z, with 2 pods on them",
            "demo-node-0-0-x, demo-node-0-1-x",
            id="two nodes",
        ),
    ],
)
def test_lost_nodes(pods: list[Object], headline: str, details: str) -> None:
    """One problem names the nodes, since when they are lost, and the pods on them, deleted or not."""
    expected = [("Stopping", "NodeNotReady", headline, details)] if headline else []
    assert reported(jobset(ready=1), *pods) == expected


def test_lost_pod_that_is_replaced() -> None:
    """A pod on a lost node holds nothing once its Job has made another one."""
    successor = lost(0) | {"status": {"phase": "Running"}}
    successor["metadata"] |= {"name": "demo-node-0-0-y", "creationTimestamp": "2026-01-01T00:06:00Z"}
    assert reported(jobset(ready=1), lost(0, deleted=True), successor) == []
    assert len(reported(jobset(ready=1), lost(0, deleted=True), lost(1))) == 1


FROM = {"secretRef": {"name": "login"}}
MISSING = 'secret "login" not found'


@pytest.mark.parametrize(
    ("spec", "message", "field"),
    [
        pytest.param({"datasetConfig": FROM}, MISSING, "spec.datasetConfig.secretRef.name", id="dataset"),
        pytest.param(
            {"datasetConfig": {"secretRef": {"name": "another"}}},
            MISSING,
            "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[0].template.spec.template.spec."
            "containers[0].envFrom[0].secretRef.name",
            id="runtime",
        ),
    ],
)
def test_the_field_that_asks_for_what_is_missing(spec: Any, message: str, field: str) -> None:
    """It comes first, so that its author knows where to look."""
    pods = {"spec": {"containers": [{"name": "trainer", "envFrom": [FROM]}]}}
    owned = jobset(spec={"replicatedJobs": [{"name": "node", "template": {"spec": {"template": pods}}}]})
    reader = static_reader(owned, waiting("CreateContainerConfigError", message))
    (wait,) = JobSetPlugin(reader).train_job_status(train_job(**spec)).problems
    place = f"{field}: " if field else ""
    assert wait.details() == f"{place}pod demo-node-0-0-a: container trainer: {message}"


@pytest.mark.parametrize("is_own", [pytest.param(True, id="trainjob"), pytest.param(False, id="runtime")])
def test_the_annotation_that_names_a_claim(is_own: bool) -> None:
    """The volume of a claim for checkpoints is in no field of TrainJob or runtime; the annotation is named instead."""
    key = "trainer.kubeflow.org/checkpoints"
    mount = {"name": "trainer-checkpoints", "mountPath": "/checkpoints", "subPath": "demo-1"}
    volume = {"name": "trainer-checkpoints", "persistentVolumeClaim": {"claimName": "data"}}
    pods = {"spec": {"containers": [{"name": "trainer", "volumeMounts": [mount]}], "volumes": [volume]}}
    owned = jobset(spec={"replicatedJobs": [{"name": "node", "template": {"spec": {"template": pods}}}]})
    reader = static_reader(owned, waiting("CreateContainerError", 'persistentvolumeclaim "data" not found'))
    job = train_job()
    job = job.model_copy(update={"metadata": job.metadata.model_copy(update={"annotations": {key: "data"}})})
    (wait,) = JobSetPlugin(reader).train_job_status(job if is_own else train_job()).problems
    place = "" if is_own else "ClusterTrainingRuntime/blueprint spec.template."
    assert wait.details().startswith(f"{place}metadata.annotations[{key}]: pod demo-node-0-0-a: ")


class CountingReader(StaticReader):
    """Counts the pods that are decoded."""

    decoded = 0

    def get(self, resource: Any, key: Any) -> Object | None:
        """See `Reader.get`."""
        CountingReader.decoded += resource == PODS
        return super().get(resource, key)


def test_a_large_job_is_not_read_pod_by_pod() -> None:
    """Of a thousand pods in trouble one is decoded for each reason."""
    pods: Iterator[Object] = (waiting("ErrImagePull", "x", f"demo-node-0-{index}-x") for index in range(1000))
    reader = CountingReader(jobset(), *pods, unscheduled(), indexes={"jobset-pod-problems": problems_of})
    CountingReader.decoded = 0
    found = list(JobSetPlugin(reader).train_job_status(train_job()).problems)
    assert [each.headline for each in found] == ["at least 512 pods cannot start", "1 pod cannot start"]
    assert CountingReader.decoded == 2


RESTARTING = {
    "type": "RestartingJobSet",
    "status": "True",
    "reason": "DefaultFailurePolicy",
    "message": "applying RestartJobSet failure policy action (first failed job: demo-node-0)",
}
READY = RESTARTING | {"status": "False"}
CULPRIT = failed_pod("demo-node-0-0-y", 3, "2026-01-01T00:00:01Z")
CULPRIT["apiVersion"] = "v1"
CRASHING = waiting("CrashLoopBackOff", "back-off 10s")
CRASHING["status"]["containerStatuses"][0]["lastState"] = {"terminated": {"exitCode": 9, "reason": "Error"}}
SAID = "pod demo-node-0-0-y: container trainer exited with code 3"


@pytest.mark.parametrize(
    ("objects", "problems"),
    [
        pytest.param([], [], id="no-jobset"),
        pytest.param([jobset(ready=1)], [], id="fine"),
        pytest.param(
            [jobset(restarts=2, conditions=[RESTARTING])],
            [("Restarting", "RestartingJobSet", "restart 2", RESTARTING["message"])],
            id="its-failed-pods-are-gone",
        ),
        pytest.param(
            [jobset(restarts=1), CULPRIT],
            [("Restarting", "RestartingJobSet", "restart 1", SAID)],
            id="a-jobset-that-does-not-say",
        ),
        pytest.param(
            [jobset(active=1), CULPRIT],
            [("Restarting", "RestartingPods", "1 pod has ended and started again", SAID)],
            id="a-job-makes-its-pod-again",
        ),
        pytest.param([jobset(failed=1), CULPRIT], [], id="a-job-has-given-up"),
        pytest.param(
            [jobset(active=1), CRASHING],
            [
                (
                    "Restarting",
                    "RestartingPods",
                    "1 pod has ended and started again",
                    "pod demo-node-0-0-a: container trainer exited with code 9",
                )
            ],
            id="a-container-is-started-again",
        ),
        pytest.param(
            [
                jobset(conditions=[RESTARTING], spec={"suspend": True}, metadata={"annotations": BY_TRAIN_JOB}),
                waiting("ErrImagePull"),
            ],
            [("Stopping", "SuspendingPods", "node-0 has not ended yet", "")],
            id="suspended",
        ),
        pytest.param(
            [
                jobset(
                    spec={"suspend": True},
                    metadata={"labels": {"kueue.x-k8s.io/queue-name": "team-a"}, "annotations": OURS},
                )
            ],
            [("Pending", "JobSetSuspended", "waits in Kueue's queue team-a", "")],
            id="suspended-by-kueue",
        ),
    ],
)
def test_problems(objects: list[Object], problems: list[tuple[str, ...]]) -> None:
    """Restarts are reported with their cause while they last."""
    assert reported(*objects) == problems


def crashed(name: str, code: int, at: int, *, attempt: int = 0, uid: str = "") -> Object:
    """A pod of an attempt of the JobSet, whose container has failed in this second."""
    end = {"exitCode": code, "finishedAt": f"2026-01-01T00:00:{at:02}Z"}
    status = {"phase": "Failed", "containerStatuses": [{"name": "trainer", "state": {"terminated": end}}]}
    labels = {"restart_attempt": str(attempt)} | ({"jobset_uid": uid} if uid else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod_metadata(name, **labels), "status": status}


FOREIGN = crashed("x", 9, 1) | {"metadata": pod_metadata("x") | {"ownerReferences": []}}


@pytest.mark.parametrize(
    ("gone", "cause"),
    [
        pytest.param([crashed("a", 5, 1)], "pod a: container trainer exited with code 5", id="one"),
        pytest.param(
            [crashed("a", 143, 2), crashed("b", 5, 1), crashed("c", 143, 3)],
            "pod b: container trainer exited with code 5",
            id="which-failed-first",
        ),
        pytest.param([pod("a")], RESTARTING["message"], id="that-has-not-failed"),
        pytest.param([FOREIGN], RESTARTING["message"], id="that-no-job-has-made"),
    ],
)
def test_the_cause_outlives_the_pods(gone: list[Object], cause: str) -> None:
    """JobSet deletes them at once, and their watch may be faster than that of the JobSet."""
    plugin = JobSetPlugin(static_reader(jobset(restarts=1, conditions=[RESTARTING])))
    [watch] = [each for each in plugin.watches() if each.resource == PODS]
    for each in gone:
        assert watch.predicate is not None
        watch.predicate(CachedObject.of(each), None)
    [problem] = plugin.train_job_status(train_job()).problems
    assert problem.details() == cause


SMALLER = {"replicatedJobs": [{"name": "node", "template": {"spec": {"completions": 1}}}]}


def going(name: str, *, index: int = 0, attempt: int = 0, made: str = "2026-01-01T00:00:00Z", at: int = 5) -> Object:
    """A pod whose deletion was asked for in this second."""
    found = pod(name, phase="Running")
    deletion = {"deletionTimestamp": f"2026-01-01T00:00:{at + 25:02}Z", "deletionGracePeriodSeconds": 25}
    labels = {
        "jobset.sigs.k8s.io/restart-attempt": str(attempt),
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    metadata = found["metadata"]
    more = {"uid": f"uid-of-{name}", "creationTimestamp": made, "labels": metadata["labels"] | labels}
    return found | {"metadata": metadata | more | deletion}


JOB: Object = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "demo-node-0",
        "namespace": "default",
        "uid": "uid-of-node",
        "labels": {"jobset.sigs.k8s.io/jobset-name": "demo"},
    },
}


def before(obj: Object) -> Object:
    """The same pod before its deletion."""
    lost = ("deletionTimestamp", "deletionGracePeriodSeconds")
    return obj | {"metadata": {name: value for name, value in obj["metadata"].items() if name not in lost}}


A, B = going("a"), going("b")
NOT_BY_JOB = "pod {} was deleted, and not by its Job"
NOT_KNOWN = "pod a was deleted; by whom is not known, and 1 more was deleted within the same second"


B_ENDED = crashed("b", 1, 9) | {
    "metadata": B["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:09Z", "deletionGracePeriodSeconds": 0}
}
"""As the kubelet leaves it, while a finalizer keeps it."""


@pytest.mark.parametrize(
    ("changes", "present", "cause"),
    [
        pytest.param([(before(B), B), (before(A), A)], [A, B], NOT_BY_JOB.format("b"), id="in this order"),
        pytest.param([(None, B), (None, A)], [A, B], NOT_KNOWN, id="before the manager has started"),
        pytest.param([(before(B), B), (before(A), A), (B, None), (A, None)], [], NOT_BY_JOB.format("b"), id="gone"),
        pytest.param(
            [(before(B), B), (B, B_ENDED)],
            [B_ENDED],
            NOT_BY_JOB.format("b"),
            id="ended with an error in its grace period",
        ),
        pytest.param(
            [(pod("c", phase="Running"), crashed("c", 5, 5)), (before(B), B), (before(A), A)],
            [crashed("c", 5, 5), A, B],
            "pod c: container trainer exited with code 5",
            id="since another one has failed",
        ),
        pytest.param(
            [
                (before(going("old", at=1)), going("old", at=1)),
                (going("old", at=1), None),
                *((before(each), each) for each in (going("new", made="2026-01-01T00:00:04Z"), A)),
            ],
            [going("new", made="2026-01-01T00:00:04Z"), A],
            NOT_BY_JOB.format("new"),
            id="after a suspension, whose pods are gone",
        ),
    ],
)
def test_the_pod_that_was_deleted_first(
    changes: list[tuple[Object | None, Object | None]], present: list[Object], cause: str
) -> None:
    """A Job deletes its pods once one has failed, so the first one that is deleted was deleted by somebody else."""
    assert cause_of(jobset(restarts=1, conditions=[RESTARTING]), JOB, *present, changes=changes) == cause


def cause_of(*objects: Object, changes: list[tuple[Object | None, Object | None]]) -> str:
    """What is said of the last problem once pods have changed so."""
    plugin = JobSetPlugin(static_reader(*objects))
    [watch] = [each for each in plugin.watches() if each.resource == PODS]
    for old, new in changes:
        assert watch.predicate is not None
        watch.predicate(*(None if each is None else CachedObject.of(each) for each in (old, new)))
    *_, problem = plugin.train_job_status(train_job()).problems
    return problem.details()


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([jobset()], id="somebody has deleted the Job"),
        pytest.param([jobset(), JOB | {"metadata": JOB["metadata"] | {"uid": "new"}}], id="there is a new Job"),
        pytest.param(
            [jobset(), JOB | {"metadata": JOB["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:05Z"}}],
            id="the Job is being deleted",
        ),
        pytest.param(
            [
                jobset(spec={"replicatedJobs": [{"name": "node", "template": {"spec": {"activeDeadlineSeconds": 5}}}]}),
                JOB,
            ],
            id="the Job has a deadline",
        ),
    ],
)
def test_pods_that_their_job_takes_away(objects: list[Object]) -> None:
    """Nobody is said to have deleted pods that go with their Job, or may go at its deadline."""
    assert cause_of(*objects, B, changes=[(before(B), B)]) == "pod b was deleted; by whom is not known"


STOPPED = {
    "type": "Stopping",
    "status": "True",
    "reason": "StoppingPods",
    "message": "node-0 is stopping since 2026-01-01T00:00:05Z: pod a was deleted, and not by its Job",
    "lastTransitionTime": "2026-01-01T00:00:05Z",
}
SINCE = "since 2026-01-01T00:00:05Z"
STOPPING = ("Stopping", "StoppingPods", f"node-0 is stopping {SINCE}")
SUSPENDING = ("Stopping", "SuspendingPods", f"node-0 is stopping {SINCE}")
IS_KNOWN = "pod a was deleted, and not by its Job"
"""The condition says it already."""


@pytest.mark.parametrize(
    ("before", "objects", "problems"),
    [
        pytest.param({}, [jobset(ready=1), pod(phase="Running")], [], id="nobody goes"),
        pytest.param(
            {},
            [jobset(ready=1), going("a"), pod("b", phase="Running")],
            [(*STOPPING, "pod a was deleted; by whom is not known")],
            id="one goes",
        ),
        pytest.param(
            STOPPED | {"message": f"node-0, node-1 are stopping {SINCE}: {IS_KNOWN}"},
            [jobset(ready=1), going("b")],
            [(*STOPPING, IS_KNOWN)],
            id="one is left, of which a former manager has seen who was deleted first",
        ),
        pytest.param(
            {},
            [jobset(ready=1), *(going(f"a{index}", index=index) for index in range(6))],
            [
                (
                    *STOPPING[:2],
                    "at least 4 pods are stopping",
                    "pod a0 was deleted; by whom is not known, and 5 more were deleted within the same second",
                )
            ],
            id="many go",
        ),
        pytest.param(
            {},
            [jobset(restarts=1, conditions=[RESTARTING]), crashed("c", 3, 1), going("a"), pod("b", phase="Running")],
            [
                (
                    *STOPPING[:2],
                    f"node-0, node-0 are stopping {SINCE}",
                    "pod c: container trainer exited with code 3",
                ),
                ("Restarting", "RestartingJobSet", "restart 1", "pod c: container trainer exited with code 3"),
            ],
            id="all that the restart deletes, deleted yet or not",
        ),
        pytest.param(
            {}, [jobset(ready=1, spec=SMALLER), going("a", index=1)], [], id="given up by an elastic training"
        ),
        pytest.param(STOPPED, [jobset()], [(*STOPPING, IS_KNOWN)], id="gone, and its Job has yet to act"),
        pytest.param(
            STOPPED | {"reason": "NodeNotReady", "message": f"node a is lost\nStoppingPods: {STOPPED['message']}"},
            [jobset()],
            [(*STOPPING, IS_KNOWN)],
            id="given up with their node, and its Job has yet to act",
        ),
        pytest.param(
            STOPPED,
            [jobset(restarts=1, conditions=[RESTARTING])],
            [("Restarting", "RestartingJobSet", "restart 1", IS_KNOWN)],
            id="gone, and the JobSet restarts",
        ),
        pytest.param(
            STOPPED | {"lastTransitionTime": "2025-12-31T23:59:59Z"},
            [jobset(ready=1), going("b")],
            [(*STOPPING, "pod b was deleted; by whom is not known")],
            id="pods of an earlier attempt have stopped meanwhile",
        ),
        pytest.param(
            STOPPED,
            [jobset(active=1), pod("a", conditions=[HAS_SANDBOX])],
            [("Restarting", "RestartingPods", "pods that were stopped are made again", IS_KNOWN)],
            id="gone, and made again by its Job",
        ),
        pytest.param(STOPPED, [jobset(ready=1), pod(phase="Running")], [], id="gone, and ready again"),
        pytest.param(
            STOPPED | {"reason": "SuspendingPods"},
            [jobset(), going("a")],
            [(*SUSPENDING, "pod a was deleted; by whom is not known")],
            id="resumed while they go",
        ),
        pytest.param(STOPPED | {"reason": "SuspendingPods"}, [jobset()], [], id="resumed, and they are gone"),
    ],
)
def test_stopping(before: Object, objects: list[Object], problems: list[tuple[str, ...]]) -> None:
    """Pods that were deleted and have not ended stop, until what follows from it has begun."""
    status = {"conditions": [before] if before else []}
    found = JobSetPlugin(static_reader(*objects)).train_job_status(train_job(status=status)).problems
    assert [(str(each.type), each.reason, each.headline, each.details()) for each in found] == problems


def test_a_failure_that_a_former_manager_has_seen() -> None:
    """Who was deleted first is known from the condition once all pods are gone."""
    failed = jobset(conditions=[{"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "failed"}])
    stopped = train_job(status={"conditions": [STOPPED]})
    outcome = JobSetPlugin(static_reader(failed)).terminal_condition(stopped)
    assert outcome is not None
    assert outcome.culprit is not None
    assert outcome.culprit.headline() == "a: was deleted, and not by its Job"
    assert outcome.culprit.may_be_of_job


@pytest.mark.parametrize(
    ("wanted", "objects", "stops"),
    [
        pytest.param(True, [pod(phase="Running")], True, id="its JobSet is not suspended yet"),
        pytest.param(True, [pod(phase="Failed"), pod("b", phase="Succeeded")], False, id="they have ended"),
        pytest.param(True, [], False, id="gone"),
    ],
)
def test_suspended(wanted: bool, objects: list[Object], stops: bool) -> None:
    """A suspended training stops as long as pods of it have not ended."""
    reader = static_reader(jobset(metadata={"annotations": OURS}), *objects)
    found = JobSetPlugin(reader).train_job_status(train_job(suspend=wanted)).problems
    assert [each.reason for each in found] == (["SuspendingPods"] if stops else [])


def test_resumed_by_others() -> None:
    """Pods of a suspended training whose JobSet somebody has resumed run, and do not stop."""
    reader = static_reader(jobset(metadata={"annotations": BY_TRAIN_JOB}), pod(phase="Running"))
    assert list(JobSetPlugin(reader).train_job_status(train_job(suspend=True)).problems) == []


def kept(name: str, index: int, **state: Any) -> Object:
    """A pod whose training has ended, and whose proxy runs."""
    found = pod(name, phase="Running")
    states = {"trainer": state or {"terminated": {"exitCode": 0}}, "proxy": {"running": {}}}
    statuses = [{"name": each, "state": value} for each, value in states.items()]
    spec = {"nodeName": "a", "restartPolicy": "Never", "containers": [{"name": each} for each in states]}
    return found | {"spec": spec, "status": found["status"] | {"containerStatuses": statuses}}


@pytest.mark.parametrize(
    ("pods", "problems"),
    [
        pytest.param(
            [kept("a", 0), kept("b", 1)],
            [
                (
                    "Pending",
                    "EndedAndHeld",
                    "at least 2 pods have ended, and proxy keeps them",
                    "for example pod a: container trainer has ended with 0, and proxy still runs",
                )
            ],
            id="all",
        ),
        pytest.param(
            [kept("a", 0, terminated={"exitCode": 3})],
            [
                (
                    "Pending",
                    "EndedAndHeld",
                    "1 pod has ended, and proxy keeps it",
                    "pod a: container trainer has ended with 3, and proxy still runs",
                )
            ],
            id="failed",
        ),
        pytest.param([kept("a", 0), kept("b", 1, running={})], [], id="another one still trains"),
    ],
)
def test_pods_that_another_container_keeps(pods: list[Object], problems: list[tuple[str, ...]]) -> None:
    """A training that has ended in all pods of a Job does not end while other containers keep them."""
    assert reported(jobset(ready=1), *pods) == problems


def test_what_is_remembered_is_bounded() -> None:
    """The JobSet that has lost a pod last is the last to be forgotten."""
    gone = DeletedPods(static_reader())
    for index in range(REMEMBERED + 1):
        gone.problem_changed(CachedObject.of(crashed("a", 5, 1, uid=str(index))), None)
    restarted = [jobset(restarts=1), jobset(restarts=1)]
    for each, uid in zip(restarted, ("0", str(REMEMBERED)), strict=True):
        each["metadata"]["uid"] = uid
    found = [gone.first_failure(PodIndex(static_reader(), each), train_job(), attempt=0) for each in restarted]
    assert [failed and failed.pod for failed in found] == [None, "a"]
