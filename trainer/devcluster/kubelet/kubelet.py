"""The kubelet: runs the pods of one node as groups of local processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import structlog

from trainer.devcluster.kubelet.claims import Claims
from trainer.devcluster.kubelet.config_reader import ClientConfigReader
from trainer.devcluster.kubelet.network.probe import open_pod_network
from trainer.devcluster.kubelet.node import describe_machine, register_node
from trainer.devcluster.kubelet.pod_api import ClientPodApi
from trainer.devcluster.kubelet.pod_directory import remove_orphans
from trainer.devcluster.kubelet.pod_host import PodHost
from trainer.devcluster.kubelet.pod_names import HostsFiles
from trainer.devcluster.kubelet.pod_worker import PodWorker
from trainer.devcluster.kubelet.scheduler import Scheduler
from trainer.kube.controller.controller import Controller
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.objects import uid_of
from trainer.kube.resource import PODS

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from trainer.devcluster.kubelet.network.pod_network import PodNetwork
    from trainer.devcluster.kubelet.node import Machine
    from trainer.devcluster.kubelet.options import KubeletOptions
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import Object, ObjectKey

log = structlog.get_logger(__name__)

_WORKER_RESTART = 10.0
"""Seconds until a pod whose worker has crashed gets another, which finds its containers lost."""


class Kubelet:
    """Runs the pods that are bound to its node; made by `register`.

    Containers are ordinary processes of the user who runs the dev cluster, in namespaces where the machine allows them.
    That keeps them apart but does not protect the machine from them: limits and security contexts are not enforced.
    """

    def __init__(self, manager: Manager, options: KubeletOptions) -> None:
        self.mode = ""
        """Which pod network is in use, and why; empty until `wait_for_start` returns."""
        self._manager = manager
        self._options = options
        self._pods = manager.informer(PODS).lister
        self._workers: dict[str, PodWorker] = {}
        self._uids: dict[ObjectKey, str] = {}
        self._started = anyio.Event()
        self._host: PodHost | None = None
        self._tasks: TaskGroup | None = None
        Scheduler(manager, options.node_name)
        Claims(manager, options.data_dir)
        self._controller = Controller("kubelet", manager, self.reconcile).reconciles(PODS)
        manager.add(self.run, name="kubelet")

    async def wait_for_start(self) -> None:
        """Wait until the pod network is up and the Node is registered."""
        await self._started.wait()

    async def run(self) -> None:
        """Run pods until cancelled; then all their processes are killed.

        Raises:
            PodNetworkError: the pod network that the options force does not work here.
            KubeError: the Node could not be registered.
        """
        options, client, clock = self._options, self._manager.client, self._manager.clock
        await anyio.to_thread.run_sync(lambda: options.data_dir.mkdir(parents=True, exist_ok=True))
        uids = frozenset(map(uid_of, self._pods.list()))
        await anyio.to_thread.run_sync(remove_orphans, options.data_dir, uids)
        async with open_pod_network(options.pod_network, options.data_dir) as chosen:
            machine = await anyio.to_thread.run_sync(describe_machine, options.node_name)
            await register_node(client, machine, chosen.description, clock.now())
            self.mode = chosen.description
            log.info("started kubelet", node=machine.name, pod_network=self.mode)
            self._host = self._make_host(chosen.network, machine)
            async with anyio.create_task_group() as self._tasks:
                self._started.set()
                await anyio.sleep_forever()

    async def reconcile(self, key: ObjectKey) -> None:
        """Hand the present state of a pod to its worker; start one if it has none, end those of former pods."""
        await self._started.wait()
        pod = self._pods.get(key)
        uid = uid_of(pod) if pod is not None else ""
        former = self._uids.get(key)
        if former is not None and former != uid:
            del self._uids[key]
            if former in self._workers:
                self._workers[former].forget()
        if pod is None or pod["spec"].get("nodeName") != self._options.node_name:
            return
        if uid in self._workers:
            self._workers[uid].update(pod)
        else:
            self._start(key, pod)

    def _start(self, key: ObjectKey, pod: Object) -> None:
        assert self._tasks is not None
        assert self._host is not None
        worker = PodWorker(pod, self._host)
        self._workers[worker.uid] = worker
        self._uids[key] = worker.uid
        self._tasks.start_soon(self._run, key, worker, name=f"pod {key}")

    async def _run(self, key: ObjectKey, worker: PodWorker) -> None:
        try:
            await worker.run()
        except Exception:
            log.exception("pod worker ended unexpectedly, will start another", uid=worker.uid)
            self._controller.enqueue(key, after=_WORKER_RESTART)
        finally:
            del self._workers[worker.uid]

    def _make_host(self, network: PodNetwork, machine: Machine) -> PodHost:
        client, clock = self._manager.client, self._manager.clock
        return PodHost(
            options=self._options,
            api=ClientPodApi(client),
            recorder=EventRecorder(self._manager.events, "kubelet", host=machine.name),
            reader=ClientConfigReader(client),
            network=network,
            hosts_files=HostsFiles(network.hosts_preamble),
            clock=clock,
            allocatable=machine.capacity,
        )


def register(manager: Manager, options: KubeletOptions) -> Kubelet:
    """Add a kubelet and a scheduler to a manager that does not run yet."""
    return Kubelet(manager, options)
