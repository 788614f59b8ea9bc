"""Environment variables that tell containers of Services (Kubernetes documentation, "Accessing the Service")."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer.kube.objects import name_of, namespace_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.objects import Object
    from trainer_devcluster.kubelet.network.pod_network import ApiAddress

API_SERVICE, API_NAMESPACE = "kubernetes", "default"
"""The Service of the API server."""

ListServices = Callable[[str], Iterable["Mapping[str, Any]"]]


@dataclass(frozen=True, slots=True)
class ServiceEnvironment:
    """The variables about Services in the containers of a node."""

    api_server: ApiAddress | None
    """Where pods reach the API server, whatever the address of its Service is; None if they do not."""
    list_services: ListServices
    """The Services of a namespace."""

    def variables(self, pod: Object) -> dict[str, str]:
        """The variables of a pod: those of the API server always, those of its namespace unless it declines."""
        variables: dict[str, str] = {}
        if pod["spec"].get("enableServiceLinks") is not False:
            for service in self.list_services(namespace_of(pod)):
                variables |= service_variables(service)
        if self.api_server is not None:
            variables |= service_variables(_api_service(self.api_server))
        return variables


def service_variables(service: Mapping[str, Any]) -> dict[str, str]:
    """The variables about one Service; none for a Service without an address of its own."""
    spec = service["spec"]
    host, ports = spec.get("clusterIP"), spec.get("ports") or []
    if not host or host == "None" or not ports:
        return {}
    prefix = name_of(service).upper().replace("-", "_")
    variables = {f"{prefix}_SERVICE_HOST": host, f"{prefix}_SERVICE_PORT": str(ports[0]["port"])}
    for port in ports:
        if port.get("name"):
            variables[f"{prefix}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}"] = str(port["port"])
    for index, port in enumerate(ports):
        protocol = port.get("protocol") or "TCP"
        url = f"{protocol.lower()}://{host}:{port['port']}"
        if index == 0:
            variables[f"{prefix}_PORT"] = url
        own = f"{prefix}_PORT_{port['port']}_{protocol}"
        variables |= {
            own: url,
            f"{own}_PROTO": protocol.lower(),
            f"{own}_PORT": str(port["port"]),
            f"{own}_ADDR": host,
        }
    return variables


def _api_service(address: ApiAddress) -> Object:
    ports = [{"name": "https", "port": address.port, "protocol": "TCP"}]
    return {"metadata": {"name": API_SERVICE}, "spec": {"clusterIP": address.host, "ports": ports}}
