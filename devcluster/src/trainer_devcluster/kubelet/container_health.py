"""What the probes of a running container find, and what follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from trainer_devcluster.kubelet.probing import Probe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainer_devcluster.kubelet.container_record import ContainerRecord
    from trainer_devcluster.kubelet.container_stop import ContainerStop
    from trainer_devcluster.kubelet.pod_api import RunningPod
    from trainer_devcluster.kubelet.sandbox import RunningContainer


class ContainerHealth:
    """The probes of one run of a container.

    Args:
        pod: the pod around the container.
        container: its specification.
        record: where it is kept whether the container has started and is ready.
        stop: ends a container that has not started in time or is dead.
        on_started: called once, when the container has started.

    Raises:
        ContainerCreateError: a probe names a port that the container does not have.
    """

    def __init__(
        self,
        pod: RunningPod,
        container: Mapping[str, Any],
        record: ContainerRecord,
        stop: ContainerStop,
        on_started: Callable[[], None],
    ) -> None:
        self._pod = pod
        self._record = record
        self._stop = stop
        self._on_started = on_started
        self._clock = pod.host.clock
        self._since = self._clock.monotonic()
        address = pod.names.address
        self._startup = Probe.of(container, "startupProbe", address)
        self._liveness = Probe.of(container, "livenessProbe", address)
        self._readiness = Probe.of(container, "readinessProbe", address)

    def begin(self) -> None:
        """The container runs: note what is known without a probe."""
        self._since = self._clock.monotonic()
        self._record.passes_startup = self._startup is None
        self._record.passes_probe = self._readiness is None
        self._pod.publish()
        if self._startup is None:
            self._on_started()

    async def watch(self, container: RunningContainer) -> None:
        """Probe the container, until cancelled or until its pod has to end.

        A program that is asked to end need not be alive any more, but it may still be ready.
        """
        if self._startup is not None and not await self._wait_for_startup(container, self._startup):
            return
        async with anyio.create_task_group() as tasks:
            if self._readiness is not None:
                tasks.start_soon(self._probe, container, self._readiness, self._set_ready)
            if self._liveness is not None and await self._first_change(container, self._liveness) is False:
                self._end("liveness", self._liveness)

    async def _wait_for_startup(self, container: RunningContainer, probe: Probe) -> bool:
        has_started = await self._first_change(container, probe)
        if has_started:
            self._record.passes_startup = True
            self._pod.publish()
            self._on_started()
        elif has_started is False:
            self._end("startup", probe)
        return bool(has_started)

    async def _first_change(self, container: RunningContainer, probe: Probe) -> bool | None:
        """What a probe finds that was not known before; None if the pod has to end first."""
        changes: list[bool] = []
        changed = anyio.Event()

        def found(change: bool) -> None:
            changes.append(change)
            changed.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._probe, container, probe, found)
            await self._pod.termination.unless_requested(changed)
            tasks.cancel_scope.cancel()
        return changes[0] if changes else None

    async def _probe(self, container: RunningContainer, probe: Probe, on_change: Callable[[bool], None]) -> None:
        await probe.watch(container, self._clock, since=self._since, on_change=on_change, on_failure=self._complain)

    def _set_ready(self, is_ready: bool) -> None:
        self._record.passes_probe = is_ready
        self._pod.publish()

    def _complain(self, message: str) -> None:
        self._pod.announce("Warning", "Unhealthy", message, container=self._record.name)

    def _end(self, what: str, probe: Probe) -> None:
        message = f"Container {self._record.name} failed {what} probe"
        if self._record.policy.survives_kill:
            message += ", will be restarted"
        self._stop.request(message, probe.grace_period)
