"""Validation of the probes of containers (core/v1 Probe)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.kube.field_errors import forbidden, invalid, not_supported, required
from trainer_devcluster.apiserver.kinds.causes import not_negative

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_SCHEMES = ("HTTP", "HTTPS")
_MAX_PORT = 65535


def validate_probe(probe: Object, path: str) -> list[FieldError]:
    """What is wrong with a defaulted probe."""
    handlers = [handler for handler in _HANDLERS if probe.get(handler) is not None]
    if not handlers:
        return [required(path, "must specify a handler type")]
    causes = [forbidden(f"{path}.{handler}", "may not specify more than 1 handler type") for handler in handlers[1:]]
    causes += [cause for field in _NUMBERS for cause in not_negative(f"{path}.{field}", probe.get(field))]
    handler, place = probe[handlers[0]], f"{path}.{handlers[0]}"
    if handlers[0] == "exec":
        return causes if handler.get("command") else [*causes, required(f"{place}.command")]
    if handlers[0] == "httpGet" and handler.get("scheme") not in _SCHEMES:
        causes.append(not_supported(f"{place}.scheme", handler.get("scheme"), _SCHEMES))
    return causes + _validate_port(handler.get("port"), f"{place}.port")


def _validate_port(port: Any, path: str) -> list[FieldError]:
    if isinstance(port, str) and port:
        return []
    if isinstance(port, int) and not isinstance(port, bool) and 1 <= port <= _MAX_PORT:
        return []
    return [invalid(path, port or 0, f"must be between 1 and {_MAX_PORT}, inclusive")]
