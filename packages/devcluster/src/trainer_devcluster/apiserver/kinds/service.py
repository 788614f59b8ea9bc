"""Services: addresses are recorded, not routed; headless Services give pods their DNS names."""

from __future__ import annotations

import ipaddress
from typing import Any

from trainer.kube.field_errors import FieldError, duplicate, invalid, not_supported, required, show
from trainer.kube.names import label_value_problems, qualified_name_problems
from trainer.kube.objects import Object, uid_of
from trainer.kube.resource import SERVICES
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import dicts, fill, section
from trainer_devcluster.apiserver.objects.names import NameRule, label_problems
from trainer_devcluster.apiserver.writes.drafting import NETWORK

HEADLESS = "None"
"""`spec.clusterIP` of a Service that only gives names."""
_TYPES = ("ClusterIP", "ExternalName")
_AFFINITIES = ("ClientIP", "None")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_DRY_RUN_ADDRESS = "10.96.0.0"
"""Stands for the address that a dry run does not allocate."""


class ServiceStrategy(Strategy):
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

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        """Check type, ports, selector and address."""
        spec = obj["spec"]
        causes: list[FieldError] = []
        if spec["type"] not in _TYPES:
            # NodePort and LoadBalancer need a network in front of the pods, which a laptop does not have.
            causes.append(not_supported("spec.type", spec["type"], sorted(_TYPES)))
        if spec["type"] == "ExternalName" and not spec.get("externalName"):
            causes.append(required("spec.externalName"))
        if spec["type"] == "ClusterIP" and spec.get("clusterIP") != HEADLESS and not spec.get("ports"):
            causes.append(required("spec.ports"))
        causes += _validate_ports(dicts(spec.get("ports")))
        for key, value in (spec.get("selector") or {}).items():
            causes += [invalid("spec.selector", key, problem) for problem in qualified_name_problems(key)]
            causes += [invalid("spec.selector", value, problem) for problem in label_value_problems(value)]
        if spec.get("sessionAffinity") not in _AFFINITIES:
            causes.append(not_supported("spec.sessionAffinity", spec.get("sessionAffinity"), _AFFINITIES))
        return causes or _validate_address(obj, context)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the Service and that it keeps its address."""
        causes = self.validate(obj, context)
        address, before = obj["spec"].get("clusterIP"), old["spec"].get("clusterIP")
        if before and address != before and obj["spec"]["type"] == old["spec"]["type"]:
            causes.append(invalid("spec.clusterIPs[0]", [address], "may not change once set"))
        return causes


def _validate_ports(ports: list[Object]) -> list[FieldError]:
    causes: list[FieldError] = []
    names: set[str] = set()
    numbers: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        path, name, number = f"spec.ports[{index}]", port.get("name") or "", port.get("port")
        if not name and len(ports) > 1:
            causes.append(required(f"{path}.name"))
        elif name and name in names:
            causes.append(duplicate(f"{path}.name", name))
        elif name:
            causes += [invalid(f"{path}.name", name, problem) for problem in label_problems(name)]
        names.add(name)
        if (number, port.get("protocol")) in numbers:
            causes.append(_duplicate_port(path, port))
        numbers.add((number, port.get("protocol")))
        if not isinstance(number, int) or not 0 < number < 65536:
            causes.append(invalid(f"{path}.port", number, "must be between 1 and 65535, inclusive"))
        if port.get("protocol") not in _PROTOCOLS:
            causes.append(not_supported(f"{path}.protocol", port.get("protocol"), sorted(_PROTOCOLS)))
    return causes


def _duplicate_port(path: str, port: Object) -> FieldError:
    """The real server prints its internal form of what is twice there."""
    shown = (
        f'{{"Name":"","Protocol":{show(port.get("protocol"))},"AppProtocol":null,"Port":{port.get("port")},'
        '"TargetPort":0,"NodePort":0}'
    )
    return FieldError(path, f"Duplicate value: {shown}", "FieldValueDuplicate")


def _validate_address(obj: Object, context: WriteContext) -> list[FieldError]:
    """What is wrong with an address that the client has chosen."""
    address = obj["spec"].get("clusterIP")
    if not address or address == HEADLESS or obj["spec"]["type"] != "ClusterIP":
        return []
    try:
        in_network = ipaddress.ip_address(address) in NETWORK
    except ValueError:
        return [invalid("spec.clusterIPs[0]", address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    if not in_network:
        detail = f"provided IP is not in the valid range. The range of valid IPs is {NETWORK}"
        return [invalid("spec.clusterIPs", [address], f"failed to allocate IP {address}: {detail}")]
    for other in context.listed(SERVICES):
        if (other.get("spec") or {}).get("clusterIP") == address and uid_of(other) != uid_of(obj):
            detail = f"failed to allocate IP {address}: provided IP is already allocated"
            return [invalid("spec.clusterIPs", [address], detail)]
    return []


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
