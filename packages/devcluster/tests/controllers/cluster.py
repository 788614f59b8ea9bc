"""A dev cluster without a kubelet: the real API server and the controllers, in the process of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, labels_of, name_of
from trainer.kube.resource import NAMESPACES, PODS, Resource
from trainer.kube.rest.connection import ConnectionOptions, connect
from trainer.kube.rest.http import HttpClient
from trainer_devcluster.apiserver.server import ServerOptions, serve
from trainer_devcluster.cluster import install_definition, jobset_definition
from trainer_devcluster.controllers import ControllerOptions, register_all
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates

NAMESPACE = "n"
TIMEOUT = 20.0
"""Seconds until a test gives up waiting; everything awaited here takes a fraction of one."""


class Cluster:
    """The API server with what a test does to it; the controllers can be stopped and started again."""

    def __init__(self, client: HttpClient, gates: FeatureGates) -> None:
        self.client = client
        self._options = ControllerOptions(pod_backoff_base=0, namespace_poll=0.02, feature_gates=gates)

    @asynccontextmanager
    async def controllers(self) -> AsyncIterator[None]:
        """Run the controllers within the context, with an empty memory."""
        manager = Manager(self.client)
        register_all(manager, self._options)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await manager.wait_for_start()
            yield
            tasks.cancel_scope.cancel()

    async def create(self, resource: Resource, obj: Object) -> Object:
        """Create an object, in the namespace of the test if it needs one."""
        namespace = {"namespace": NAMESPACE} if resource.namespaced else {}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        return await self.client.create(resource, {**body, "metadata": {**obj["metadata"], **namespace}})

    async def all(self, resource: Resource, namespace: str | None = NAMESPACE) -> list[Object]:
        """All objects of a resource."""
        selection = (await self.client.list(resource)).items
        return [obj for obj in selection if namespace in (None, obj["metadata"].get("namespace"))]

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition holds."""
        with anyio.fail_after(TIMEOUT):
            while not await condition():  # noqa: ASYNC110 - the server tells by being asked
                await anyio.sleep(0.01)

    async def set_phase(self, phase: str, job: str | None = None) -> None:
        """Play the kubelet: set the phase of all unfinished pods (of one Job)."""
        for pod in await self.all(PODS):
            if pod["status"]["phase"] in ("Succeeded", "Failed") or pod["metadata"].get("deletionTimestamp"):
                continue
            if job in (None, labels_of(pod).get("job-name")):
                ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
                status = {"phase": phase, "conditions": [ready]}
                await self.client.patch(PODS, name_of(pod), {"status": status}, NAMESPACE, subresource="status")


@asynccontextmanager
async def dev_cluster(directory: Path, gates: FeatureGates = DEFAULT_FEATURE_GATES) -> AsyncIterator[Cluster]:
    """The API server with a namespace, the JobSet API, and no controller yet.

    No fixture: pytest-asyncio may leave a fixture in another task than it entered it in, which task groups forbid.
    """
    async with serve(ServerOptions(directory, feature_gates=gates)) as server:
        kubeconfig = directory / "kubeconfig"
        await anyio.Path(kubeconfig).write_text(server.kubeconfig())
        async with connect(ConnectionOptions(kubeconfig=kubeconfig)) as client:
            await install_definition(client, await anyio.to_thread.run_sync(jobset_definition))
            cluster = Cluster(client, gates)
            await cluster.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
            yield cluster
