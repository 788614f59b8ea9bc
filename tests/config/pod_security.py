"""The restricted Pod Security Standard (Kubernetes documentation, "Pod Security Standards"), as a check of a pod."""

from __future__ import annotations

from collections.abc import Iterator

from trainer.kube.objects import Object

_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
_SECCOMP = {"RuntimeDefault", "Localhost"}
_SYSCTLS: set[str] = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
}


def violations(pod: Object) -> list[str]:
    """What a namespace that enforces the standard would refuse the pod for, each with its field."""
    return [
        *_of_pod(pod),
        *(text for container, path in _containers(pod) for text in _of_container(pod, container, path)),
    ]


def _containers(pod: Object) -> Iterator[tuple[Object, str]]:
    for key in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in enumerate(pod.get(key, ())):
            yield container, f"spec.{key}[{index}]"


def _of_pod(pod: Object) -> Iterator[str]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field):
            yield f"spec.{field}"
    for index, volume in enumerate(pod.get("volumes", ())):
        if not set(volume) - {"name"} <= _VOLUMES:
            yield f"spec.volumes[{index}]"
    security = pod.get("securityContext", {})
    if any(sysctl["name"] not in _SYSCTLS for sysctl in security.get("sysctls", ())):
        yield "spec.securityContext.sysctls"
    yield from _of_security(security, "spec.securityContext")


def _of_container(pod: Object, container: Object, path: str) -> Iterator[str]:
    own, shared = container.get("securityContext", {}), pod.get("securityContext", {})
    path = f"{path}.securityContext"
    if own.get("allowPrivilegeEscalation") is not False:
        yield f"{path}.allowPrivilegeEscalation"
    if own.get("privileged"):
        yield f"{path}.privileged"
    capabilities = own.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", ()) or set(capabilities.get("add", ())) - {"NET_BIND_SERVICE"}:
        yield f"{path}.capabilities"
    if own.get("procMount", "Default") != "Default":
        yield f"{path}.procMount"
    if own.get("runAsNonRoot", shared.get("runAsNonRoot")) is not True:
        yield f"{path}.runAsNonRoot"
    if own.get("seccompProfile", shared.get("seccompProfile", {})).get("type") not in _SECCOMP:
        yield f"{path}.seccompProfile"
    if any("hostPort" in port for port in container.get("ports", ())):
        yield f"{path.removesuffix('.securityContext')}.ports"
    yield from _of_security(own, path)


def _of_security(security: Object, path: str) -> Iterator[str]:
    """What pods and containers have in common."""
    if security.get("runAsUser") == 0:
        yield f"{path}.runAsUser"
    if "windowsOptions" in security and security["windowsOptions"].get("hostProcess"):
        yield f"{path}.windowsOptions"
    if security.get("seLinuxOptions", {}).keys() & {"user", "role"}:
        yield f"{path}.seLinuxOptions"
    if security.get("appArmorProfile", {}).get("type") == "Unconfined":
        yield f"{path}.appArmorProfile"
