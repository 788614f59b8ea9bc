"""Questions asked of a pod's specification, and what of it the dev cluster refuses or knowingly leaves undone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from trainer.kube.objects import Object
from trainer_devcluster.kubelet.host_paths import unreachable_mount

_DEFAULT_GRACE = 30
ProbeKind: TypeAlias = Literal["startupProbe", "livenessProbe", "readinessProbe"]
PROBES: tuple[ProbeKind, ...] = ("startupProbe", "livenessProbe", "readinessProbe")
"""Fields of probes in a container's specification."""


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


_POD_FIELDS = {
    "hostNetwork": "pods have networks of their own",
    "hostPID": "containers have PID namespaces of their own",
    "hostIPC": "pods have IPC namespaces of their own",
    "shareProcessNamespace": "every container has a PID namespace of its own",
    "setHostnameAsFQDN": "host names are short",
    "runtimeClassName": "containers are processes of this machine",
    "ephemeralContainers": "a running pod cannot be debugged by adding containers",
    "resourceClaims": "there are no device drivers",
}
_CONTAINER_FIELDS = {
    "volumeDevices": "there are no block devices",
}
_OWN_USER = "containers run as the user of the dev cluster"
_RESTRICTIONS = {
    "allowPrivilegeEscalation",
    "capabilities",
    "fsGroup",
    "fsGroupChangePolicy",
    "runAsNonRoot",
    "seccompProfile",
}
"""Fields of security contexts that forbid something, or that grant what the user of the dev cluster has."""
_NO_LIMIT = "volumes share the space of the machine"
_HOOKS = ("postStart", "preStop")


def unsupported_fields(pod: Object) -> list[str]:
    """Fields for which the dev cluster refuses the pod, each with what to know about it."""
    spec = pod["spec"]
    problems = [f"spec.{field} ({why})" for field, why in _POD_FIELDS.items() if spec.get(field)]
    for path, container in _containers(spec):
        problems += [f"{path}.{field} ({why})" for field, why in _CONTAINER_FIELDS.items() if container.get(field)]
        problems += [f"{path}.{problem}" for problem in (*_of_probes(container), *_of_lifecycle(container))]
        problems += [f"{path}.restartPolicyRules{problem}" for problem in _of_rules(container)]
    return problems


def unreachable_mounts(pod: Object) -> list[str]:
    """Volume mounts that are possible only where containers have mount namespaces, each with the reason."""
    found = ((path, unreachable_mount(container)) for path, container in _containers(pod["spec"]))
    return [f"{path}.volumeMounts ({why})" for path, why in found if why is not None]


def _of_probes(container: Mapping[str, Any]) -> Iterator[str]:
    for probe in PROBES:
        if (container.get(probe) or {}).get("grpc"):
            yield f"{probe}.grpc (probes are tcpSocket, httpGet or exec)"


def _of_lifecycle(container: Mapping[str, Any]) -> Iterator[str]:
    lifecycle = container.get("lifecycle") or {}
    for hook in _HOOKS:
        if (lifecycle.get(hook) or {}).get("tcpSocket"):
            yield f"lifecycle.{hook}.tcpSocket (hooks are exec, httpGet or sleep)"
    if lifecycle.get("stopSignal"):
        yield "lifecycle.stopSignal (programs are asked to end by SIGTERM)"


def _of_rules(container: Mapping[str, Any]) -> Iterator[str]:
    for index, rule in enumerate(container.get("restartPolicyRules") or []):
        if rule.get("action") != "Restart":
            yield f"[{index}].action {rule.get('action')} (a rule restarts its own container: Restart)"


def ignored_fields(pod: Object) -> list[str]:
    """Fields that have no effect here but do not keep the pod from doing its work, each with the reason."""
    spec = pod["spec"]
    owners = [("spec", spec), *_containers(spec)]
    contexts = ((path, owner.get("securityContext") or {}) for path, owner in owners)
    ignored = [f"{path}.securityContext ({_OWN_USER})" for path, context in contexts if _is_missed(context)]
    return ignored + [
        f"spec.volumes[{index}].emptyDir.sizeLimit ({_NO_LIMIT})"
        for index, volume in enumerate(spec.get("volumes") or [])
        if (volume.get("emptyDir") or {}).get("sizeLimit")
    ]


def _is_missed(context: Mapping[str, Any]) -> bool:
    """Whether a program may notice that a security context has no effect, other than by being allowed more."""
    added = (context.get("capabilities") or {}).get("add")
    return bool(added) or bool(context.keys() - _RESTRICTIONS)


def _containers(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or []):
            yield f"spec.{field}[{index}]", container
