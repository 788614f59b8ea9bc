"""Questions asked of a pod's specification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.objects import Object

_DEFAULT_GRACE = 30


def all_containers(pod: Object) -> list[Mapping[str, Any]]:
    """Init containers and containers, in this order."""
    spec = pod["spec"]
    return [*(spec.get("initContainers") or []), *spec["containers"]]


def container_named(pod: Object, name: str) -> Mapping[str, Any]:
    """The container of this name.

    Raises:
        ValueError: there is none.
    """
    for container in all_containers(pod):
        if container["name"] == name:
            return container
    raise ValueError(f"the pod has no container {name!r}")


def grace_period(pod: Object) -> float:
    """Seconds between SIGTERM and SIGKILL: those of the deletion, else those of the specification."""
    given = pod["metadata"].get("deletionGracePeriodSeconds")
    return specified_grace_period(pod) if given is None else float(given)


def specified_grace_period(pod: Object) -> float:
    """Seconds between SIGTERM and SIGKILL when the pod is not being deleted."""
    given = pod["spec"].get("terminationGracePeriodSeconds")
    return _DEFAULT_GRACE if given is None else float(given)


def container_path(pod: Object, name: str) -> str:
    """Where a container is in its pod, as events say it: `spec.containers{main}`."""
    init = any(container["name"] == name for container in pod["spec"].get("initContainers") or [])
    return f"spec.{'initContainers' if init else 'containers'}{{{name}}}"
