"""The autoscaler with the real API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from packages.devcluster.tests.controllers.cluster import NAMESPACE, Cluster, dev_cluster
from trainer.kube.objects import Object, find_condition
from trainer.kube.resource import EVENTS, HORIZONTAL_POD_AUTOSCALERS, PODS, Resource
from trainer_devcluster.cluster import install_definition
from trainer_devcluster.controllers.horizontal_pod_autoscaler.metrics import PREFIX

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


def definition() -> Object:
    """A kind that can be scaled."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
        "subresources": {"status": {}, "scale": scale},
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def autoscaler(metric: str | None = None, **spec: Any) -> Object:
    """Scales the widget `w` by the length of a queue, of which 10 are good for each pod."""
    target = {"type": "AverageValue", "averageValue": "10"}
    annotations = {} if metric is None else {f"{PREFIX}queue": metric}
    return {
        "metadata": {"name": "hpa", "annotations": annotations},
        "spec": {
            "scaleTargetRef": {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w"},
            "minReplicas": 1,
            "maxReplicas": 5,
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": "queue"}, "target": target}}],
            **spec,
        },
    }


async def make_widget(cluster: Cluster, replicas: int) -> None:
    """A widget with so many pods, which run."""
    await install_definition(cluster.client, definition())
    await cluster.create(WIDGETS, {"metadata": {"name": "w"}, "spec": {"replicas": replicas}})
    status = {"replicas": replicas, "selector": "app=w"}
    await cluster.client.patch(WIDGETS, "w", {"status": status}, NAMESPACE, subresource="status")
    for index in range(replicas):
        pod = {"metadata": {"name": f"w-{index}", "labels": {"app": "w"}}, "spec": {"containers": [_container()]}}
        await cluster.create(PODS, pod)
    await cluster.set_phase("Running")


def _container() -> Object:
    return {"name": "c", "image": "i"}


async def replicas(cluster: Cluster) -> int:
    """The number of replicas in the widget's spec."""
    return int((await cluster.client.get(WIDGETS, "w", NAMESPACE))["spec"]["replicas"])


async def status(cluster: Cluster) -> Object:
    """What the autoscaler says."""
    found: Object = (await cluster.client.get(HORIZONTAL_POD_AUTOSCALERS, "hpa", NAMESPACE)).get("status") or {}
    return found


async def condition(cluster: Cluster, kind: str) -> tuple[str, str]:
    """Status and reason of a condition of the autoscaler."""
    found = find_condition({"status": await status(cluster)}, kind) or {}
    return found.get("status", ""), found.get("reason", "")


async def test_scaling(tmp_path: Path) -> None:
    """It scales its target when the annotation changes, and says so in status and event."""
    async with dev_cluster(tmp_path) as cluster:
        await make_widget(cluster, 2)
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler("10"))
        async with cluster.controllers():

            async def active() -> bool:
                return await condition(cluster, "ScalingActive") == ("True", "ValidMetricFound")

            async def grown() -> bool:
                return await replicas(cluster) == 4 and (await status(cluster)).get("desiredReplicas") == 4

            await cluster.until(active)
            assert await replicas(cluster) == 2
            assert await condition(cluster, "AbleToScale") == ("True", "ReadyForNewScale")
            patch = {"metadata": {"annotations": {f"{PREFIX}queue": "20"}}}
            await cluster.client.patch(HORIZONTAL_POD_AUTOSCALERS, "hpa", patch, NAMESPACE)
            await cluster.until(grown)
            shown = await status(cluster)
            assert shown["currentReplicas"] == 2
            assert shown["currentMetrics"][0]["pods"]["current"] == {"averageValue": "20"}
            assert await condition(cluster, "AbleToScale") == ("True", "SucceededRescale")

            async def reported() -> bool:
                events = [event for event in await cluster.all(EVENTS) if event["reason"] == "SuccessfulRescale"]
                return [event["message"] for event in events] == ["New size: 4; reason: pods metric queue above target"]

            await cluster.until(reported)


async def test_bounds(tmp_path: Path) -> None:
    """A target out of bounds is brought back, whatever the metrics say."""
    async with dev_cluster(tmp_path) as cluster:
        await make_widget(cluster, 2)
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler(maxReplicas=1))
        async with cluster.controllers():

            async def shrunk() -> bool:
                return await replicas(cluster) == 1

            await cluster.until(shrunk)


async def test_troubles(tmp_path: Path) -> None:
    """A target that does not exist, one that rests and a metric that nobody gives are reported in the conditions."""
    async with dev_cluster(tmp_path) as cluster:
        await install_definition(cluster.client, definition())
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler())
        async with cluster.controllers():

            async def lost() -> bool:
                return await condition(cluster, "AbleToScale") == ("False", "FailedGetScale")

            await cluster.until(lost)
        await make_widget(cluster, 1)
        async with cluster.controllers():

            async def blind() -> bool:
                return await condition(cluster, "ScalingActive") == ("False", "FailedGetPodsMetric")

            await cluster.until(blind)
        await cluster.client.patch(WIDGETS, "w", {"spec": {"replicas": 0}}, NAMESPACE)
        async with cluster.controllers():

            async def resting() -> bool:
                return await condition(cluster, "ScalingActive") == ("False", "ScalingDisabled")

            await cluster.until(resting)
