"""Runs one pod, from the moment it is bound to the node until its object is gone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
import structlog

from trainer.kube.clock import move_on_after, parse_timestamp, timestamp
from trainer.kube.errors import KubeError
from trainer.kube.events.recorder import EventKind
from trainer.kube.objects import Object, has_finished, is_being_deleted, labels_of, name_of, namespace_of, uid_of
from trainer.workloads.pod_life import node_lost_since
from trainer_devcluster.kubelet.container_supervisor import PodContainers
from trainer_devcluster.kubelet.environment import PodFacts
from trainer_devcluster.kubelet.errors import SandboxError, UnsupportedVolumeError, VolumeError
from trainer_devcluster.kubelet.network.pod_network import HOST_IP
from trainer_devcluster.kubelet.pod_api import PodHost, RunningPod
from trainer_devcluster.kubelet.pod_directory import PodDirectory
from trainer_devcluster.kubelet.pod_names import PodNames, host_aliases
from trainer_devcluster.kubelet.pod_spec import (
    container_path,
    grace_period,
    ignored_fields,
    specified_grace_period,
    unreachable_mounts,
    unsupported_fields,
)
from trainer_devcluster.kubelet.pod_status import PodRecord, StatusBuilder, StatusWriter
from trainer_devcluster.kubelet.sandbox import RunningContainer, Sandbox, open_sandbox
from trainer_devcluster.kubelet.service_account_tokens import PodTokens
from trainer_devcluster.kubelet.termination import Termination
from trainer_devcluster.kubelet.volumes import PodVolumes, ReadyVolume

log = structlog.get_logger(__name__)

_NO_MOUNT_NAMESPACES = (
    "this machine allows no mount namespaces; run the cluster as root, or allow user namespaces, such as with "
    "`sysctl kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu"
)
_LOST = "The container could not be located when the pod was terminated"


class PodWorker:
    """The life of one pod.

    Everything is derived from the object: a worker for a pod that a former kubelet process has run sees from its status
    what ran, counts that as ended, and goes on by the restart policy: see `PodRecord.restore`. A failure of the worker
    itself fails the pod.
    """

    def __init__(self, pod: Object, host: PodHost) -> None:
        self._pod = pod
        self._host = host
        self._uid = uid_of(pod)
        self._directory = PodDirectory(host.options.data_dir, self._uid)
        self._record = PodRecord.restore(pod, self._now())
        self._status = StatusBuilder()
        self._writer = StatusWriter(host.api, host.clock)
        self._termination = Termination(host.clock)
        self._updated = anyio.Event()
        self._deleted = anyio.Event()
        self._gone = anyio.Event()
        self._volumes: PodVolumes | None = None
        self.running: dict[str, RunningContainer] = {}
        """The containers that run, by name."""
        self.update(pod)

    @property
    def uid(self) -> str:
        """UID of the pod."""
        return self._uid

    def update(self, pod: Object) -> None:
        """Take note of a newer state of the object."""
        self._pod = pod
        self._updated.set()
        if node_lost_since(pod) and self._writer.forget():
            self._publish()
        if is_being_deleted(pod):
            self._termination.request(grace_period(pod))
            self._deleted.set()

    def refresh_volumes(self) -> None:
        """Something that the files of its volumes come from may have changed."""
        if self._volumes is not None:
            self._volumes.mark_outdated(self._pod)

    def forget(self) -> None:
        """The object is gone: end at once."""
        self._termination.request(0)
        self._gone.set()
        self._deleted.set()

    async def run(self) -> None:
        """Run the pod; returns when its object is gone and nothing of it is left."""
        with structlog.contextvars.bound_contextvars(namespace=namespace_of(self._pod), pod=name_of(self._pod)):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._writer.run)
                tasks.start_soon(self._termination.enforce)
                if not has_finished(self._pod):
                    await self._live_and_contain_errors()
                await self._writer.flush()
                await self._finish_deletion()
                await self._gone.wait()
                tasks.cancel_scope.cancel()
            await anyio.to_thread.run_sync(self._directory.remove)

    async def _live_and_contain_errors(self) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._enforce_deadline)
                await self._live()
                tasks.cancel_scope.cancel()
        except Exception:
            log.exception("pod worker failed")
            self._fail("KubeletError", "The dev cluster failed to run this pod: its log says why")
        self._record.has_sandbox = False
        self._record.end(self._now(), _LOST)
        self._publish()

    async def _live(self) -> None:
        if problems := unsupported_fields(self._pod):
            self._fail("Unsupported", f"The dev cluster does not support {'; '.join(problems)}: remove it from the pod")
            return
        if not self._host.network.isolated and (problems := unreachable_mounts(self._pod)):
            self._fail("Unsupported", f"{'; '.join(problems)}: {_NO_MOUNT_NAMESPACES}")
            return
        if self._record.cannot_go_on:
            # As after a restart of a node: there is no sandbox any more, and none is made for such a pod.
            return
        if self._record.begins_anew:
            self._announce("Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
        if ignored := ignored_fields(self._pod):
            message = f"The dev cluster does not carry out {'; '.join(ignored)}"
            self._announce("Warning", "Ignored", message)
        async with self._address() as names:
            self._publish()
            facts = PodFacts(names.address, HOST_IP, self._host.allocatable)
            tokens = PodTokens(self._pod, self._host.tokens, self._host.clock)
            self._volumes = PodVolumes(self._pod, self._directory, facts, self._host.reader, tokens)
            async with anyio.create_task_group() as tasks:
                volumes = await self._make_volumes(self._volumes)
                tasks.start_soon(self._volumes.keep_current)
                await self._run_in_sandbox(names, facts, volumes)
                tasks.cancel_scope.cancel()

    async def _run_in_sandbox(self, names: PodNames, facts: PodFacts, volumes: dict[str, ReadyVolume] | None) -> None:
        while volumes is not None and not self._termination.requested.is_set():
            try:
                async with self._open_sandbox(names) as sandbox:
                    await PodContainers(self._running(names, facts, volumes, sandbox), self._record).run()
                    return
            except SandboxError as error:
                message = f"Failed to create pod sandbox: {error}"
                self._announce("Warning", "FailedCreatePodSandBox", message)
                await self._termination.pause(self._host.options.retry_backoff.maximum)

    @asynccontextmanager
    async def _address(self) -> AsyncIterator[PodNames]:
        """The pod's address and names, for as long as it runs."""
        network, files = self._host.network, self._host.hosts_files
        await anyio.to_thread.run_sync(self._directory.create)
        if network.resolv_conf is not None:
            await anyio.to_thread.run_sync(self._directory.resolv_conf.write_text, network.resolv_conf)
        self._record.pod_ip = network.allocate()
        names = PodNames.of(self._pod, self._record.pod_ip)
        try:
            if network.isolated:
                aliases, labels = host_aliases(self._pod), labels_of(self._pod)
                await files.add(self._uid, names, self._directory.hosts, aliases, labels)
            yield names
        finally:
            network.release(names.address)
            await files.remove(self._uid)

    @asynccontextmanager
    async def _open_sandbox(self, names: PodNames) -> AsyncIterator[Sandbox]:
        network = self._host.network
        async with open_sandbox(network, names.hostname, names.address, self._directory.new_root) as sandbox:
            self._record.has_sandbox = True
            self._publish()
            yield sandbox

    async def _make_volumes(self, volumes: PodVolumes) -> dict[str, ReadyVolume] | None:
        """The pod's volumes; waits for what they are made from, None if termination was requested before."""
        failures = 0
        while not self._termination.requested.is_set():
            try:
                return await volumes.build()
            except UnsupportedVolumeError as error:
                self._announce("Warning", "FailedMount", str(error))
                await self._termination.requested.wait()
            except VolumeError as error:
                self._announce("Warning", "FailedMount", str(error))
                await self._termination.pause(self._host.options.retry_backoff.pause(failures))
                failures += 1
        return None

    def _running(
        self, names: PodNames, facts: PodFacts, volumes: dict[str, ReadyVolume], sandbox: Sandbox
    ) -> RunningPod:
        return RunningPod(
            pod=self._pod,
            names=names,
            host=self._host,
            directory=self._directory,
            facts=facts,
            volumes=volumes,
            sandbox=sandbox,
            termination=self._termination,
            running=self.running,
            publish=self._publish,
            announce=self._announce,
        )

    async def _enforce_deadline(self) -> None:
        while (remaining := self._until_deadline()) is None or remaining > 0:
            self._updated = anyio.Event()
            async with move_on_after(self._host.clock, remaining):
                await self._updated.wait()
        message = "Pod was active on the node longer than the specified deadline"
        self._record.failure = ("DeadlineExceeded", message)
        self._announce("Normal", "DeadlineExceeded", message)
        self._termination.request(specified_grace_period(self._pod))

    def _until_deadline(self) -> float | None:
        seconds = self._pod["spec"].get("activeDeadlineSeconds")
        if seconds is None:
            return None
        passed = (self._host.clock.now() - parse_timestamp(self._record.start_time)).total_seconds()
        return float(seconds - passed)

    async def _finish_deletion(self) -> None:
        await self._deleted.wait()
        failures = 0
        while not self._gone.is_set():
            try:
                await self._host.api.finish_deletion(self._pod)
            except KubeError as error:
                log.warning("could not remove pod, will retry", error=str(error))
                await self._host.clock.sleep(self._host.options.retry_backoff.pause(failures))
                failures += 1
            else:
                return

    def _fail(self, reason: str, message: str) -> None:
        self._record.failure = (reason, message)
        self._announce("Warning", reason, message)

    def _publish(self) -> None:
        self._writer.publish(self._pod, self._status.build(self._pod, self._record, self._now()))

    def _announce(self, kind: EventKind, reason: str, message: str, *, container: str = "") -> None:
        path = container_path(self._pod, container) if container else ""
        self._host.recorder.record(self._pod, type=kind, reason=reason, message=message, field_path=path)

    def _now(self) -> str:
        return timestamp(self._host.clock.now())
