"""Readiness probes (Kubernetes documentation, "Configure Liveness, Readiness and Startup Probes")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from trainer.devcluster.kubelet.errors import ContainerCreateError
from trainer.devcluster.kubelet.shim.spec import ProbeSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainer.devcluster.kubelet.shim.reports import Probed
    from trainer.kube.clock import Clock


_FIELDS = {
    "initial_delay": "initialDelaySeconds",
    "period": "periodSeconds",
    "success_threshold": "successThreshold",
    "failure_threshold": "failureThreshold",
}


class Probeable(Protocol):
    """A running container."""

    async def probe(self, probe: ProbeSpec) -> Probed:
        """What a probe finds."""


@dataclass(frozen=True, slots=True)
class ReadinessProbe:
    """How it is found out whether a container is ready."""

    probe: ProbeSpec
    initial_delay: float = 0.0
    """Seconds from the start of the container to the first probe. Default: 0, as in Kubernetes."""
    period: float = 10.0
    """Seconds between two probes. Default: 10, as in Kubernetes."""
    success_threshold: int = 1
    """Successes in a row after which a container is ready. Default: 1, as in Kubernetes."""
    failure_threshold: int = 3
    """Failures in a row after which it no longer is. Default: 3, as in Kubernetes."""

    @classmethod
    def of(cls, container: Mapping[str, Any], address: str) -> Self | None:
        """The probe of a container in a pod with this address; None if it has none and is ready when it runs.

        Raises:
            ContainerCreateError: it names a port that the container does not have.
        """
        given: Mapping[str, Any] | None = container.get("readinessProbe")
        if given is None:
            return None
        numbers = {name: given[field] for name, field in _FIELDS.items() if field in given}
        return cls(_probe(given, container, address), **numbers)

    async def watch(
        self,
        container: Probeable,
        clock: Clock,
        *,
        on_change: Callable[[bool], None],
        on_failure: Callable[[str], None],
    ) -> None:
        """Probe a container, which has just been started and is not ready, until cancelled.

        Args:
            container: the container.
            clock: measures the pauses.
            on_change: told whether the container is ready, when that has changed.
            on_failure: told of every failure, why.
        """
        await clock.sleep(self.initial_delay)
        is_ready, successes, failures = False, 0, 0
        while True:
            found = await container.probe(self.probe)
            if found.success:
                successes, failures = successes + 1, 0
            else:
                successes, failures = 0, failures + 1
                on_failure(found.message)
            if successes >= self.success_threshold and not is_ready:
                is_ready = True
                on_change(is_ready)
            elif failures >= self.failure_threshold and is_ready:
                is_ready = False
                on_change(is_ready)
            await clock.sleep(self.period)


def _probe(given: Mapping[str, Any], container: Mapping[str, Any], address: str) -> ProbeSpec:
    timeout = given.get("timeoutSeconds", 1)
    if command := (given.get("exec") or {}).get("command"):
        return ProbeSpec("exec", timeout, command=tuple(command))
    if http := given.get("httpGet"):
        headers = tuple((header["name"], header.get("value") or "") for header in http.get("httpHeaders") or [])
        return ProbeSpec(
            "http",
            timeout,
            host=http.get("host") or address,
            port=_port(http["port"], container),
            scheme=(http.get("scheme") or "HTTP").lower(),
            path=_rooted(http.get("path") or "/"),
            headers=headers,
        )
    tcp = given["tcpSocket"]
    return ProbeSpec("tcp", timeout, host=tcp.get("host") or address, port=_port(tcp["port"], container))


def _rooted(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"


def _port(port: int | str, container: Mapping[str, Any]) -> int:
    if isinstance(port, int) or port.isdigit():
        return int(port)
    for entry in container.get("ports") or []:
        if entry.get("name") == port:
            return int(entry["containerPort"])
    raise ContainerCreateError(f"readinessProbe names port {port!r}, which is none of the container's ports")
