"""What events below a TrainJob say about why it waits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import train_job
from tests.framework.static_reader import StaticReader
from tests.plugins.test_jobset import owned_jobset
from tests.plugins.test_jobset_pod_problems import COUNTS, HAS_SANDBOX, pod, unscheduled, unseen
from trainer.framework.plugin_api.extension_points import Watch
from trainer.framework.plugin_api.reports import PodProblem
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import EVENTS, JOBS, PODS, Resource
from trainer.plugins.jobset import JobSetPlugin

JOB_UID = "uid-of-node"
INDEXES = {name: index for watch in JobSetPlugin(StaticReader()).watches() for name, index in watch.indexes.items()}


def jobset(*, replicas: int = 1, pods: Object | None = None, policies: Any = (), **counts: int) -> Object:
    """The JobSet with one replicated Job of Jobs of two pods."""
    template = {"spec": pods or {"containers": [{"name": "trainer"}]}}
    job = {"spec": {"parallelism": 2, "completions": 2, "template": template}}
    spec = {"replicatedJobs": [{"name": "node", "replicas": replicas, "template": job}]}
    if policies:
        spec["volumeClaimPolicies"] = policies
    obj = owned_jobset({"replicatedJobsStatus": [COUNTS | counts]}) | {"spec": spec}
    obj["metadata"]["uid"] = "uid-of-jobset"
    return obj


def job(index: int = 0, uid: str = JOB_UID, created: str = "2026-01-01T00:00:00Z") -> Object:
    """A Job of the JobSet, as its metadata."""
    labels = {"jobset.sigs.k8s.io/jobset-name": "demo", "jobset.sigs.k8s.io/replicatedjob-name": "node"}
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "demo", "uid": "uid-of-jobset"}
    metadata = {
        "name": f"demo-node-{index}",
        "namespace": "default",
        "uid": uid,
        "labels": labels,
        "creationTimestamp": created,
        "ownerReferences": [owner | {"controller": True}],
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}


def event(
    kind: str,
    name: str,
    reason: str,
    message: str = "no luck",
    *,
    uid: str = "",
    seen: str = "2026-01-01T00:00:10Z",
    namespace: str = "default",
    **fields: Any,
) -> Object:
    """An event about an object."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{reason}.{len(message)}.{uid}", "namespace": namespace},
        "involvedObject": {"kind": kind, "namespace": namespace, "name": name} | ({"uid": uid} if uid else {}),
        "reason": reason,
        "message": message,
        "type": "Warning",
        "lastTimestamp": seen,
    } | fields


def failed_create(message: str = "no luck", **fields: Any) -> Object:
    """An event of the Job controller about the first Job."""
    return event("Job", "demo-node-0", "FailedCreate", f"Error creating: {message}", **{"uid": JOB_UID} | fields)


def made(name: str, *, failed: bool = False, created: str = "2026-01-01T00:00:01Z") -> Object:
    """A pod of the first Job."""
    obj = pod(name, phase="Failed" if failed else "Running")
    obj["metadata"]["creationTimestamp"] = created
    return obj


def found(*objects: Object, **spec: Any) -> list[PodProblem]:
    """The problems of the TrainJob."""
    reader = StaticReader(*objects, indexes=INDEXES, resources=[JOBS, EVENTS])
    return list(JobSetPlugin(reader).train_job_status(train_job(**spec)).problems)


def lines(*objects: Object, **spec: Any) -> list[str]:
    """The problems as people read them."""
    return [f"{each.reason}: {each.headline}: {each.details()}" for each in found(*objects, **spec)]


NO_ACCOUNT = (
    'pods "demo-node-0-0-" is forbidden: error looking up service account default/no-such-account: '
    'serviceaccount "no-such-account" not found'
)
NO_PRIORITY = 'pods "demo-node-0-0-" is forbidden: no PriorityClass with name urgent was found'
QUOTA = (
    'pods "demo-node-0-0-abcde" is forbidden: exceeded quota: team, requested: pods=1,requests.nvidia.com/gpu=8, '
    "used: pods=0,requests.nvidia.com/gpu=0, limited: pods=0,requests.nvidia.com/gpu=4"
)
WEBHOOK = (
    'Internal error occurred: failed calling webhook "pods.acme.com": failed to call webhook: '
    'Post "https://acme.acme.svc:443/pods?timeout=10s": no endpoints available for service "acme"'
)
NODE = {"targetJobs": [{"name": "node"}]}
GPUS = {"limits": {"nvidia.com/gpu": 8}}
RUNTIME = "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs"


@pytest.mark.parametrize(
    ("message", "spec", "pods", "field"),
    [
        pytest.param(
            NO_ACCOUNT,
            {"podSpecOverrides": [NODE | {"serviceAccountName": "no-such-account"}]},
            None,
            "spec.podSpecOverrides[0].serviceAccountName: ",
            id="service-account",
        ),
        pytest.param(
            NO_PRIORITY,
            {},
            {"priorityClassName": "urgent"},
            f"{RUNTIME}[0].template.spec.template.spec.priorityClassName: ",
            id="priority-class",
        ),
        pytest.param(
            QUOTA,
            {"trainer": {"resourcesPerNode": GPUS}},
            {"containers": [{"name": "trainer", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]},
            "spec.trainer.resourcesPerNode.limits[nvidia.com/gpu]: 8 requested: ",
            id="quota",
        ),
        pytest.param(WEBHOOK, {}, None, "", id="webhook"),
    ],
)
def test_pods_that_are_refused(message: str, spec: Any, pods: Object | None, field: str) -> None:
    """The event of their Job says why, and the field that asks for it comes first."""
    said = lines(jobset(pods=pods), job(), failed_create(message), **spec)
    where = "FailedCreate: at least 2 pods cannot be created: "
    assert said == [f"{where}{field}Job demo-node-0: Error creating: {message}"]


@pytest.mark.parametrize(
    ("objects", "reasons"),
    [
        pytest.param([jobset(), job()], [], id="no-event"),
        pytest.param([jobset(), job(), failed_create()], ["at least 2 pods cannot be created"], id="no-pods"),
        pytest.param([jobset(), job(), failed_create(), made("a")], ["1 pod cannot be created"], id="one-of-two"),
        pytest.param([jobset(), job(), failed_create(), made("a"), made("b")], [], id="pods-came"),
        pytest.param([jobset(ready=1), job(), failed_create()], [], id="ready"),
        pytest.param([jobset(succeeded=1), job(), failed_create()], [], id="ended"),
        pytest.param([jobset(), job(), failed_create(uid="earlier")], [], id="an-earlier-job-of-the-name"),
        pytest.param([jobset(), job(), failed_create(uid="")], [], id="says-not-which-job"),
        pytest.param([jobset(), job(), failed_create(namespace="other")], [], id="another-namespace"),
        pytest.param([jobset(), failed_create()], [], id="no-job"),
        pytest.param(
            [
                jobset(),
                job(),
                failed_create(seen="2026-01-01T00:00:10Z"),
                made("a", failed=True, created="2026-01-01T00:00:11Z"),
                made("b"),
            ],
            [],
            id="a-pod-was-made-and-failed-since",
        ),
        pytest.param(
            [
                jobset(),
                job(),
                failed_create(seen="2026-01-01T00:00:10Z"),
                made("a", failed=True, created="2026-01-01T00:00:09Z"),
                made("b"),
            ],
            ["1 pod cannot be created"],
            id="a-failed-pod-cannot-be-made-again",
        ),
        pytest.param(
            [
                jobset(),
                job(),
                failed_create(
                    seen="",
                    eventTime="2026-01-01T00:00:10.123456Z",
                    series={"lastObservedTime": "2026-01-01T00:00:12.5Z"},
                ),
                made("a", failed=True, created="2026-01-01T00:00:11Z"),
                made("b"),
            ],
            ["1 pod cannot be created"],
            id="events-of-the-new-api",
        ),
    ],
)
def test_until_the_pods_are_there(objects: list[Object], reasons: list[str]) -> None:
    """A complaint counts while pods of that very Job are missing, and none was made after it."""
    assert [each.headline for each in found(*objects) if each.reason == "FailedCreate"] == reasons


REFUSED = 'job "demo-node-1" creation failed with error: jobs.batch "demo-node-1" is forbidden: exceeded quota'


@pytest.mark.parametrize(
    ("reason", "jobs", "seen", "reported"),
    [
        pytest.param("JobCreationFailed", [job()], "2026-01-01T00:00:10Z", True, id="a-job"),
        pytest.param("PVCCreationFailed", [], "2026-01-01T00:00:10Z", True, id="a-claim"),
        pytest.param("RestartJobSetFailurePolicyAction", [], "2026-01-01T00:00:10Z", False, id="another-event"),
        pytest.param(
            "JobCreationFailed",
            [job(created="2026-01-01T00:00:10Z")],
            "2026-01-01T00:00:10Z",
            False,
            id="a-job-came-in-the-same-second",
        ),
    ],
)
def test_jobs_that_are_refused(reason: str, jobs: list[Object], seen: str, reported: bool) -> None:
    """The event of the JobSet says why, as long as Jobs are missing."""
    complaint = event("JobSet", "demo", reason, REFUSED, uid="uid-of-jobset", seen=seen)
    expected = [f"{reason}: Jobs cannot be created: JobSet demo: {REFUSED}"] if reported else []
    assert lines(jobset(replicas=2), *jobs, complaint) == expected
    of_another = complaint | {"involvedObject": complaint["involvedObject"] | {"uid": "earlier"}}
    assert lines(jobset(replicas=2), *jobs, of_another) == []


@pytest.mark.parametrize("reason", ["FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"])
def test_pods_without_a_volume_or_a_network(reason: str) -> None:
    """The pods themselves do not say so; the kubelet's events do, until the pods have got it."""
    pods = [pod("a"), pod("b"), pod("c"), pod("d", conditions=[HAS_SANDBOX])]
    for each in pods:
        each["metadata"]["uid"] = f"uid-of-{each['metadata']['name']}"
    events = [event("Pod", name, reason, uid=f"uid-of-{name}") for name in "bcd"]
    said = f"{reason}: at least 2 pods cannot start: for example pod b: no luck"
    assert lines(jobset(), *pods, *events) == [said]
    assert lines(jobset(), *pods, *[event("Pod", name, reason, uid="another") for name in "bcd"]) == []


@pytest.mark.parametrize("size", [2, 200])
def test_pods_that_start_without_trouble(size: int) -> None:
    """However many there are, and events of other namespaces about them, they are not looked up one by one."""

    class Counting(StaticReader):
        asked = 0

        def keys(self, resource: Resource, index: str, value: str) -> set[ObjectKey]:
            self.asked += resource == EVENTS
            return super().keys(resource, index, value)

    pods = [pod(f"node-{number}") for number in range(size)]
    events = [event("Pod", "node-0", "FailedMount", namespace="other"), failed_create(namespace="other")]
    reader = Counting(jobset(replicas=2), job(), *pods, *events, indexes=INDEXES, resources=[JOBS, EVENTS])
    assert list(JobSetPlugin(reader).train_job_status(train_job()).problems) == []
    assert reader.asked <= 6


def claim(name: str = "data") -> Object:
    """The spec of pods with a claim."""
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


NO_CLASS = 'storageclass.storage.k8s.io "fast" not found'
UNBOUND = unscheduled(message="0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.")
OWN = NODE | {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
POLICIES = [{"templates": [{"metadata": {"name": "data"}}]}]
EPHEMERAL = {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]}
UNSCHEDULABLE = "Unschedulable: 1 pod cannot start: "


@pytest.mark.parametrize(
    ("objects", "spec", "said"),
    [
        pytest.param(
            [jobset(pods=claim()), unseen(), event("PersistentVolumeClaim", "data", "ProvisioningFailed", NO_CLASS)],
            {"podSpecOverrides": [OWN]},
            "spec.podSpecOverrides[0].volumes[0].persistentVolumeClaim.claimName: claim data: " + NO_CLASS,
            id="no-storage-class",
        ),
        pytest.param(
            [jobset(pods=claim()), UNBOUND, event("PersistentVolumeClaim", "data", "ProvisioningFailed", NO_CLASS)],
            {},
            f"{RUNTIME}[0].template.spec.template.spec.volumes[0].persistentVolumeClaim.claimName: claim data: "
            + NO_CLASS,
            id="which-the-scheduler-says-as-well",
        ),
        pytest.param(
            [
                jobset(policies=POLICIES),
                unseen(),
                event("PersistentVolumeClaim", "data-demo", "ProvisioningFailed", NO_CLASS),
            ],
            {},
            "claim data-demo: " + NO_CLASS,
            id="a-claim-of-jobset",
        ),
        pytest.param(
            [
                jobset(pods=EPHEMERAL),
                unseen("p"),
                event("PersistentVolumeClaim", "p-v", "ProvisioningFailed", NO_CLASS),
            ],
            {},
            "claim p-v: " + NO_CLASS,
            id="a-claim-of-a-pod",
        ),
    ],
)
def test_claims_that_are_not_bound(objects: list[Object], spec: Any, said: str) -> None:
    """Pods without a node wait for their claims, and the event of the claim says why."""
    reported = [line for line in lines(*objects, **spec) if not line.startswith(UNSCHEDULABLE)]
    assert reported == [f"ProvisioningFailed: a volume claim is not bound: {said}"]


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([jobset(pods=claim()), pod()], id="has-a-node"),
        pytest.param([jobset(pods=claim("other")), unseen()], id="another-claim"),
        pytest.param(
            [jobset(pods=claim()), unscheduled(message="0/1 nodes are available: 1 Insufficient cpu")], id="no-room"
        ),
    ],
)
def test_claims_that_nobody_waits_for(objects: list[Object]) -> None:
    """What has a node has its claims, and a scheduler that lacks something else says so."""
    complaint = event("PersistentVolumeClaim", "data", "ProvisioningFailed", NO_CLASS)
    assert "ProvisioningFailed" not in [each.reason for each in found(*objects, complaint)]


@pytest.mark.parametrize(
    ("reason", "kind", "debounce"),
    [
        pytest.param("ProvisioningFailed", "Warning", 0, id="failed"),
        pytest.param("ExternalProvisioning", "Normal", 30, id="takes-its-time"),
        pytest.param("FailedBinding", "Normal", 30, id="no-volume"),
    ],
)
def test_claims_that_take_their_time(reason: str, kind: str, debounce: float) -> None:
    """A volume that is being made is no news for a while, and no scheduler is missing."""
    complaint = event("PersistentVolumeClaim", "data", reason, type=kind)
    (only,) = found(jobset(pods=claim()), unseen(), complaint)
    assert (only.reason, only.debounce) == (reason, debounce)


class CountingReader(StaticReader):
    """Counts what is asked of the index of events."""

    def __init__(self, *objects: Object, **options: Any) -> None:
        super().__init__(*objects, **options)
        self.asked = 0

    def keys(self, resource: Resource, index: str, value: str) -> set[ObjectKey]:
        """See `Reader.keys`."""
        self.asked += index == "jobset-events"
        return super().keys(resource, index, value)


@pytest.mark.parametrize(("pods", "volumes"), [(10, 10), (100, 10), (10, 100)])
def test_claims_of_many_pods(pods: int, volumes: int) -> None:
    """The work grows with the pods and with the volumes, not with one times the other."""
    template = {"volumes": [{"name": f"v{number}", "ephemeral": {}} for number in range(volumes)]}
    reader = CountingReader(jobset(pods=template), *(unseen(f"p{number}") for number in range(pods)), indexes=INDEXES)
    list(JobSetPlugin(reader).train_job_status(train_job()).problems)
    assert reader.asked <= 8 * volumes + 4 * pods


def test_a_scheduler_that_does_not_run() -> None:
    """After a while it is said of pods that no scheduler has looked at, with the field that names the scheduler."""
    (only,) = found(jobset(pods={"schedulerName": "coscheduling"}), unseen("a"), unseen("b"))
    assert (only.reason, only.headline, only.debounce) == ("NoScheduler", "at least 2 pods cannot start", 30)
    assert only.details() == (
        f"{RUNTIME}[0].template.spec.template.spec.schedulerName: for example pod a: no scheduler called coscheduling "
        "has looked at it; is one installed under this name, and does it run?"
    )


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([pod("a")], id="has-a-node"),
        pytest.param([unseen("b"), unscheduled()], id="which-has-a-word-for-others"),
        pytest.param(
            [pod("a", conditions=[{"type": "PodScheduled", "status": "True"}]) | {"spec": {}}], id="has-looked"
        ),
    ],
)
def test_a_scheduler_that_runs(objects: list[Object]) -> None:
    """Of a gang some pods have to wait for others of which the scheduler says why they cannot run."""
    assert "NoScheduler" not in [each.reason for each in found(jobset(), *objects)]


def watches_of(plugin: JobSetPlugin, kind: str) -> list[Watch]:
    """What the plugin watches of a kind."""
    return [watch for watch in plugin.watches() if watch.resource.kind == kind]


def test_events_that_are_watched() -> None:
    """The server sends those of a few kinds and reasons, whatever else a cluster has."""
    harmless = ("Provisioning", "ProvisioningSucceeded", "WaitForFirstConsumer", "WaitForPodScheduled")
    assert [watch.selection.field_selector for watch in watches_of(JobSetPlugin(StaticReader()), "Event")] == [
        "involvedObject.kind=Pod,reason=FailedMount",
        "involvedObject.kind=Pod,reason=FailedAttachVolume",
        "involvedObject.kind=Pod,reason=FailedCreatePodSandBox",
        "involvedObject.kind=Job,reason=FailedCreate",
        "involvedObject.kind=JobSet,type=Warning",
        ",".join(["involvedObject.kind=PersistentVolumeClaim", *(f"reason!={reason}" for reason in harmless)]),
    ]


ALONE = pod("alone")
ALONE["metadata"]["labels"] = {}


@pytest.mark.parametrize(
    ("obj", "owners"),
    [
        pytest.param(event("Pod", "a", "FailedMount"), [("default", "demo")], id="pod"),
        pytest.param(event("Pod", "a", "FailedMount", namespace="other"), [], id="pod-of-another-namespace"),
        pytest.param(event("Pod", "alone", "FailedMount"), [], id="pod-of-no-jobset"),
        pytest.param(event("Pod", "gone", "FailedMount"), [], id="gone"),
        pytest.param(failed_create(), [("default", "demo")], id="job"),
        pytest.param(event("Job", "other", "FailedCreate"), [], id="job-of-no-jobset"),
        pytest.param(event("JobSet", "demo", "JobCreationFailed"), [("default", "demo")], id="jobset"),
        pytest.param(event("JobSet", "demo", "Restarting"), [], id="another-reason"),
        pytest.param(event("PersistentVolumeClaim", "data", "FailedBinding"), [("default", "demo")], id="claim"),
        pytest.param(event("PersistentVolumeClaim", "other", "FailedBinding"), [], id="claim-of-nobody"),
    ],
)
def test_events_wake_the_train_job(obj: Object, owners: list[tuple[str, str]]) -> None:
    """That of the object that they are about, in their own namespace; repeats as well, their end does not."""
    objects = (jobset(pods=claim()), job(), pod("a"), ALONE)
    watch, *_ = watches_of(JobSetPlugin(StaticReader(*objects, indexes=INDEXES)), "Event")
    assert watch.train_jobs is not None
    assert watch.predicate is not None
    cached = CachedObject.of(obj)
    assert list(watch.train_jobs(cached)) == owners
    assert watch.predicate(None, cached)
    assert watch.predicate(cached, cached)
    assert not watch.predicate(cached, None)


def test_a_job_that_comes_after_its_event() -> None:
    """The watches are independent, so the Job wakes the TrainJob then; others do not."""
    for objects, is_due in (((failed_create(),), True), ((), False)):
        (watch,) = watches_of(JobSetPlugin(StaticReader(*objects, indexes=INDEXES)), "Job")
        assert watch.predicate is not None
        assert watch.train_jobs is not None
        assert watch.predicate(None, CachedObject.of(job())) is is_due
        assert list(watch.train_jobs(CachedObject.of(job()))) == [("default", "demo")]


@pytest.mark.parametrize(
    ("objects", "old", "new", "is_due"),
    [
        pytest.param([jobset()], None, unseen(), False, id="pods-before-their-jobset-tells-of-them"),
        pytest.param([jobset(active=1)], None, unseen(), True, id="late-pod-without-scheduler"),
        pytest.param([jobset(active=1)], None, pod(), False, id="late-pod-with-a-node"),
        pytest.param([jobset(), job(), failed_create()], None, unseen(), True, id="a-pod-that-was-missing"),
        pytest.param([jobset(), unseen()], pod(), pod(), False, id="nothing-new"),
    ],
)
def test_pods_that_end_a_wait(objects: list[Object], old: Object | None, new: Object, is_due: bool) -> None:
    """Fine pods cost no reconcile, unless their JobSet has been waiting for just that."""
    plugin = JobSetPlugin(StaticReader(*objects, indexes=INDEXES))
    (watch,) = [each for each in plugin.watches() if each.resource == PODS]
    list(plugin.train_job_status(train_job()).problems)
    assert watch.predicate is not None
    assert watch.predicate(None if old is None else CachedObject.of(old), CachedObject.of(new)) is is_due
