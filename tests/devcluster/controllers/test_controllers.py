"""All controllers together on the real API server; the test plays the kubelet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.devcluster.controllers.conftest import NAMESPACE, Cluster
from trainer.kube.client import DeleteOptions, Propagation
from trainer.kube.objects import is_condition_true, name_of
from trainer.kube.resource import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    JOBS,
    JOBSETS,
    NAMESPACES,
    PODS,
    SERVICES,
    Resource,
)

if TYPE_CHECKING:
    from trainer.kube.objects import Object

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


def make_jobset(replicas: int = 1, **spec: Any) -> Object:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
    template = {"spec": {"parallelism": 2, "completions": 2, "backoffLimit": 0, "template": pod}}
    return {
        "metadata": {"name": "js"},
        "spec": {"replicatedJobs": [{"name": "node", "replicas": replicas, "template": template}], **spec},
    }


async def count(cluster: Cluster, resource: Resource, expected: int) -> bool:
    return len(await cluster.all(resource)) == expected


async def is_true(cluster: Cluster, condition: str) -> bool:
    return is_condition_true(await cluster.client.get(JOBSETS, "js", NAMESPACE), condition)


async def gone(cluster: Cluster, *resources: Resource) -> bool:
    return not any([await cluster.all(resource) for resource in resources])


async def test_jobset_runs_to_completion(cluster: Cluster) -> None:
    """JobSet makes Jobs, Jobs make pods, and success travels back up."""
    async with cluster.controllers():
        await cluster.create(JOBSETS, make_jobset(replicas=2))
        await cluster.until(lambda: count(cluster, PODS, 4))
        await cluster.set_phase("Running")
        await cluster.set_phase("Succeeded")
        await cluster.until(lambda: is_true(cluster, "Completed"))
    jobs = await cluster.all(JOBS)
    assert [job["status"]["completedIndexes"] for job in jobs] == ["0,1", "0,1"]
    assert not any(pod["metadata"].get("finalizers") for pod in await cluster.all(PODS))


async def test_controllers_that_are_killed_anywhere_converge(cluster: Cluster) -> None:
    """New controllers with an empty memory take over at every stage; nothing is made or counted twice."""
    async with cluster.controllers():
        await cluster.create(JOBSETS, make_jobset())
    async with cluster.controllers():
        await cluster.until(lambda: count(cluster, PODS, 2))
    names = {name_of(pod) for pod in await cluster.all(PODS)}
    await cluster.set_phase("Running")
    await cluster.set_phase("Succeeded")
    async with cluster.controllers():
        pass
    async with cluster.controllers():
        await cluster.until(lambda: is_true(cluster, "Completed"))
    assert {name_of(pod) for pod in await cluster.all(PODS)} == names
    [job] = await cluster.all(JOBS)
    assert job["status"]["succeeded"] == 2
    assert "failed" not in job["status"]
    reasons = [event["reason"] for event in await cluster.all(EVENTS)]
    assert reasons.count("Completed") <= 1


async def test_failed_jobset_restarts_once(cluster: Cluster) -> None:
    """The first failure replaces all Jobs and pods, the second one fails the JobSet."""
    async with cluster.controllers():
        await cluster.create(JOBSETS, make_jobset(failurePolicy={"maxRestarts": 1}))
        await cluster.until(lambda: count(cluster, PODS, 2))
        first = {name_of(pod) for pod in await cluster.all(PODS)}
        await cluster.set_phase("Failed")

        async def restarted() -> bool:
            names = {name_of(pod) for pod in await cluster.all(PODS)}
            return len(names) == 2 and not names & first

        await cluster.until(restarted)
        await cluster.set_phase("Failed")
        await cluster.until(lambda: is_true(cluster, "Failed"))
    jobset = await cluster.client.get(JOBSETS, "js", NAMESPACE)
    assert jobset["status"]["restarts"] == 1
    reason = {condition["type"]: condition["reason"] for condition in jobset["status"]["conditions"]}["Failed"]
    assert reason == "ReachedMaxRestarts"


@pytest.mark.parametrize(
    "propagation", [Propagation.BACKGROUND, Propagation.FOREGROUND], ids=["background", "foreground"]
)
async def test_deleted_jobset_leaves_nothing(cluster: Cluster, propagation: Propagation) -> None:
    """Jobs, Service and tracked pods go with their owner."""
    async with cluster.controllers():
        await cluster.create(JOBSETS, make_jobset())
        await cluster.until(lambda: count(cluster, PODS, 2))
        await cluster.client.delete(JOBSETS, "js", NAMESPACE, DeleteOptions(propagation=propagation))
        await cluster.until(lambda: gone(cluster, JOBSETS, JOBS, PODS, SERVICES))


async def test_orphaned_pods_live_on(cluster: Cluster) -> None:
    """They lose owner reference and finalizer, so that a later deletion is not held up."""
    async with cluster.controllers():
        pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
        await cluster.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": pod}})
        await cluster.until(lambda: count(cluster, PODS, 1))
        await cluster.client.delete(JOBS, "j", NAMESPACE, DeleteOptions(propagation=Propagation.ORPHAN))
        await cluster.until(lambda: gone(cluster, JOBS))

        async def released() -> bool:
            [orphan] = await cluster.all(PODS)
            return not orphan["metadata"].get("finalizers") and not orphan["metadata"].get("ownerReferences")

        await cluster.until(released)


async def test_dependents_of_custom_resources_are_collected(cluster: Cluster) -> None:
    """A definition that appears later is watched from then on, and its end is survived."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    definition: Object = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version],
        },
    }
    async with cluster.controllers():
        for _ in range(2):
            await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition)

            async def established() -> bool:
                crd = await cluster.client.get(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com")
                return is_condition_true(crd, "Established")

            await cluster.until(established)
            widget = await cluster.create(WIDGETS, {"metadata": {"name": "w"}})
            owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": widget["metadata"]["uid"]}
            await cluster.create(CONFIG_MAPS, {"metadata": {"name": "child", "ownerReferences": [owner]}})
            await cluster.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com")

            async def collected() -> bool:
                names = {name_of(obj) for obj in await cluster.all(CONFIG_MAPS)}
                crds = {name_of(obj) for obj in await cluster.all(CUSTOM_RESOURCE_DEFINITIONS, None)}
                return "child" not in names and "widgets.example.com" not in crds

            await cluster.until(collected)


async def test_deleted_namespace_is_emptied(cluster: Cluster) -> None:
    """Everything in it goes, finalizers of tracked pods included, and then the namespace."""
    async with cluster.controllers():
        await cluster.create(JOBSETS, make_jobset())
        await cluster.until(lambda: count(cluster, PODS, 2))
        await cluster.client.delete(NAMESPACES, NAMESPACE)

        async def ended() -> bool:
            return NAMESPACE not in {name_of(obj) for obj in await cluster.all(NAMESPACES, None)}

        await cluster.until(ended)
        assert await gone(cluster, JOBSETS, JOBS, PODS, SERVICES, EVENTS, CONFIG_MAPS)
