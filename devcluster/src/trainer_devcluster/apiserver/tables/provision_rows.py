"""Rows of what is provided for workloads (storage, networks, quotas), after the server-side printers of Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer.kube.objects import annotations_of, is_being_deleted, metadata_of, name_of
from trainer_devcluster.apiserver.objects.durations import age
from trainer_devcluster.apiserver.tables.columns import AGE, NAME, Cells, PrintedColumn, column, stated
from trainer_devcluster.apiserver.tables.pod_rows import NONE, label_selector

if TYPE_CHECKING:
    from datetime import datetime

    from trainer.kube.objects import Object

ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP",
}  # fmt: skip
"""How columns abbreviate access modes."""
_UNSET: Final = "<unset>"
_SHOWN: Final = 3
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
_NETWORKING: Final = "networking.k8s.io/v1"
_STORAGE: Final = "storage.k8s.io/v1"
_DISCOVERY: Final = "discovery.k8s.io/v1"


def _age(obj: Object, now: datetime) -> str:
    return age(metadata_of(obj).get("creationTimestamp"), now)


def _spec(obj: Object) -> Object:
    return obj.get("spec") or {}


def _first(texts: list[str], nothing: str) -> str:
    """The first few of them, and how many more there are."""
    shown = ",".join(texts[:_SHOWN])
    return (f"{shown} + {len(texts) - _SHOWN} more..." if len(texts) > _SHOWN else shown) or nothing


def _storage_class(obj: Object, now: datetime) -> list[Any]:
    mark = " (default)" if annotations_of(obj).get(_DEFAULT_CLASS) == "true" else ""
    return [
        f"{name_of(obj)}{mark}",
        obj.get("provisioner") or "",
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or _UNSET,
        bool(obj.get("allowVolumeExpansion")),
        _age(obj, now),
    ]


def _volume(obj: Object, now: datetime) -> list[Any]:
    spec, status = _spec(obj), obj.get("status") or {}
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        (spec.get("capacity") or {}).get("storage", ""),
        ",".join(ACCESS_MODES.get(mode, mode) for mode in spec.get("accessModes") or ()),
        spec.get("persistentVolumeReclaimPolicy") or "",
        "Terminating" if is_being_deleted(obj) else status.get("phase") or "",
        f"{claim.get('namespace') or ''}/{claim.get('name') or ''}" if claim else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or _UNSET,
        status.get("reason") or "",
        _age(obj, now),
        spec.get("volumeMode") or _UNSET,
    ]


def _ingress(obj: Object, now: datetime) -> list[Any]:
    spec = _spec(obj)
    addresses = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    return [
        name_of(obj),
        spec.get("ingressClassName") or annotations_of(obj).get(_INGRESS_CLASS) or NONE,
        _first([rule["host"] for rule in spec.get("rules") or () if rule.get("host")], "*"),
        ",".join(filter(None, (entry.get("ip") or entry.get("hostname") for entry in addresses))),
        "80, 443" if spec.get("tls") else "80",
        _age(obj, now),
    ]


def _ingress_class(obj: Object, now: datetime) -> list[Any]:
    parameters = _spec(obj).get("parameters")
    shown = NONE
    if parameters:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
        shown = f"{parameters.get('kind')}{group}/{parameters.get('name')}"
    return [name_of(obj), _spec(obj).get("controller") or "", shown, _age(obj, now)]


def _network_policy(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), label_selector(_spec(obj).get("podSelector")), _age(obj, now)]


def _quota(obj: Object, now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    texts = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    requests = ", ".join(text for name, text in texts.items() if not name.startswith("limits"))
    limits = ", ".join(text for name, text in texts.items() if name.startswith("limits"))
    return [name_of(obj), requests, limits, _age(obj, now)]


def _endpoint_slice(obj: Object, now: datetime) -> list[Any]:
    ports = ["*" if port.get("port") is None else str(port["port"]) for port in obj.get("ports") or ()]
    addresses = [address for entry in obj.get("endpoints") or () for address in entry.get("addresses") or ()]
    shown = [_first(ports, _UNSET), _first(addresses, _UNSET)]
    return [name_of(obj), obj.get("addressType") or "", *shown, _age(obj, now)]


def _of_volume(name: str, field: str, *, part: str = "spec", priority: int = 0) -> PrintedColumn:
    return column(name, "v1", "PersistentVolume", part, field, priority=priority)


_VOLUME: Final = (
    NAME,
    _of_volume("Capacity", "capacity"),
    _of_volume("Access Modes", "accessModes"),
    _of_volume("Reclaim Policy", "persistentVolumeReclaimPolicy"),
    _of_volume("Status", "phase", part="status"),
    _of_volume("Claim", "claimRef"),
    _of_volume("StorageClass", "storageClassName"),
    _of_volume("VolumeAttributesClass", "volumeAttributesClassName"),
    _of_volume("Reason", "reason", part="status"),
    AGE,
    _of_volume("VolumeMode", "volumeMode", priority=1),
)
_STORAGE_CLASS: Final = (
    NAME,
    column("Provisioner", _STORAGE, "StorageClass", "provisioner"),
    column("ReclaimPolicy", _STORAGE, "StorageClass", "reclaimPolicy"),
    column("VolumeBindingMode", _STORAGE, "StorageClass", "volumeBindingMode"),
    column("AllowVolumeExpansion", _STORAGE, "StorageClass", "allowVolumeExpansion"),
    AGE,
)
_INGRESS: Final = (
    NAME,
    stated("Class", "The name of the IngressClass resource that should be used for additional configuration"),
    stated("Hosts", "Hosts that incoming requests are matched against before the ingress rule"),
    stated("Address", "Address is a list containing ingress points for the load-balancer"),
    stated("Ports", "Ports of TLS configurations that open"),
    AGE,
)
_INGRESS_CLASS_COLUMNS: Final = (
    NAME,
    stated("Controller", "Controller that is responsible for handling this class"),
    stated("Parameters", "A reference to a resource with additional parameters"),
    AGE,
)
_QUOTA: Final = (
    NAME,
    stated("Request", "Request represents a minimum amount of cpu/memory that a container may consume."),
    stated(
        "Limit",
        "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the "
        "node.",
    ),
    AGE,
)
_ENDPOINT_SLICE: Final = (
    NAME,
    column("AddressType", _DISCOVERY, "EndpointSlice", "addressType"),
    column("Ports", _DISCOVERY, "EndpointSlice", "ports"),
    column("Endpoints", _DISCOVERY, "EndpointSlice", "endpoints"),
    AGE,
)

PROVISIONS: Final[dict[str, tuple[tuple[PrintedColumn, ...], Cells]]] = {
    "v1/PersistentVolume": (_VOLUME, _volume),
    "v1/ResourceQuota": (_QUOTA, _quota),
    f"{_STORAGE}/StorageClass": (_STORAGE_CLASS, _storage_class),
    f"{_NETWORKING}/Ingress": (_INGRESS, _ingress),
    f"{_NETWORKING}/IngressClass": (_INGRESS_CLASS_COLUMNS, _ingress_class),
    f"{_NETWORKING}/NetworkPolicy": (
        (NAME, column("Pod-Selector", _NETWORKING, "NetworkPolicy", "spec", "podSelector"), AGE),
        _network_policy,
    ),
    f"{_DISCOVERY}/EndpointSlice": (_ENDPOINT_SLICE, _endpoint_slice),
}
"""Columns and cells by apiVersion and kind."""
