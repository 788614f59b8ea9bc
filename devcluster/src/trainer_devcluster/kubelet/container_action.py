"""What a probe or a lifecycle hook does to a container: run a command, or connect to a port (core/v1 handlers)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import structlog

from trainer_devcluster.kubelet.errors import ContainerCreateError
from trainer_devcluster.kubelet.shim.spec import ProbeSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.clock import Clock
    from trainer_devcluster.kubelet.probing import Probeable

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
            path=_rooted(http.get("path") or "/"),
            headers=headers,
        )
    tcp = handler["tcpSocket"]
    return ProbeSpec("tcp", timeout, host=tcp.get("host") or address, port=_port(tcp["port"], container, field))


def _rooted(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"


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
