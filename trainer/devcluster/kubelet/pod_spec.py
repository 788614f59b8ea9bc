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


def restart_policy(pod: Object) -> str:
    """Never, OnFailure or Always."""
    return str(pod["spec"].get("restartPolicy") or "Always")


def should_restart(policy: str, exit_code: int) -> bool:
    """Whether a container that ended so is started again, by its restart policy."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def init_policy(policy: str) -> str:
    """The restart policy of init containers, which are done once they have succeeded."""
    return "OnFailure" if policy == "Always" else policy


def grace_period(pod: Object) -> float:
    """Seconds between SIGTERM and SIGKILL: those of the deletion, else those of the specification."""
    for given in (pod["metadata"].get("deletionGracePeriodSeconds"), pod["spec"].get("terminationGracePeriodSeconds")):
        if given is not None:
            return float(given)
    return _DEFAULT_GRACE
