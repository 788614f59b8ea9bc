"""Ingresses and NetworkPolicies (networking.k8s.io/v1): stored; the dev cluster routes and filters nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer.kube.field_errors import forbidden, invalid, not_supported, required
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.kinds.editing import fill, section
from trainer_devcluster.apiserver.kinds.pods.pod_spec import dicts
from trainer_devcluster.apiserver.kinds.selector_validation import validate_label_selector
from trainer_devcluster.apiserver.objects.names import service_label_problems, subdomain_problems

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext

_GROUP: Final = "networking.k8s.io"
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_POLICY_TYPES: Final = ("Egress", "Ingress")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


class IngressStrategy(StoreOnlyStrategy):
    """networking.k8s.io/v1 Ingress."""

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Start it without an address, which it will not get."""
        obj.setdefault("spec", {})
        obj["status"] = {"loadBalancer": {}}
        context.warn("networking.k8s.io/v1 Ingress is only stored: the dev cluster runs no ingress controller")

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002 - the protocol's signature
        """Check rules and backends."""
        spec = obj.get("spec") or {}
        if not spec.get("rules") and spec.get("defaultBackend") is None:
            return [invalid("spec", spec, "either `defaultBackend` or `rules` must be specified")]
        causes: list[FieldError] = []
        if spec.get("defaultBackend") is not None:
            causes += _validate_backend(spec["defaultBackend"], "spec.defaultBackend")
        for index, rule in enumerate(dicts(spec.get("rules"))):
            causes += _validate_ingress_rule(rule, f"spec.rules[{index}]")
        if name := spec.get("ingressClassName"):
            causes += [invalid("spec.ingressClassName", name, problem) for problem in subdomain_problems(name)]
        return causes


class NetworkPolicyStrategy(StoreOnlyStrategy):
    """networking.k8s.io/v1 NetworkPolicy."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Fill in directions and protocols."""
        spec = section(obj, "spec")
        section(spec, "podSelector")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
        for rule in (*dicts(spec.get("ingress")), *dicts(spec.get("egress"))):
            for port in dicts(rule.get("ports")):
                fill(port, protocol="TCP")

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Tell the client what will not happen."""
        context.warn("networking.k8s.io/v1 NetworkPolicy is only stored: the dev cluster does not filter traffic")

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check selectors, ports and directions."""
        spec = obj["spec"]
        causes = validate_label_selector(spec["podSelector"], "spec.podSelector")
        for direction, peers in (("ingress", "from"), ("egress", "to")):
            for index, rule in enumerate(dicts(spec.get(direction))):
                causes += _validate_policy_rule(rule, f"spec.{direction}[{index}]", peers)
        causes += [
            not_supported(f"spec.policyTypes[{index}]", entry, _POLICY_TYPES)
            for index, entry in enumerate(spec["policyTypes"])
            if entry not in _POLICY_TYPES
        ]
        return causes


class IngressClassStrategy(StoreOnlyStrategy):
    """networking.k8s.io/v1 IngressClass."""

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check that it names a controller."""
        return [] if (obj.get("spec") or {}).get("controller") else [required("spec.controller")]


def _validate_ingress_rule(rule: Object, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    if host := rule.get("host"):
        plain = host.removeprefix("*.")
        causes += [invalid(f"{path}.host", host, problem) for problem in subdomain_problems(plain)]
    http = rule.get("http")
    if http is not None and not http.get("paths"):
        causes.append(required(f"{path}.http.paths"))
    for index, entry in enumerate(dicts((http or {}).get("paths"))):
        causes += _validate_ingress_path(entry, f"{path}.http.paths[{index}]")
    return causes


def _validate_ingress_path(entry: Object, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    text, kind = entry.get("path") or "", entry.get("pathType")
    if kind is None:
        causes.append(required(f"{path}.pathType", "pathType must be specified"))
    elif kind not in _PATH_TYPES:
        causes.append(not_supported(f"{path}.pathType", kind, _PATH_TYPES))
    elif (kind != "ImplementationSpecific" or text) and not text.startswith("/"):
        causes.append(invalid(f"{path}.path", text, "must be an absolute path"))
    return causes + _validate_backend(entry.get("backend") or {}, f"{path}.backend")


def _validate_backend(backend: Object, path: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return []
    if service is None:
        return [required(path, "resource or service backend is required")]
    causes: list[FieldError] = []
    name, port = service.get("name") or "", service.get("port") or {}
    if not name:
        causes.append(required(f"{path}.service.name"))
    else:
        causes += [invalid(f"{path}.service.name", name, problem) for problem in service_label_problems(name)]
    if port.get("name") and port.get("number"):
        causes.append(invalid(path, "", "cannot set both port name & port number"))
    elif not port.get("name") and not port.get("number"):
        causes.append(required(path, "port name or number is required"))
    elif port.get("number"):
        causes += _validate_port_number(port["number"], f"{path}.service.port.number")
    return causes


def _validate_policy_rule(rule: Object, path: str, peers: str) -> list[FieldError]:
    causes: list[FieldError] = []
    for index, port in enumerate(dicts(rule.get("ports"))):
        if port.get("protocol") not in _PROTOCOLS:
            causes.append(not_supported(f"{path}.ports[{index}].protocol", port.get("protocol"), _PROTOCOLS))
        if isinstance(port.get("port"), int):
            causes += _validate_port_number(port["port"], f"{path}.ports[{index}].port")
    for index, peer in enumerate(dicts(rule.get(peers))):
        place = f"{path}.{peers}[{index}]"
        selectors = [name for name in ("podSelector", "namespaceSelector") if peer.get(name) is not None]
        for name in selectors:
            causes += validate_label_selector(peer[name], f"{place}.{name}")
        if not selectors and peer.get("ipBlock") is None:
            causes.append(required(place, "must specify a peer"))
        elif selectors and peer.get("ipBlock") is not None:
            causes.append(forbidden(place, "may not specify both ipBlock and another peer"))
    return causes


def _validate_port_number(value: Any, path: str) -> list[FieldError]:
    return [] if 0 < value < 65536 else [invalid(path, value, "must be between 1 and 65535, inclusive")]


INGRESS = ResourceDefinition(
    Resource(_GROUP, "v1", "ingresses", "Ingress"),
    IngressStrategy(),
    singular="ingress",
    short_names=("ing",),
    status_subresource=True,
)
NETWORK_POLICY = ResourceDefinition(
    Resource(_GROUP, "v1", "networkpolicies", "NetworkPolicy"),
    NetworkPolicyStrategy(),
    singular="networkpolicy",
    short_names=("netpol",),
)
INGRESS_CLASS = ResourceDefinition(
    Resource(_GROUP, "v1", "ingressclasses", "IngressClass", namespaced=False),
    IngressClassStrategy(),
    singular="ingressclass",
)
