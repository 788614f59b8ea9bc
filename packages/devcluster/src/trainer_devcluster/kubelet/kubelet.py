"""The kubelet: runs the pods of one node as groups of local processes."""

from __future__ import annotations

import anyio
import anyio.to_thread
import structlog
from anyio.abc import TaskGroup

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.controller.controller import Controller
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey, uid_of
from trainer.kube.resource import PODS, SERVICES
from trainer_devcluster.container_commands import CommandError, CommandRunner, CommandStreams, ContainerCommand
from trainer_devcluster.kubelet.claims import Claims, EphemeralClaims
from trainer_devcluster.kubelet.commands import run_command
from trainer_devcluster.kubelet.environment import ConfigReader
from trainer_devcluster.kubelet.network.pod_network import ApiAddress, PodAddressing, serve_pods
from trainer_devcluster.kubelet.network.probe import open_pod_network
from trainer_devcluster.kubelet.node import Advertisement, Machine, describe_machine, register_node
from trainer_devcluster.kubelet.options import KubeletOptions
from trainer_devcluster.kubelet.outage import Outage
from trainer_devcluster.kubelet.pod_api import PodApi, PodHost
from trainer_devcluster.kubelet.pod_directory import remove_memory, remove_orphans
from trainer_devcluster.kubelet.pod_names import HostsFiles
from trainer_devcluster.kubelet.pod_worker import PodWorker
from trainer_devcluster.kubelet.service_account_tokens import TokenSource
from trainer_devcluster.kubelet.volumes import VolumeRefresh

log = structlog.get_logger(__name__)

_EVERY_POD = ObjectKey("", "hosts")
"""What is reconciled when Services change: the hosts files of all pods, together."""
_WORKER_RESTART = 10.0
"""Seconds until a pod whose worker has crashed gets another, which finds its containers lost."""


class Kubelet:
    """Runs the pods that are bound to its node; made by `register`.

    Containers are ordinary processes of the user who runs the dev cluster, in namespaces where the machine allows them.
    That keeps them apart but does not protect the machine from them: limits and security contexts are not enforced.
    """

    def __init__(self, manager: Manager, options: KubeletOptions, commands: CommandRunner) -> None:
        self.mode = ""
        """Which pod network is in use, and why; empty until `wait_for_start` returns."""
        self._manager = manager
        self._options = options
        self._pods = manager.informer(PODS).lister
        self._services = manager.informer(SERVICES).lister
        self._workers: dict[str, PodWorker] = {}
        self._uids: dict[ObjectKey, str] = {}
        self._started = anyio.Event()
        self._host: PodHost | None = None
        self._tasks: TaskGroup | None = None
        self._outage = Outage(manager, options.node_name)
        Advertisement(manager, options.node_name)
        Claims(manager, options.data_dir)
        EphemeralClaims(manager)
        VolumeRefresh(manager, self._refresh_volumes)
        names = Controller("service-names", manager, self._refresh_names)
        names.watches(SERVICES, lambda _: [_EVERY_POD], predicate=_may_be_headless)
        self._controller = Controller("kubelet", manager, self.reconcile).reconciles(PODS)
        commands.register(self._run_command)
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
            machine = await anyio.to_thread.run_sync(
                describe_machine, options.node_name, options.data_dir, options.node_resources
            )
            await register_node(client, machine, chosen.description, clock.now())
            self.mode = chosen.description
            log.info("started kubelet", node=machine.name, pod_network=self.mode)
            self._host = self._make_host(chosen.network, machine)
            try:
                async with anyio.create_task_group() as self._tasks:
                    if chosen.network.api_listener is not None and options.api_server:
                        server = ApiAddress.of(options.api_server)
                        self._tasks.start_soon(serve_pods, chosen.network.api_listener, server)
                    self._started.set()
                    await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(remove_memory, options.data_dir)

    async def reconcile(self, key: ObjectKey) -> None:
        """Hand the present state of a pod to its worker; start one if it has none, end those of former pods."""
        await self._started.wait()
        await self._outage.over()
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

    async def _run_command(self, command: ContainerCommand, streams: CommandStreams) -> int:
        """See `RunCommand`."""
        worker = self._workers.get(command.pod_uid)
        container = worker.running.get(command.container) if worker is not None else None
        if container is None:
            raise CommandError(f'container not found ("{command.container}")')
        return await run_command(container, command, streams)

    async def _refresh_names(self, _: ObjectKey) -> None:
        await self._started.wait()
        assert self._host is not None
        await self._host.hosts_files.refresh()

    def _refresh_volumes(self, key: ObjectKey) -> None:
        worker = self._workers.get(self._uids.get(key, ""))
        if worker is not None:
            worker.refresh_volumes()

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

    def _api_server(self, network: PodAddressing) -> ApiAddress | None:
        """Where pods find the API server."""
        if not self._options.api_server:
            return None
        return network.api_server or ApiAddress.of(self._options.api_server)

    def _make_host(self, network: PodAddressing, machine: Machine) -> PodHost:
        client, clock = self._manager.client, self._manager.clock
        api_server = self._api_server(network)
        return PodHost(
            options=self._options,
            api=PodApi(client, self._outage),
            recorder=EventRecorder(self._manager.events, "kubelet", host=machine.name),
            reader=ConfigReader(client),
            tokens=TokenSource(client),
            api_server=api_server,
            network=network,
            hosts_files=HostsFiles(network.hosts_preamble, api_server.host if api_server else "", self._services.list),
            clock=clock,
            allocatable=machine.capacity,
        )


def _may_be_headless(old: CachedObject | None, new: CachedObject | None) -> bool:
    """Whether a change of a Service concerns a name that is in hosts files."""
    states = [{} if state is None else state.get("spec") or {} for state in (old, new)]
    return states[0] != states[1] and any(spec.get("clusterIP") == "None" for spec in states)


def register(manager: Manager, options: KubeletOptions, commands: CommandRunner | None = None) -> Kubelet:
    """Add a kubelet to a manager that does not run yet; users have it run commands in containers by `commands`."""
    return Kubelet(manager, options, commands or CommandRunner())
