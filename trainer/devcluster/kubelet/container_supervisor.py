"""Runs one container of a pod: prepares it, starts it, watches it, starts it again."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import structlog

from trainer.devcluster.kubelet.container_record import ContainerRecord, Running, Terminated, Waiting
from trainer.devcluster.kubelet.environment import EnvironmentBuilder, command_line
from trainer.devcluster.kubelet.errors import ContainerConfigError, ContainerCreateError, ContainerStartError
from trainer.devcluster.kubelet.options import inherited_environment
from trainer.devcluster.kubelet.pod_spec import should_restart
from trainer.devcluster.kubelet.readiness import ReadinessProbe
from trainer.devcluster.kubelet.restart_backoff import RestartBackoff, format_duration
from trainer.devcluster.kubelet.root_filesystem import SandboxMount
from trainer.devcluster.kubelet.sandbox import Program
from trainer.devcluster.kubelet.shim.reports import Exited
from trainer.devcluster.kubelet.termination_message import DEFAULT_PATH, termination_message
from trainer.devcluster.kubelet.volume_mounts import image_mounts, volume_mounts
from trainer.kube.clock import timestamp
from trainer.kube.errors import KubeError
from trainer.kube.objects import name_of, namespace_of, uid_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainer.devcluster.kubelet.downward import PodFacts
    from trainer.devcluster.kubelet.pod_directory import PodDirectory
    from trainer.devcluster.kubelet.pod_host import PodHost
    from trainer.devcluster.kubelet.pod_names import PodNames
    from trainer.devcluster.kubelet.sandbox import RunningContainer, Sandbox
    from trainer.devcluster.kubelet.shim.reports import Failed
    from trainer.devcluster.kubelet.termination import Termination
    from trainer.devcluster.kubelet.volumes import Volume
    from trainer.kube.events.recorder import EventKind
    from trainer.kube.objects import Object

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RunningPod:
    """What the containers of a pod share while it runs."""

    pod: Object
    names: PodNames
    host: PodHost
    directory: PodDirectory
    facts: PodFacts
    volumes: Mapping[str, Volume]
    sandbox: Sandbox
    termination: Termination
    publish: Callable[[], None]
    """A record has changed: write the pod's status."""
    announce: Callable[[EventKind, str, str], None]
    """Write an event: type, reason, message."""


class ContainerSupervisor:
    """One container from its first start to its last end.

    Args:
        running: the pod around it.
        container: its specification.
        record: where its state is kept.
        policy: restart policy: Never, OnFailure or Always.
    """

    def __init__(self, running: RunningPod, container: Mapping[str, Any], record: ContainerRecord, policy: str) -> None:
        self._pod = running
        self._container = container
        self._record = record
        self._policy = policy
        options = running.host.options
        self._backoff = RestartBackoff(options.restart_backoff, options.restart_backoff_reset)
        self._ran_for = 0.0

    async def supervise(self) -> None:
        """Run the container until it needs no restart or must not be restarted any more."""
        outcome = self._record.outcome
        while not self._pod.termination.requested.is_set():
            if outcome is None:
                outcome = await self._attempt()
            if outcome is None:
                return
            self._record.state = outcome
            if not should_restart(self._policy, outcome.exit_code):
                break
            await self._back_off(outcome)
            if not self._pod.termination.requested.is_set():
                self._record.last = outcome
                self._record.restart_count += 1
                outcome = None
        self._pod.publish()

    async def _back_off(self, outcome: Terminated) -> None:
        seconds = self._backoff.next_pause(self._ran_for)
        if seconds <= 0:
            return
        name = self._record.name
        pod = f"{name_of(self._pod.pod)}_{namespace_of(self._pod.pod)}({uid_of(self._pod.pod)})"
        message = f"back-off {format_duration(seconds)} restarting failed container={name} pod={pod}"
        self._record.last = outcome
        self._record.state = Waiting("CrashLoopBackOff", message)
        self._pod.publish()
        self._pod.announce("Warning", "BackOff", f"Back-off restarting failed container {name} in pod {pod}")
        await self._pod.termination.pause(seconds)
        self._record.state = outcome

    async def _attempt(self) -> Terminated | None:
        """Run the container once; None if it could not be run before termination was requested."""
        program = await self._prepare()
        if program is None:
            return None
        started = self._pod.host.clock.monotonic()
        started_at = self._now()
        self._record.container_id = f"process://{uuid.uuid4().hex}"
        try:
            probe = ReadinessProbe.of(self._container, self._pod.names.address)
            async with self._pod.sandbox.run(program) as container:
                self._record.state = Running(started_at)
                self._record.passes_probe = probe is None
                self._pod.publish()
                self._pod.announce("Normal", "Created", f"Created container {self._record.name}")
                self._pod.announce("Normal", "Started", f"Started container {self._record.name}")
                report = await self._watch(container, probe)
        except ContainerStartError as error:
            self._pod.announce("Warning", "Failed", f"Error: {error}")
            return self._terminated(128, error.reason, started_at, message=str(error))
        except ContainerCreateError as error:
            await self._give_up(error)
            return None
        self._ran_for = self._pod.host.clock.monotonic() - started
        return await self._judge(report, started_at, program)

    async def _watch(self, container: RunningContainer, probe: ReadinessProbe | None) -> Exited | Failed:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._terminate, container)
            if probe is not None:
                tasks.start_soon(self._watch_readiness, container, probe)
            report = await container.wait()
            tasks.cancel_scope.cancel()
        return report

    async def _watch_readiness(self, container: RunningContainer, probe: ReadinessProbe) -> None:
        def tell(is_ready: bool) -> None:
            self._record.passes_probe = is_ready
            self._pod.publish()

        def complain(message: str) -> None:
            self._pod.announce("Warning", "Unhealthy", f"Readiness probe failed: {message}")

        await probe.watch(container, self._pod.host.clock, on_change=tell, on_failure=complain)

    async def _terminate(self, container: RunningContainer) -> None:
        await self._pod.termination.requested.wait()
        self._pod.announce("Normal", "Killing", f"Stopping container {self._record.name}")
        await container.terminate()
        await self._pod.termination.overdue.wait()
        await container.kill()

    async def _judge(self, report: Exited | Failed, started_at: str, program: Program) -> Terminated:
        if not isinstance(report, Exited):
            return self._terminated(128, "ContainerCannotRun", started_at, message=report.message)
        reason = "Completed" if report.code == 0 else "Error"
        message_file = self._pod.directory.termination_log(self._record.name, self._record.restart_count)
        message = await anyio.to_thread.run_sync(
            termination_message, self._container, report.code, message_file, program.log_file
        )
        return self._terminated(report.code, reason, started_at, message=message, signal=report.signal)

    def _terminated(self, exit_code: int, reason: str, started_at: str, *, message: str, signal: int = 0) -> Terminated:
        log.info("container ended", container=self._record.name, exit_code=exit_code, reason=reason)
        return Terminated(
            exit_code, reason, self._now(), started_at, signal, message, container_id=self._record.container_id
        )

    async def _prepare(self) -> Program | None:
        """The program to run; waits for what it refers to, until termination is requested."""
        failures = 0
        while not self._pod.termination.requested.is_set():
            try:
                return await self._program()
            except ContainerCreateError as error:
                await self._give_up(error)
            except KubeError as error:
                reason = (
                    "CreateContainerConfigError" if isinstance(error, ContainerConfigError) else "CreateContainerError"
                )
                self._wait(reason, str(error))
                await self._pod.termination.pause(self._pod.host.options.retry_backoff.pause(failures))
                failures += 1
        return None

    async def _give_up(self, error: ContainerCreateError) -> None:
        self._wait("CreateContainerError", str(error))
        await self._pod.termination.requested.wait()

    def _wait(self, reason: str, message: str) -> None:
        self._record.state = Waiting(reason, message)
        self._pod.publish()
        self._pod.announce("Warning", "Failed", f"Error: {message}")

    async def _program(self) -> Program:
        pod, container, count = self._pod, self._container, self._record.restart_count
        builder = EnvironmentBuilder(pod.pod, container, pod.facts, pod.host.reader, rewrite=self._rewrite)
        variables = await builder.build()
        command = command_line(container, variables)
        await anyio.to_thread.run_sync(pod.directory.prepare_run, self._record.name, count)
        mounts = await anyio.to_thread.run_sync(volume_mounts, container, pod.volumes, variables)
        if pod.host.network.isolated:
            mounts += await anyio.to_thread.run_sync(image_mounts, pod.directory.empty)
        inherited = inherited_environment(pod.host.options, os.environ) | {"HOSTNAME": pod.names.hostname}
        return Program(
            command,
            inherited | variables,
            scratch=pod.directory.scratch(self._record.name, count),
            log_file=pod.directory.log_file(self._record.name, count),
            working_directory=container.get("workingDir") or "",
            mounts=(*self._own_files(), *mounts),
        )

    def _own_files(self) -> list[SandboxMount]:
        """The files that every container has."""
        pod, count = self._pod, self._record.restart_count
        message_path = self._container.get("terminationMessagePath") or DEFAULT_PATH
        files = [
            SandboxMount(pod.directory.hosts, "/etc/hosts"),
            SandboxMount(pod.directory.termination_log(self._record.name, count), message_path),
        ]
        if pod.host.network.resolv_conf is not None:
            files.append(SandboxMount(pod.directory.resolv_conf, "/etc/resolv.conf"))
        return files

    def _rewrite(self, value: str) -> str:
        names = self._pod.names
        return self._pod.host.network.rewrite(value, namespace=names.namespace, subdomain=names.subdomain)

    def _now(self) -> str:
        return timestamp(self._pod.host.clock.now())
