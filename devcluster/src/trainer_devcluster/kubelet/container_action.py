"""What a probe or a lifecycle hook does to a container: run a command, or connect to a port (core/v1 handlers)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer_devcluster.kubelet.errors import ContainerCreateError
from trainer_devcluster.kubelet.shim.spec import ProbeSpec

if TYPE_CHECKING:
    from collections.abc import Mapping


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
