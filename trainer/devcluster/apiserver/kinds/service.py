"""Services: addresses are recorded, not routed; headless Services give pods their DNS names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.devcluster.apiserver.definitions import NameRule, ResourceDefinition
from trainer.devcluster.apiserver.kinds.editing import fill, section
from trainer.devcluster.apiserver.kinds.pod_spec import dicts
from trainer.devcluster.apiserver.strategy import StoreOnlyStrategy
from trainer.kube.field_errors import duplicate, invalid, not_supported, required
from trainer.kube.resource import SERVICES

if TYPE_CHECKING:
    from trainer.devcluster.apiserver.strategy import WriteContext
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

HEADLESS = "None"
"""`spec.clusterIP` of a Service that only gives names."""
_TYPES = ("ClusterIP", "ExternalName")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_DRY_RUN_ADDRESS = "10.96.0.0"
"""Stands for the address that a dry run does not allocate."""


class ServiceStrategy(StoreOnlyStrategy):
    """core/v1 Service."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in the specification."""
        spec = section(obj, "spec")
        fill(spec, type="ClusterIP", sessionAffinity="None")
        for port in dicts(spec.get("ports")):
            fill(port, protocol="TCP", targetPort=port.get("port"))
        if spec["type"] == "ClusterIP":
            fill(spec, internalTrafficPolicy="Cluster")

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Give it an address."""
        spec = obj["spec"]
        if spec["type"] == "ClusterIP":
            if not spec.get("clusterIP"):
                spec["clusterIP"] = _DRY_RUN_ADDRESS if context.dry_run else context.service_ip()
            spec["clusterIPs"] = [spec["clusterIP"]]
            fill(spec, ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
        obj["status"] = {"loadBalancer": {}}

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Keep the address."""
        if obj["spec"]["type"] == old["spec"]["type"]:
            for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if field in old["spec"]:
                    fill(obj["spec"], **{field: old["spec"][field]})

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check type and ports."""
        spec = obj["spec"]
        causes: list[FieldError] = []
        if spec["type"] not in _TYPES:
            # NodePort and LoadBalancer need a network in front of the pods, which a laptop does not have.
            causes.append(not_supported("spec.type", spec["type"], sorted(_TYPES)))
        if spec["type"] == "ExternalName" and not spec.get("externalName"):
            causes.append(required("spec.externalName"))
        if spec["type"] == "ClusterIP" and spec.get("clusterIP") != HEADLESS and not spec.get("ports"):
            causes.append(required("spec.ports"))
        return causes + _validate_ports(dicts(spec.get("ports")))

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the Service and that it keeps its address."""
        causes = self.validate(obj, context)
        address, before = obj["spec"].get("clusterIP"), old["spec"].get("clusterIP")
        if before and address != before and obj["spec"]["type"] == old["spec"]["type"]:
            causes.append(invalid("spec.clusterIP", address, "field is immutable"))
        return causes


def _validate_ports(ports: list[Object]) -> list[FieldError]:
    causes: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name, number = f"spec.ports[{index}]", port.get("name") or "", port.get("port")
        if not name and len(ports) > 1:
            causes.append(required(f"{path}.name"))
        elif name in names:
            causes.append(duplicate(f"{path}.name", name))
        names.add(name)
        if not isinstance(number, int) or not 0 < number < 65536:
            causes.append(invalid(f"{path}.port", number, "must be between 1 and 65535, inclusive"))
        if port.get("protocol") not in _PROTOCOLS:
            causes.append(not_supported(f"{path}.protocol", port.get("protocol"), sorted(_PROTOCOLS)))
    return causes


SERVICE = ResourceDefinition(
    SERVICES,
    ServiceStrategy(),
    singular="service",
    short_names=("svc",),
    categories=("all",),
    status_subresource=True,
    generation=False,
    name_rule=NameRule.SERVICE_LABEL,
)
