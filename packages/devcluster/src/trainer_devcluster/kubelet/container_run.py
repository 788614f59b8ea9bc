"""One run of a container's program, from its start to its end.

How it ended is Completed, Error, StartError or ContainerCannotRun. It is never OOMKilled: memory limits are not
enforced here, and a program for which the machine has no memory left ends by SIGKILL like any other (Error, exit code
137). Kubernetes documentation, "Pod Lifecycle": termination of Pods.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread
import structlog

from trainer.kube.clock import move_on_after, timestamp
from trainer.kube.events.recorder import EventKind
from trainer_devcluster.kubelet.container_record import ContainerRecord, Running, Terminated
from trainer_devcluster.kubelet.environment import EnvironmentBuilder, command_line
from trainer_devcluster.kubelet.errors import ContainerStartError
from trainer_devcluster.kubelet.host_paths import SandboxMount
from trainer_devcluster.kubelet.options import inherited_environment
from trainer_devcluster.kubelet.pod_api import RunningPod
from trainer_devcluster.kubelet.pod_spec import specified_grace_period
from trainer_devcluster.kubelet.probing import ContainerHealth, LifecycleHook
from trainer_devcluster.kubelet.root_filesystem import image_mounts, volume_mounts
from trainer_devcluster.kubelet.sandbox import Program, RunningContainer
from trainer_devcluster.kubelet.shim.reports import Exited, StartFailed
from trainer_devcluster.kubelet.termination import DEFAULT_PATH, Termination, termination_message

SHORTEST_GRACE = 2.0
"""Seconds that a program has after SIGTERM even if its preStop hook has used up the grace period."""


class ContainerStop:
    """The end of a run, with its pod or by itself: preStop hook, SIGTERM, and SIGKILL after the grace period.

    Args:
        pod: the pod around the container.
        container: its specification.
        turn: when the pod ends, waits until it is the container's turn.

    Raises:
        ContainerCreateError: the hook names a port that the container does not have.
    """

    def __init__(self, pod: RunningPod, container: Mapping[str, Any], turn: Callable[[], Awaitable[None]]) -> None:
        self._pod = pod
        self._container = container
        self._turn = turn
        self._clock = pod.host.clock
        self._pre_stop = LifecycleHook.of(container, "preStop", pod.names.address)
        self._own = Termination(self._clock)
        self._message = ""
        self._is_under_way = False

    @property
    def was_requested(self) -> bool:
        """Whether it was for a reason of its own that the container had to end, and not with its pod."""
        return self._own.requested.is_set()

    def request(self, message: str, grace_period: float | None = None) -> None:
        """End the container, though its pod goes on.

        Args:
            message: what the event says.
            grace_period: seconds between SIGTERM and SIGKILL. Default: None, those of the pod.
        """
        self._message = message
        self._own.request(specified_grace_period(self._pod.pod) if grace_period is None else grace_period)

    async def carry_out(self, container: RunningContainer) -> None:
        """End the container when it has to; to be cancelled when it has ended."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._own.enforce)
            tasks.start_soon(self._with_the_pod, container)
            await self._own.requested.wait()
            await self._stop(container, self._own, self._message, None)

    async def _with_the_pod(self, container: RunningContainer) -> None:
        termination = self._pod.termination
        await termination.requested.wait()
        await self._stop(container, termination, f"Stopping container {self._container['name']}", self._turn)

    async def _stop(
        self,
        container: RunningContainer,
        termination: Termination,
        message: str,
        turn: Callable[[], Awaitable[None]] | None,
    ) -> None:
        if not self._is_under_way:
            self._is_under_way = True
            self._pod.announce("Normal", "Killing", message, container=self._container["name"])
            if self._pre_stop is not None and not termination.overdue.is_set():
                await termination.within_grace(lambda: self._run_hook(container))
            if turn is not None:
                await termination.within_grace(turn)
            asked = self._clock.monotonic()
            await container.terminate()
            await termination.overdue.wait()
            async with move_on_after(self._clock, asked + SHORTEST_GRACE - self._clock.monotonic()):
                await termination.at_once.wait()
        await termination.overdue.wait()
        await container.kill()

    async def _run_hook(self, container: RunningContainer) -> None:
        assert self._pre_stop is not None
        if not await self._pre_stop.carry_out(container, self._clock):
            name = self._container["name"]
            self._pod.announce("Warning", "FailedPreStopHook", "PreStopHook failed", container=name)


@dataclass(frozen=True, slots=True)
class ProgramBuilder:
    """Makes the programs of one container."""

    pod: RunningPod
    container: Mapping[str, Any]

    async def build(self, run: int) -> Program:
        """The program of a run.

        Args:
            run: how many times the container has been restarted before.

        Raises:
            ContainerCreateError: it can never be made.
            KubeError: something that it refers to is missing; worth another try.
        """
        pod, container, name = self.pod, self.container, self.container["name"]
        builder = EnvironmentBuilder(
            pod.pod, container, pod.facts, pod.host.reader, rewrite=self._rewrite, api_server=pod.host.api_server
        )
        variables = await builder.build()
        command = command_line(container, variables)
        await anyio.to_thread.run_sync(pod.directory.prepare_run, name, run)
        mounts = await anyio.to_thread.run_sync(volume_mounts, container, pod.volumes, variables)
        if pod.host.network.isolated:
            mounts += await anyio.to_thread.run_sync(image_mounts, pod.directory.empty)
        inherited = inherited_environment(os.environ) | {"HOSTNAME": pod.names.hostname}
        return Program(
            command,
            inherited | variables,
            scratch=pod.directory.scratch(name, run),
            log_file=pod.directory.log_file(name, run),
            log_limits=pod.host.options.log_limits,
            working_directory=container.get("workingDir") or "",
            mounts=(*self._own_files(run), *mounts),
        )

    def _own_files(self, run: int) -> list[SandboxMount]:
        """The files that every container has."""
        pod = self.pod
        message_path = self.container.get("terminationMessagePath") or DEFAULT_PATH
        files = [
            SandboxMount(pod.directory.hosts, "/etc/hosts"),
            SandboxMount(pod.directory.termination_log(self.container["name"], run), message_path),
        ]
        if pod.host.network.resolv_conf is not None:
            files.append(SandboxMount(pod.directory.resolv_conf, "/etc/resolv.conf"))
        return files

    def _rewrite(self, value: str) -> str:
        names = self.pod.names
        return self.pod.host.network.rewrite(value, namespace=names.namespace, subdomain=names.subdomain)


log = structlog.get_logger(__name__)


class ContainerRun:
    """One run; made for it and used once.

    Args:
        pod: the pod around the container.
        container: its specification.
        record: where its state is kept.
        number: how many times the container has been restarted before.
        on_started: called once, when the program runs and the postStart hook has succeeded.
        turn: when the pod ends, waits until it is the container's turn.

    Raises:
        ContainerCreateError: a probe or hook names a port that the container does not have.
    """

    def __init__(
        self,
        pod: RunningPod,
        container: Mapping[str, Any],
        record: ContainerRecord,
        number: int,
        *,
        on_started: Callable[[], None],
        turn: Callable[[], Awaitable[None]],
    ) -> None:
        self._pod = pod
        self._container = container
        self._record = record
        self._number = number
        self._clock = pod.host.clock
        self._started_at = ""
        self._post_start = LifecycleHook.of(container, "postStart", pod.names.address)
        self._stop = ContainerStop(pod, container, turn)
        self._health = ContainerHealth(pod, container, record, self._stop.request, on_started)

    @property
    def was_killed(self) -> bool:
        """Whether the kubelet ended it by itself, and not with the pod."""
        return self._stop.was_requested

    async def run(self, program: Program) -> Terminated:
        """Run the program to its end.

        Raises:
            ContainerCreateError: it cannot be created as it is specified.
        """
        self._started_at = timestamp(self._clock.now())
        self._record.container_id = f"process://{uuid.uuid4().hex}"
        self._record.restart_count = self._number
        try:
            async with self._pod.sandbox.run(program) as container:
                self._announce("Normal", "Created", "Container created")
                self._announce("Normal", "Started", "Container started")
                self._pod.running[self._record.name] = container
                try:
                    report = await self._watch(container)
                finally:
                    del self._pod.running[self._record.name]
        except ContainerStartError as error:
            self._announce("Warning", "Failed", f"Error: {error}")
            return self._terminated(128, error.reason, str(error))
        return await self._judge(report)

    async def _watch(self, container: RunningContainer) -> Exited | StartFailed:
        if self._post_start is None:
            self._show_running()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop.carry_out, container)
            tasks.start_soon(self._observe, container)
            report = await container.wait()
            tasks.cancel_scope.cancel()
        return report

    async def _observe(self, container: RunningContainer) -> None:
        if self._post_start is not None:
            if not await self._post_start.carry_out(container, self._clock):
                self._announce("Warning", "FailedPostStartHook", "PostStartHook failed")
                self._stop.request("FailedPostStartHook")
                return
            self._show_running()
        await self._health.watch(container)

    def _show_running(self) -> None:
        self._record.state = Running(self._started_at)
        self._health.begin()

    async def _judge(self, report: Exited | StartFailed) -> Terminated:
        if not isinstance(report, Exited):
            return self._terminated(128, "ContainerCannotRun", report.message)
        reason = "Completed" if report.code == 0 else "Error"
        message_file = self._pod.directory.termination_log(self._record.name, self._number)
        log_file = self._pod.directory.log_file(self._record.name, self._number)
        message = await anyio.to_thread.run_sync(
            termination_message, self._container, report.code, message_file, log_file
        )
        return self._terminated(report.code, reason, message, report.signal)

    def _terminated(self, exit_code: int, reason: str, message: str, signal: int = 0) -> Terminated:
        log.info("container ended", container=self._record.name, exit_code=exit_code, reason=reason)
        finished_at, container_id = timestamp(self._clock.now()), self._record.container_id
        return Terminated(exit_code, reason, finished_at, self._started_at, signal, message, container_id)

    def _announce(self, kind: EventKind, reason: str, message: str) -> None:
        self._pod.announce(kind, reason, message, container=self._record.name)
