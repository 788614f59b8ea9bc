"""What of a pod's specification the dev cluster refuses, and what it knowingly leaves undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.devcluster.kubelet.working_directory import unreachable_mount

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer.kube.objects import Object

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
    "livenessProbe": "the only probes are readiness probes; a container lives until it ends",
    "startupProbe": "the only probes are readiness probes; a container has started when it runs",
    "lifecycle": "there are no lifecycle hooks",
    "volumeDevices": "there are no block devices",
    "restartPolicyRules": "a container restarts by the pod's restartPolicy",
    "restartPolicy": "a container restarts by the pod's restartPolicy, and there are no sidecar containers",
}


def unsupported_fields(pod: Object, *, isolated: bool) -> list[str]:
    """Fields for which the dev cluster refuses the pod, each with what to know about it.

    Args:
        pod: the pod.
        isolated: whether containers have mount namespaces.
    """
    spec = pod["spec"]
    problems = [f"spec.{field} ({why})" for field, why in _POD_FIELDS.items() if spec.get(field)]
    for path, container in _containers(spec):
        problems += [f"{path}.{field} ({why})" for field, why in _CONTAINER_FIELDS.items() if container.get(field)]
        if (container.get("readinessProbe") or {}).get("grpc"):
            problems.append(f"{path}.readinessProbe.grpc (probes are tcpSocket, httpGet or exec)")
        unreachable = None if isolated else unreachable_mount(container)
        if unreachable is not None:
            problems.append(f"{path}.volumeMounts ({unreachable})")
    return problems


def ignored_fields(pod: Object) -> list[str]:
    """Fields that have no effect here but do not keep the pod from doing its work."""
    spec = pod["spec"]
    ignored = ["spec.securityContext"] if spec.get("securityContext") else []
    return ignored + [
        f"{path}.securityContext" for path, container in _containers(spec) if container.get("securityContext")
    ]


def _containers(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or []):
            yield f"spec.{field}[{index}]", container
