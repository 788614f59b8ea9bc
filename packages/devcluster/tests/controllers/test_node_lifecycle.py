"""Lost nodes and their pods, on an API server in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from trainer.kube.client import PatchType
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, find_condition, is_being_deleted
from trainer.kube.resource import EVENTS, NODES, PODS
from trainer_devcluster.controllers.node_lifecycle import register
from trainer_devcluster.node_outage import READY_ANNOTATION
from trainer_kube_testing import WRITES, FakeClient, ManualClock, eventually, settle

UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


def make_node() -> Object:
    """A node that is ready."""
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "laptop"}, "status": {"conditions": [condition]}}


def make_pod(name: str, *, node: str = "laptop", seconds: int | None = None, phase: str = "Running") -> Object:
    """A ready pod that tolerates an outage for so long; a finalizer keeps it, as one of a Job."""
    toleration = {"operator": "Exists", "effect": "NoExecute", "key": UNREACHABLE, "tolerationSeconds": seconds}
    conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", "finalizers": ["test/keep"]},
        "spec": {"nodeName": node, "tolerations": [] if seconds is None else [toleration]},
        "status": {"phase": phase, "conditions": conditions},
    }


class Lives:
    """The controller with its server."""

    def __init__(self, *objects: Object) -> None:
        self.clock = ManualClock()
        self.client = FakeClient(*objects, clock=self.clock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the controller within the context."""
        manager = Manager(self.client, clock=self.clock)
        register(manager)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await manager.wait_for_start()
            yield
            tasks.cancel_scope.cancel()

    async def annotate(self, value: str | None) -> None:
        """A person makes an outage, or ends it."""
        await self.client.patch(NODES, "laptop", {"metadata": {"annotations": {READY_ANNOTATION: value}}})

    async def until(self, holds: Any, within: float = 10) -> None:
        """Wait until something holds."""
        await eventually(holds, clock=self.clock, within=within)

    def pod(self, name: str) -> Object:
        """A pod as it is now."""
        return self.client.find(PODS, name, "ns") or {}

    def readiness(self, name: str) -> str:
        """The status of its condition Ready."""
        return str((find_condition(self.pod(name), "Ready") or {}).get("status"))

    def disruption(self, name: str) -> str:
        """The reason of its condition DisruptionTarget."""
        return str((find_condition(self.pod(name), "DisruptionTarget") or {}).get("reason"))

    def node(self) -> tuple[str, set[tuple[str, str]]]:
        """The status of its condition Ready, and its taints."""
        node = self.client.find(NODES, "laptop") or {}
        taints = (node.get("spec") or {}).get("taints") or []
        return (find_condition(node, "Ready") or {})["status"], {(each["key"], each["effect"]) for each in taints}

    def events(self) -> set[tuple[str, str, str]]:
        """Who has said what about which object."""
        return {
            (event["source"]["component"], event["reason"], event["involvedObject"]["name"])
            for event in self.client.objects(EVENTS)
        }


@pytest.mark.parametrize(
    ("readiness", "taint"),
    [pytest.param("Unknown", UNREACHABLE, id="unreachable"), pytest.param("False", NOT_READY, id="not ready")],
)
async def test_outage(readiness: str, taint: str) -> None:
    """A lost node has condition and taints, its ready pods are not ready any more, and it comes back as it was."""
    lives = Lives(make_node(), make_pod("pod"), make_pod("done", phase="Succeeded"), make_pod("other", node="other"))
    await lives.client.patch(NODES, "laptop", {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}})
    async with lives.running():
        await lives.annotate(readiness)
        outage = {(taint, "NoSchedule"), (taint, "NoExecute")}
        await lives.until(lambda: lives.node() == (readiness, {("gpu", "NoSchedule"), *outage}))
        await lives.until(lambda: ("node-controller", "NodeNotReady", "pod") in lives.events())
        assert [lives.readiness(name) for name in ("pod", "done", "other")] == ["False", "True", "True"]
        assert "reason" not in (find_condition(lives.pod("pod"), "Ready") or {})

        await lives.annotate(None)
        await lives.until(lambda: lives.node() == ("True", {("gpu", "NoSchedule")}))


async def test_eviction() -> None:
    """The taint manager deletes each pod when it has tolerated the outage for as long as it does, and once."""
    lives = Lives(make_node(), make_pod("now"), make_pod("later", seconds=300))
    async with lives.running():
        await lives.annotate("Unknown")
        await lives.until(lambda: is_being_deleted(lives.pod("now")))
        assert lives.disruption("now") == "DeletionByTaintManager"
        assert not is_being_deleted(lives.pod("later"))
        await lives.until(lambda: is_being_deleted(lives.pod("later")), within=301)
        assert lives.clock.monotonic() >= 299
        await lives.until(lambda: ("taint-eviction-controller", "TaintManagerEviction", "later") in lives.events())
        assert len(lives.client.requests_of("delete")) == 2


async def test_return_within_the_toleration() -> None:
    """A pod whose node comes back in time is not deleted, and the next outage counts from its own beginning."""
    lives = Lives(make_node(), make_pod("pod", seconds=300))
    async with lives.running():
        await lives.annotate("Unknown")
        await lives.until(lambda: lives.readiness("pod") == "False")
        await lives.clock.advance(200)
        await lives.annotate(None)
        await lives.until(lambda: lives.node() == ("True", set()))
        await lives.clock.advance(200)
        await lives.annotate("Unknown")
        await lives.until(lambda: lives.node()[0] == "Unknown")
        await lives.clock.advance(200)
        await settle()
        assert not is_being_deleted(lives.pod("pod"))


@pytest.mark.parametrize("readiness", [pytest.param("Unknown", id="lost"), pytest.param(None, id="ready")])
async def test_out_of_service(readiness: str | None) -> None:
    """Pods of a lost node that a person takes out of service are failed and deleted by force; others only deleted."""
    lives = Lives(make_node(), make_pod("pod", seconds=300))
    async with lives.running():
        await lives.annotate(readiness)
        await lives.until(lambda: lives.node()[0] == (readiness or "True"))
        await lives.client.patch(NODES, "laptop", {"spec": {"taints": [OUT_OF_SERVICE]}}, patch_type=PatchType.MERGE)
        await lives.until(lambda: is_being_deleted(lives.pod("pod")))
        await settle()
        assert lives.pod("pod")["status"]["phase"] == ("Failed" if readiness else "Running")
        graces = {request.body.grace_period_seconds for request in lives.client.requests_of("delete")}
        assert graces == ({None, 0} if readiness else {None})


async def test_cordon() -> None:
    """A cordoned node has a taint for new pods, until it is uncordoned, and then nothing is left to write."""
    lives = Lives(make_node(), make_pod("pod"))
    async with lives.running():
        await lives.client.patch(NODES, "laptop", {"spec": {"unschedulable": True}})
        await lives.until(lambda: lives.node()[1] == {("node.kubernetes.io/unschedulable", "NoSchedule")})
        await lives.client.patch(NODES, "laptop", {"spec": {"unschedulable": None}})
        await lives.until(lambda: lives.node()[1] == set())
        await settle()
        assert len(lives.client.requests_of(*WRITES)) == 4
