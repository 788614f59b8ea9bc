"""Keeps the containers of a pod running as their restart policies say, in their order.

Kubernetes documentation, "Sidecar Containers".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from trainer.kube.backoff import Backoff
from trainer.kube.errors import KubeError
from trainer.kube.events.recorder import EventKind
from trainer.kube.objects import name_of, namespace_of, uid_of
from trainer_devcluster.kubelet.container_record import ContainerRecord, Terminated, Waiting
from trainer_devcluster.kubelet.container_run import ContainerRun, ProgramBuilder
from trainer_devcluster.kubelet.errors import ContainerConfigError, ContainerCreateError
from trainer_devcluster.kubelet.pod_api import RunningPod
from trainer_devcluster.kubelet.pod_spec import specified_grace_period
from trainer_devcluster.kubelet.pod_status import PodRecord
from trainer_devcluster.kubelet.sandbox import Program


class ContainerSupervisor:
    """One container from its first start to its last end.

    Args:
        running: the pod around it.
        container: its specification.
        record: where its state is kept.
        turn: when the pod ends, waits until it is the container's turn; nothing to wait for by default.
    """

    def __init__(
        self,
        running: RunningPod,
        container: Mapping[str, Any],
        record: ContainerRecord,
        turn: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint,
    ) -> None:
        self.started = anyio.Event()
        """It has started, startup probe included, if only once."""
        self.settled = anyio.Event()
        """The next container may be started: this one runs, or cannot be started now."""
        self.ended = anyio.Event()
        """It has ended and will not run again."""
        self._pod = running
        self._container = container
        self._record = record
        self._turn = turn
        self._programs = ProgramBuilder(running, container)
        self._backoff = RestartBackoff(running.host.options.restart_backoff)
        self._next_run = record.restart_count if record.last is None else record.restart_count + 1

    async def supervise(self) -> None:
        """Run the container until it needs no restart or must not be restarted any more."""
        try:
            await self._supervise()
        finally:
            self.settled.set()
            self.ended.set()

    async def _supervise(self) -> None:
        outcome = self._record.state if isinstance(self._record.state, Terminated) else None
        was_killed, ran_for = False, 0.0
        while not self._pod.termination.requested.is_set():
            if outcome is None:
                began = self._pod.host.clock.monotonic()
                run, outcome = await self._attempt()
                if run is None or outcome is None:
                    return
                was_killed, ran_for = run.was_killed, self._pod.host.clock.monotonic() - began
            self._record.state = outcome
            policy = self._record.policy
            if not policy.restarts(outcome.exit_code) and not (was_killed and policy.survives_kill):
                break
            await self._back_off(outcome, ran_for)
            if not self._pod.termination.requested.is_set():
                self._record.last = outcome
                self._next_run = self._record.restart_count + 1
                outcome = None
        self._pod.publish()

    async def _back_off(self, outcome: Terminated, ran_for: float) -> None:
        self.settled.set()
        seconds = self._backoff.next_pause(ran_for)
        if seconds <= 0:
            return
        name = self._record.name
        pod = f"{name_of(self._pod.pod)}_{namespace_of(self._pod.pod)}({uid_of(self._pod.pod)})"
        message = f"back-off {format_duration(seconds)} restarting failed container={name} pod={pod}"
        self._record.last = outcome
        self._record.state = Waiting("CrashLoopBackOff", message)
        self._pod.publish()
        self._announce("Warning", "BackOff", f"Back-off restarting failed container {name} in pod {pod}")
        await self._pod.termination.pause(seconds)
        self._record.state = outcome

    async def _attempt(self) -> tuple[ContainerRun | None, Terminated | None]:
        """Run the container once; nothing if it could not be run before termination was requested."""
        program = await self._prepare()
        if program is None:
            return None, None
        try:
            run = ContainerRun(
                self._pod,
                self._container,
                self._record,
                self._next_run,
                on_started=self._on_started,
                turn=self._turn,
            )
            return run, await run.run(program)
        except ContainerCreateError as error:
            await self._give_up(error)
            return None, None

    def _on_started(self) -> None:
        self.started.set()
        self.settled.set()

    async def _prepare(self) -> Program | None:
        """The program to run; waits for what it refers to, until termination is requested."""
        failures = 0
        while not self._pod.termination.requested.is_set():
            try:
                return await self._programs.build(self._next_run)
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
        self.settled.set()
        self._record.state = Waiting(reason, message)
        self._pod.publish()
        self._announce("Warning", "Failed", f"Error: {message}")

    def _announce(self, kind: EventKind, reason: str, message: str) -> None:
        self._pod.announce(kind, reason, message, container=self._record.name)


_RESET_AFTER = 600.0
"""Seconds of running after which the pauses start over, as in Kubernetes."""


class RestartBackoff:
    """Pauses of one container: none before the first restart, then growing; they start over after a long run."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._restarts = 0

    def next_pause(self, ran_for: float) -> float:
        """Seconds to wait after a run of so many seconds."""
        if ran_for >= _RESET_AFTER:
            self._restarts = 0
        self._restarts += 1
        return 0.0 if self._restarts == 1 else self._backoff.pause(self._restarts - 2)


def format_duration(seconds: float) -> str:
    """As Go prints durations: 10s, 1m20s, 5m0s."""
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}m{rest:g}s" if minutes else f"{rest:g}s"


class PodContainers:
    """Init containers one after the other, then the containers; sidecars run beside them and end last."""

    def __init__(self, pod: RunningPod, record: PodRecord) -> None:
        self._pod = pod
        self._record = record
        self._in_order: list[ContainerSupervisor] = []
        """Those that have been started, in this order."""

    async def run(self) -> None:
        """Run all containers until they have ended for good."""
        async with anyio.create_task_group() as sidecars:
            if await self._initialize(sidecars):
                await self._run_containers()
            # What still runs are sidecars, which nobody needs any more.
            self._pod.termination.request(specified_grace_period(self._pod.pod))

    async def _initialize(self, sidecars: TaskGroup) -> bool:
        """Whether the containers may be started."""
        containers = self._pod.pod["spec"].get("initContainers") or []
        for container, record in zip(containers, self._record.init, strict=True):
            supervisor = self._add(container, record)
            if not record.sidecar:
                await supervisor.supervise()
                if not record.has_succeeded:
                    return False
            else:
                sidecars.start_soon(supervisor.supervise)
                if not await self._pod.termination.unless_requested(supervisor.started):
                    return False
        return True

    async def _run_containers(self) -> None:
        supervisors = [
            self._add(container, record)
            for container, record in zip(self._pod.pod["spec"]["containers"], self._record.containers, strict=True)
        ]
        async with anyio.create_task_group() as tasks:
            for supervisor in supervisors:
                tasks.start_soon(supervisor.supervise)
                await supervisor.settled.wait()

    def _add(self, container: Mapping[str, Any], record: ContainerRecord) -> ContainerSupervisor:
        position = len(self._in_order)

        async def turn() -> None:
            for later in self._in_order[position + 1 :] if record.sidecar else ():
                await later.ended.wait()

        supervisor = ContainerSupervisor(self._pod, container, record, turn)
        self._in_order.append(supervisor)
        return supervisor
