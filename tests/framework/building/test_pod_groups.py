"""PodGroups: who is in the gang, what it needs, and when that may change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from tests.framework.static_reader import StaticReader
from trainer.api.labels import ANCESTOR_LABEL
from trainer.framework.building.extraction import extract
from trainer.framework.building.pod_groups import RUNTIME_CLASS, PodGroups
from trainer.framework.plugin_api.component import Component
from trainer.framework.plugin_api.extension_points import Watch
from trainer.framework.plugin_api.runtime_info import NodeRange
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.store import IndexFunction
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.workloads import JOBSETS

RESOURCE = Resource("scheduling.acme.com", "v1", "podgroups", "PodGroup")


def pod_groups(*objects: Object, **options: Any) -> PodGroups:
    """Those of a scheduler in a cluster with these objects."""
    return PodGroups(RESOURCE, "acme", "Acme", StaticReader(*objects, **options))


def built(
    *jobs: Object,
    spec: Object | None = None,
    policy: Object | None = None,
    objects: tuple[Object, ...] = (),
    elastic: NodeRange | None = None,
) -> Object:
    """The PodGroup of a TrainJob."""
    job = train_job(**(spec or {}))
    info = extract(job, runtime(*jobs, policy=policy))
    info.trainer.elastic = elastic
    (component,) = pod_groups(*objects).build(info, job, {})
    return component.object


def node(*, pod: Object | None = None, name: str = "node", count: int = 1, **requests: Any) -> Object:
    """A replicated Job with one container, which has requests."""
    container = {"name": "trainer", "image": "i", "resources": {"requests": requests}}
    return replicated_job(name, container, pod=pod, job={"parallelism": count})


def test_pod_group() -> None:
    """It has the name of the TrainJob, and as many members as there are nodes, with what these need."""
    assert built(node(cpu="500m", memory="1Gi"), policy={"numNodes": 3}) == {
        "apiVersion": "scheduling.acme.com/v1",
        "kind": "PodGroup",
        "metadata": {"name": "demo", "namespace": "default"},
        "spec": {"minMember": 3, "minResources": {"cpu": "1500m", "memory": "3Gi"}},
    }


@pytest.mark.parametrize(
    ("jobs", "arguments", "expected"),
    [
        pytest.param([node()], {}, {"minMember": 1}, id="nothing-requested"),
        pytest.param(
            [node(cpu=2)], {"spec": {"trainer": {"numNodes": 4}}}, {"minMember": 4, "minResources": {"cpu": "8"}},
            id="numNodes-of-the-TrainJob",
        ),
        pytest.param(
            [node(cpu=2, memory="1Gi")],
            {"spec": {"trainer": {"resourcesPerNode": {"requests": {"cpu": 3}, "limits": {"nvidia.com/gpu": 2}}}}},
            {"minMember": 1, "minResources": {"cpu": "3", "memory": "1Gi", "nvidia.com/gpu": "2"}},
            id="resources-of-the-TrainJob",
        ),
        pytest.param(
            [node(name="model-initializer", cpu=8), node(cpu=1), node(name="finalizer", cpu=9, count=2)],
            {"policy": {"numNodes": 2}},
            {"minMember": 2, "minResources": {"cpu": "2"}},
            id="steps-before-and-after",
        ),
        pytest.param(
            [node(name="launcher", cpu=1), node(cpu=4)],
            {"policy": {"numNodes": 2, "mpi": {}}},
            {"minMember": 2, "minResources": {"cpu": "8"}},
            id="launcher",
        ),
        pytest.param(
            [node(name="launcher", cpu=1), node(cpu=4)],
            {"policy": {"numNodes": 2, "mpi": {"runLauncherAsNode": True}}},
            {"minMember": 3, "minResources": {"cpu": "9"}},
            id="launcher-that-trains",
        ),
        pytest.param(
            [node(cpu=1, count=4)],
            {"elastic": NodeRange(2, 8)},
            {"minMember": 2, "minResources": {"cpu": "2"}},
            id="elastic",
        ),
        pytest.param(
            [node(pod={"overhead": {"cpu": "250m"}}, cpu=1)],
            {"policy": {"numNodes": 2}},
            {"minMember": 2, "minResources": {"cpu": "2500m"}},
            id="overhead-of-each-pod",
        ),
        pytest.param(
            [
                node(
                    pod={"initContainers": [{"name": "s", "image": "i", "restartPolicy": "Always",
                                             "resources": {"requests": {"cpu": 1}}}]},
                    cpu=1,
                )
            ],
            {},
            {"minMember": 1, "minResources": {"cpu": "2"}},
            id="sidecar-of-the-runtime",
        ),
    ],
)  # fmt: skip
def test_members(jobs: list[Object], arguments: dict[str, Any], expected: Object) -> None:
    """The gang are the training nodes, and nothing that they wait for, or that waits for them."""
    assert built(*jobs, **arguments)["spec"] == expected


@pytest.mark.parametrize("version", ["v1alpha1", "v2alpha1"])
def test_resources_without_requests(version: str) -> None:
    """A limit without a request counts as one and a sidecar beside the node, whatever version the cluster serves."""
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    sidecar = {"name": "agent", "image": "i", "restartPolicy": "Always", "resources": resources}
    template = replicated_job("node", {"name": "node", "image": "i"}, pod={"initContainers": [sidecar]})
    template["template"]["metadata"] = {"labels": {ANCESTOR_LABEL: "trainer"}}
    limits = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": 4}
    job = train_job(trainer={"numNodes": 4, "resourcesPerNode": {"limits": limits}})
    job = job.model_copy(update={"api_version": f"trainer.kubeflow.org/{version}"})
    info = extract(job, runtime(template, policy={"numNodes": 1, "torch": {}}))
    (component,) = pod_groups().build(info, job, {})
    expected = {"cpu": "34", "memory": "132Gi", "nvidia.com/gpu": "16"}
    assert component.object["spec"] == {"minMember": 4, "minResources": expected}


def limit_range(namespace: str = "default") -> Object:
    """Containers of the namespace request 200m CPUs by default."""
    limits = [{"type": "Container", "defaultRequest": {"cpu": "200m"}}]
    return {"kind": "LimitRange", "metadata": {"name": "l", "namespace": namespace}, "spec": {"limits": limits}}


def runtime_class(name: str = "kata") -> Object:
    """Sandboxes that take some memory."""
    overhead = {"podFixed": {"memory": "128Mi"}}
    return {"kind": "RuntimeClass", "metadata": {"name": name}, "handler": name, "overhead": overhead}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param([limit_range()], {"cpu": "400m"}, id="limit-range"),
        pytest.param([runtime_class()], {"memory": "256Mi"}, id="runtime-class"),
    ],
)
def test_cluster(objects: list[Object], expected: Object | None) -> None:
    """LimitRanges of the namespace and the RuntimeClass of the pods add to what they need."""
    group = built(node(pod={"runtimeClassName": "kata"}), policy={"numNodes": 2}, objects=tuple(objects))
    assert group["spec"].get("minResources") == expected
    assert group["metadata"]["annotations"] == {RUNTIME_CLASS: "kata"}


def component(*objects: Object, suspend: bool) -> Component:
    """What is built of a TrainJob."""
    job = train_job(suspend=suspend)
    (built,) = pod_groups(*objects).build(extract(job, runtime()), job, {})
    return built


def jobset(name: str = "demo", *, suspend: bool) -> Object:
    """The JobSet of a TrainJob."""
    return {
        "apiVersion": JOBSETS.api_version,
        "kind": JOBSETS.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"suspend": suspend} if suspend else {},
    }


@pytest.mark.parametrize(
    ("objects", "suspend", "changes"),
    [
        pytest.param([], False, True, id="no-jobset-yet"),
        pytest.param([jobset(suspend=False)], True, True, id="to-be-suspended"),
        pytest.param([jobset(suspend=False)], False, False, id="running"),
    ],
)
def test_revision(objects: list[Object], suspend: bool, changes: bool) -> None:
    """The PodGroup follows changes until its pods run, and is left alone from then on."""
    wanted = component(*objects, suspend=suspend)
    assert wanted.revise is not None
    revision = wanted.revise({"metadata": {"name": "demo"}, "spec": {"minMember": 7}})
    assert (revision is not None and revision.object == wanted.object) == changes


def pod_group(name: str, *, kind: str = "TrainJob", runtime_class: str | None = None) -> Object:
    """A PodGroup that is there."""
    metadata = {
        "name": name,
        "namespace": "default",
        "ownerReferences": [{"apiVersion": "x/v1", "kind": kind, "name": name, "uid": "u", "controller": True}],
        "annotations": {RUNTIME_CLASS: runtime_class} if runtime_class else {},
    }
    return {"apiVersion": RESOURCE.api_version, "kind": RESOURCE.kind, "metadata": metadata, "spec": {"minMember": 1}}


CLUSTER = (
    pod_group("waits"),
    jobset("waits", suspend=True),
    pod_group("waits-in-kata", runtime_class="kata"),
    jobset("waits-in-kata", suspend=True),
    pod_group("runs-in-kata", runtime_class="kata"),
    jobset("runs-in-kata", suspend=False),
    pod_group("other", kind="Job", runtime_class="kata"),
)


def watch_of(kind: str, groups: PodGroups) -> Watch:
    """One of the watches."""
    return next(watch for watch in groups.watches() if watch.resource.kind == kind)


def indexes() -> dict[str, IndexFunction]:
    """All indexes that the watches ask for."""
    return {name: index for watch in pod_groups().watches() for name, index in watch.indexes.items()}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(limit_range(), {"waits", "waits-in-kata"}, id="limit-range"),
        pytest.param(limit_range("other"), set(), id="limit-range-of-another-namespace"),
        pytest.param(runtime_class(), {"waits-in-kata"}, id="runtime-class"),
    ],
)
def test_triggers(changed: Object, expected: set[str]) -> None:
    """LimitRange and RuntimeClass have the suspended TrainJobs looked at that they matter to."""
    watch = watch_of(changed["kind"], pod_groups(*CLUSTER, indexes=indexes()))
    assert watch.train_jobs is not None
    assert {key.name for key in watch.train_jobs(CachedObject.of(changed))} == expected


def test_triggers_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs between two events: the JobSets of thousands of TrainJobs are not decoded for it."""
    gangs = [each for number in range(1000) for each in (pod_group(f"g{number}"), jobset(f"g{number}", suspend=True))]
    watch = watch_of("LimitRange", pod_groups(*gangs, indexes=indexes()))
    monkeypatch.setattr(StaticReader, "get", lambda *_: pytest.fail("an object was decoded"))
    assert watch.train_jobs is not None
    assert len(list(watch.train_jobs(CachedObject.of(limit_range())))) == 1000


def test_watches() -> None:
    """The kind of the PodGroups may be missing; what is only read triggers nothing."""
    watches = {watch.resource.kind: watch for watch in pod_groups().watches()}
    assert {kind for kind, watch in watches.items() if watch.optional} == {"PodGroup"}
    assert {kind for kind, watch in watches.items() if watch.triggers} == {"PodGroup", "LimitRange", "RuntimeClass"}


def test_missing_kind() -> None:
    """What nobody would schedule is refused with the CRD to install."""
    info = extract(train_job(), runtime())
    assert list(pod_groups().check(info)) == []
    (error,) = pod_groups(unserved=[RESOURCE]).check(info)
    assert str(error) == (
        "ClusterTrainingRuntime/blueprint spec.podGroupPolicy.acme: Forbidden: the cluster does not have "
        "podgroups.scheduling.acme.com; install Acme with its CRD"
    )
