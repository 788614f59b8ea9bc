"""Probes of containers (Kubernetes documentation, "Configure Liveness, Readiness and Startup Probes")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

from trainer_devcluster.kubelet.container_action import action_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainer.kube.clock import Clock
    from trainer_devcluster.kubelet.shim.reports import Probed
    from trainer_devcluster.kubelet.shim.spec import ProbeSpec

ProbeKind: TypeAlias = Literal["startupProbe", "livenessProbe", "readinessProbe"]
PROBES: tuple[ProbeKind, ...] = ("startupProbe", "livenessProbe", "readinessProbe")
"""Their fields in a container's specification."""

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
        """What a probe finds."""


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
