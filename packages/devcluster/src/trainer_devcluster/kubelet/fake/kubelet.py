"""The kubelet that runs nothing: pods of its node start, are ready and end as their annotations say."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Final

import anyio
import anyio.to_thread
import structlog

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.reconcile import Result
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import ObjectKey, is_being_deleted
from trainer.kube.resource import PODS
from trainer_devcluster.kubelet.claims import Claims
from trainer_devcluster.kubelet.errors import PodGoneError
from trainer_devcluster.kubelet.fake.life import next_status
from trainer_devcluster.kubelet.network.pod_network import AddressPool
from trainer_devcluster.kubelet.node import Advertisement, describe_machine, register_node
from trainer_devcluster.kubelet.options import KubeletOptions
from trainer_devcluster.kubelet.outage import Outage
from trainer_devcluster.kubelet.pod_api import PodApi

log = structlog.get_logger(__name__)

POD_NETWORK = "none: pods are fake and only say that they run"
RESOURCES: Final = {"cpu": "10k", "memory": "100Ti", "ephemeral-storage": "1Pi", "pods": "100k"}
"""Default resources of the Node; fake pods take next to nothing."""

_NETWORK = IPv4Network("10.0.0.0/9")
_WORKERS = 16


class FakeKubelet:
    """Walks pods through their phases by what `script` says; made by `register`.

    A pod has the conditions and container statuses that it would have if it ran, an address that nobody answers at, and
    an empty log. It sends no events, mounts no volumes and asks no probes. A pod that is deleted ends at once with exit
    code 143.
    """

    def __init__(self, manager: Manager, options: KubeletOptions) -> None:
        self.mode = POD_NETWORK
        """The Node's description of the pod network."""
        self._manager = manager
        self._options = options
        self._pods = manager.informer(PODS).lister
        self._outage = Outage(manager, options.node_name)
        self._api = PodApi(manager.client, self._outage)
        self._clock = manager.clock
        self._pool = AddressPool(_NETWORK)
        self._addresses: dict[ObjectKey, str] = {}
        self._started = anyio.Event()
        Advertisement(manager, options.node_name)
        Claims(manager, options.data_dir)
        controller = Controller("kubelet", manager, self.reconcile, max_concurrent_reconciles=_WORKERS)
        controller.reconciles(PODS, predicate=self._is_ours)
        manager.add(self.run, name="kubelet")

    async def wait_for_start(self) -> None:
        """Wait until the Node is registered."""
        await self._started.wait()

    async def run(self) -> None:
        """Register the Node, then rest until cancelled. Raises `KubeError`."""
        options = self._options
        await anyio.to_thread.run_sync(lambda: options.data_dir.mkdir(parents=True, exist_ok=True))
        resources = {**RESOURCES, **options.node_resources}
        machine = await anyio.to_thread.run_sync(describe_machine, options.node_name, options.data_dir, resources)
        await register_node(self._manager.client, machine, POD_NETWORK, self._clock.now())
        log.info("started fake kubelet", node=machine.name)
        self._started.set()
        await anyio.sleep_forever()

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Take the pod one step further. Raises `KubeError` for another try."""
        await self._outage.over()
        pod = self._pods.get(key)
        if pod is None:
            self._release(key)
            return None
        status, pause = next_status(pod, self._clock.now(), self._address(key))
        try:
            if status is not None:
                await self._api.write_status(pod, status)
        except PodGoneError:
            return None
        if is_being_deleted(pod):
            await self._api.finish_deletion(pod)
            return None
        return None if pause is None else Result(requeue_after=pause)

    def _is_ours(self, _old: CachedObject | None, new: CachedObject | None) -> bool:
        return new is None or new["spec"].get("nodeName") == self._options.node_name

    def _address(self, key: ObjectKey) -> str:
        if key not in self._addresses:
            self._addresses[key] = self._pool.allocate()
        return self._addresses[key]

    def _release(self, key: ObjectKey) -> None:
        address = self._addresses.pop(key, None)
        if address is not None:
            self._pool.release(address)


def register(manager: Manager, options: KubeletOptions) -> FakeKubelet:
    """Add a fake kubelet to a manager that does not run yet."""
    return FakeKubelet(manager, options)
