"""Containers of a pod: their statuses, and whether one that has ended is started again.

Kubernetes documentation, "Pod Lifecycle" and its restart policies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from trainer.kube.objects import Object, has_finished, mapping_at

TRAINER_CONTAINERS = ("trainer", "node")
"""Names of the containers that train: those of KEP-2170 and of Kubeflow Trainer."""
SIDECAR_POLICY = "Always"
"""The restart policy that makes an init container a sidecar."""


@dataclass(frozen=True, slots=True)
class ExitCodeRule:
    """Exit codes after which a container is started again, whatever its policy."""

    values: frozenset[int]
    negated: bool = False
    """Whether all other exit codes are meant. Default: False (operator In)."""

    def matches(self, exit_code: int) -> bool:
        """Whether the rule is about this exit code."""
        return (exit_code in self.values) != self.negated


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Whether a container is started again when it ends."""

    name: str
    """Never, OnFailure or Always."""
    rules: tuple[ExitCodeRule, ...] = ()
    """Come before the policy. Default: none."""

    @classmethod
    def of(cls, pod: Mapping[str, Any], container: Mapping[str, Any], *, init: bool = False) -> Self:
        """The policy of a container: its own, else that of its pod.

        An init container is done once it has succeeded, unless it is a sidecar.
        """
        own = container.get("restartPolicy")
        name = str(own or (pod.get("spec") or {}).get("restartPolicy") or "Always")
        if init and own is None and name == "Always":
            name = "OnFailure"
        return cls(
            name, tuple(_rule(rule.get("exitCodes") or {}) for rule in container.get("restartPolicyRules") or [])
        )

    @property
    def survives_kill(self) -> bool:
        """Whether a container that was killed for a failed probe is started again, whatever its exit code."""
        return self.name != "Never"

    def restarts(self, exit_code: int) -> bool:
        """Whether a container that ended so is started again."""
        if any(rule.matches(exit_code) for rule in self.rules):
            return True
        return self.name == "Always" or (self.name == "OnFailure" and exit_code != 0)


ALWAYS = RestartPolicy("Always")


def is_sidecar(init_container: Mapping[str, Any]) -> bool:
    """Whether an init container runs as long as the containers after it."""
    return init_container.get("restartPolicy") == SIDECAR_POLICY


def _rule(exit_codes: Mapping[str, Any]) -> ExitCodeRule:
    return ExitCodeRule(frozenset(exit_codes.get("values") or ()), negated=exit_codes.get("operator") == "NotIn")


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


def main_container(pod: Mapping[str, Any]) -> str:
    """Name of the container for which the pod is there: one that trains, else its first; init containers are none."""
    listed = (pod.get("spec") or {}).get("containers") or (pod.get("status") or {}).get("containerStatuses") or []
    names = [str(container.get("name") or "") for container in listed]
    return next((name for name in TRAINER_CONTAINERS if name in names), names[0] if names else "")


def unended_beside(pod: Mapping[str, Any], container: str) -> Iterator[str]:
    """Names of the other containers that keep a pod, sidecars among them, once this one has ended for good."""
    spec = pod.get("spec") or {}
    for each in spec.get("initContainers") or []:
        name = str(each.get("name") or "")
        if name != container and is_sidecar(each) and "running" in (container_status(pod, name).get("state") or {}):
            yield name
    for each in spec.get("containers") or []:
        name = str(each.get("name") or "")
        if name != container and not has_ended(pod, name):
            yield name


def memory_limit(pod: Mapping[str, Any], container: str) -> str | None:
    """The limit of memory of a container, else of its pod; empty without one, and None if that is not known."""
    for each in _containers(pod):
        if each.get("name") == container and "resources" in each:
            of_pod = mapping_at(pod, "spec", "resources", "limits").get("memory")
            return str(mapping_at(each, "resources", "limits").get("memory") or of_pod or "")
    return None


def has_ended(pod: Mapping[str, Any], container: str) -> bool:
    """Whether a container has ended and will not be started again."""
    if has_finished(pod):
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
