"""What the kubelet says about the containers of a pod (Kubernetes documentation, "Pod Lifecycle")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.workloads.restart_policy import RestartPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer.kube.objects import Object


def container_statuses(pod: Mapping[str, Any]) -> list[Object]:
    """The statuses of all containers of a pod, init containers first."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def container_status(pod: Mapping[str, Any], container: str) -> Object:
    """The status of one container, which may be an init container; empty while there is none."""
    return next((status for status in container_statuses(pod) if status.get("name") == container), {})


def containers_of(pod: Mapping[str, Any]) -> list[str]:
    """Names of all containers of the pod, init containers first."""
    return [str(container.get("name") or "") for container in _containers(pod)]


def has_ended(pod: Mapping[str, Any], container: str) -> bool:
    """Whether a container has ended and will not be started again."""
    if (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return True
    terminated = (container_status(pod, container).get("state") or {}).get("terminated")
    if terminated is None:
        return False
    return not _restart_policy(pod, container).restarts(terminated.get("exitCode") or 0)


def _restart_policy(pod: Mapping[str, Any], container: str) -> RestartPolicy:
    spec = pod.get("spec") or {}
    for field in ("initContainers", "containers"):
        for each in spec.get(field) or []:
            if each.get("name") == container:
                return RestartPolicy.of(pod, each, init=field == "initContainers")
    return RestartPolicy.of(pod, {})


def _containers(pod: Mapping[str, Any]) -> Iterator[Object]:
    spec = pod.get("spec") or {}
    yield from spec.get("initContainers") or []
    yield from spec.get("containers") or []
