"""Probes and lifecycle hooks of containers, and what follows from what probes find.

Kubernetes documentation, "Configure Liveness, Readiness and Startup Probes".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self, TypeAlias

import anyio
import structlog

from trainer.kube.clock import Clock
from trainer_devcluster.kubelet.container_record import ContainerRecord
from trainer_devcluster.kubelet.errors import ContainerCreateError
from trainer_devcluster.kubelet.pod_api import RunningPod
from trainer_devcluster.kubelet.pod_spec import ProbeKind
from trainer_devcluster.kubelet.sandbox import RunningContainer
from trainer_devcluster.kubelet.shim.reports import Probed
from trainer_devcluster.kubelet.shim.spec import ProbeSpec

HookKind: TypeAlias = Literal["postStart", "preStop"]
log = structlog.get_logger(__name__)


def action_of(
    handler: Mapping[str, Any], container: Mapping[str, Any], address: str, *, field: str, timeout: float
) -> ProbeSpec:
    """The action that a handler asks for.

    Args:
        handler: has exec, httpGet or tcpSocket.
        container: specification of the container, whose ports have names.
        address: that of the pod.
        field: where the handler stands, for the error.
        timeout: seconds after which it has failed; 0 sets no limit.

    Raises:
        ContainerCreateError: it names a port that the container does not have.
    """
    if command := (handler.get("exec") or {}).get("command"):
        return ProbeSpec("exec", timeout, command=tuple(command))
    if http := handler.get("httpGet"):
        headers = tuple((header["name"], header.get("value") or "") for header in http.get("httpHeaders") or [])
        return ProbeSpec(
            "http",
            timeout,
            host=http.get("host") or address,
            port=_port(http["port"], container, field),
            scheme=(http.get("scheme") or "HTTP").lower(),
            path="/" + (http.get("path") or "").removeprefix("/"),
            headers=headers,
        )
    tcp = handler["tcpSocket"]
    return ProbeSpec("tcp", timeout, host=tcp.get("host") or address, port=_port(tcp["port"], container, field))


def _port(port: int | str, container: Mapping[str, Any], field: str) -> int:
    if isinstance(port, int) or port.isdigit():
        return int(port)
    for entry in container.get("ports") or []:
        if entry.get("name") == port:
            return int(entry["containerPort"])
    raise ContainerCreateError(f"{field} names port {port!r}, which is none of the container's ports")


@dataclass(frozen=True, slots=True)
class LifecycleHook:
    """What is done when a container has started, or before it is asked to end."""

    kind: HookKind
    action: ProbeSpec | None
    """A command or a request, of which any answer will do. Default: None, a pause instead."""
    seconds: float = 0.0
    """Length of the pause. Default: 0."""

    @classmethod
    def of(cls, container: Mapping[str, Any], kind: HookKind, address: str) -> Self | None:
        """A hook of a container in a pod with this address; None if it has none of this kind.

        Raises:
            ContainerCreateError: it names a port that the container does not have.
        """
        given: Mapping[str, Any] | None = (container.get("lifecycle") or {}).get(kind)
        if not given:
            return None
        if given.get("sleep"):
            return cls(kind, None, given["sleep"].get("seconds") or 0)
        action = action_of(given, container, address, field=f"lifecycle.{kind}", timeout=0)
        return cls(kind, replace(action, any_status=True))

    async def carry_out(self, container: Probeable, clock: Clock) -> bool:
        """Do it to the end; whether it succeeded."""
        if self.action is None:
            await clock.sleep(self.seconds)
            return True
        found = await container.probe(self.action)
        if not found.success:
            # Not in an event, where the kubelet keeps what a hook prints out of, since it may be a secret.
            log.warning("lifecycle hook failed", hook=self.kind, error=found.message)
        return found.success


_FIELDS = {
    "initial_delay": "initialDelaySeconds",
    "period": "periodSeconds",
    "success_threshold": "successThreshold",
    "failure_threshold": "failureThreshold",
    "grace_period": "terminationGracePeriodSeconds",
}
_TITLES = {"startupProbe": "Startup", "livenessProbe": "Liveness", "readinessProbe": "Readiness"}


class Probeable(Protocol):
    """A running container."""

    async def probe(self, probe: ProbeSpec) -> Probed:
        """Run a probe."""


@dataclass(frozen=True, slots=True)
class Probe:
    """How one thing about a container is found out."""

    kind: ProbeKind
    action: ProbeSpec
    initial_delay: float = 0.0
    """Seconds from the start of the container to the first probe. Default: 0, as in Kubernetes."""
    period: float = 10.0
    """Seconds between two probes. Default: 10, as in Kubernetes."""
    success_threshold: int = 1
    """Successes in a row that count. Default: 1, as in Kubernetes."""
    failure_threshold: int = 3
    """Failures in a row that count. Default: 3, as in Kubernetes."""
    grace_period: float | None = None
    """Seconds between SIGTERM and SIGKILL if the container is ended for it. Default: None, those of the pod."""

    @classmethod
    def of(cls, container: Mapping[str, Any], kind: ProbeKind, address: str) -> Self | None:
        """A probe of a container in a pod with this address; None if it has none of this kind.

        Raises:
            ContainerCreateError: it names a port that the container does not have.
        """
        given: Mapping[str, Any] | None = container.get(kind)
        if given is None:
            return None
        numbers = {name: given[field] for name, field in _FIELDS.items() if given.get(field) is not None}
        action = action_of(given, container, address, field=kind, timeout=given.get("timeoutSeconds") or 1)
        return cls(kind, action, **numbers)

    async def watch(
        self,
        container: Probeable,
        clock: Clock,
        *,
        since: float,
        on_change: Callable[[bool], None],
        on_failure: Callable[[str], None],
    ) -> None:
        """Probe a container until cancelled.

        Before the first result that counts, a container is alive, but neither started nor ready.

        Args:
            container: the container.
            clock: measures the pauses.
            since: when the container was started, by the clock's `monotonic`.
            on_change: called with what is found, when that has changed.
            on_failure: called with every failure, in the words of the kubelet.
        """
        await clock.sleep(since + self.initial_delay - clock.monotonic())
        state = {"startupProbe": None, "livenessProbe": True, "readinessProbe": False}[self.kind]
        latest, in_a_row = None, 0
        while True:
            found = await container.probe(self.action)
            if not found.success:
                on_failure(self._describe(found))
            if not found.errored:
                in_a_row = in_a_row + 1 if found.success == latest else 1
                latest = found.success
                threshold = self.success_threshold if latest else self.failure_threshold
                if in_a_row >= threshold and state != latest:
                    state = latest
                    on_change(latest)
            await clock.sleep(self.period)

    def _describe(self, found: Probed) -> str:
        if found.errored:
            return f"{_TITLES[self.kind]} probe errored and resulted in unknown state: {found.message}"
        return f"{_TITLES[self.kind]} probe failed: {found.message}"


class ContainerHealth:
    """The probes of one run of a container.

    Args:
        pod: the pod around the container.
        container: its specification.
        record: where it is kept whether the container has started and is ready.
        stop: ends a container that has not started in time or is dead, with a message and a grace period.
        on_started: called once, when the container has started.

    Raises:
        ContainerCreateError: a probe names a port that the container does not have.
    """

    def __init__(
        self,
        pod: RunningPod,
        container: Mapping[str, Any],
        record: ContainerRecord,
        stop: Callable[[str, float | None], None],
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
        self._stop(message, probe.grace_period)
