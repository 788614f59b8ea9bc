"""One run of a container's program, from its start to its end.

How it ended is Completed, Error, StartError or ContainerCannotRun. It is never OOMKilled: memory limits are not
enforced here, and a program for which the machine has no memory left ends by SIGKILL like any other (Error, exit code
137).
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import structlog

from trainer.kube.clock import timestamp
from trainer_devcluster.kubelet.container_action import LifecycleHook
from trainer_devcluster.kubelet.container_health import ContainerHealth
from trainer_devcluster.kubelet.container_record import Running, Terminated
from trainer_devcluster.kubelet.container_stop import ContainerStop
from trainer_devcluster.kubelet.errors import ContainerStartError
from trainer_devcluster.kubelet.shim.reports import Exited
from trainer_devcluster.kubelet.termination import termination_message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from trainer.kube.events.recorder import EventKind
    from trainer_devcluster.kubelet.container_record import ContainerRecord
    from trainer_devcluster.kubelet.pod_api import RunningPod
    from trainer_devcluster.kubelet.sandbox import Program, RunningContainer
    from trainer_devcluster.kubelet.shim.reports import Failed

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
        self._health = ContainerHealth(pod, container, record, self._stop, on_started)

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
                report = await self._watch(container)
        except ContainerStartError as error:
            self._announce("Warning", "Failed", f"Error: {error}")
            return self._terminated(128, error.reason, str(error))
        return await self._judge(report)

    async def _watch(self, container: RunningContainer) -> Exited | Failed:
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

    async def _judge(self, report: Exited | Failed) -> Terminated:
        if not isinstance(report, Exited):
            return self._terminated(128, "ContainerCannotRun", report.message)
        reason = "Completed" if report.code == 0 else "Error"
        message_file = self._pod.directory.termination_log(self._record.name, self._number)
        log_files = partial(self._pod.directory.log_files, self._record.name, self._number)
        message = await anyio.to_thread.run_sync(
            termination_message, self._container, report.code, message_file, log_files
        )
        return self._terminated(report.code, reason, message, report.signal)

    def _terminated(self, exit_code: int, reason: str, message: str, signal: int = 0) -> Terminated:
        log.info("container ended", container=self._record.name, exit_code=exit_code, reason=reason)
        finished_at, container_id = timestamp(self._clock.now()), self._record.container_id
        return Terminated(exit_code, reason, finished_at, self._started_at, signal, message, container_id)

    def _announce(self, kind: EventKind, reason: str, message: str) -> None:
        self._pod.announce(kind, reason, message, container=self._record.name)
