"""Endpoints: where a Service of the cluster can be reached from the server.

Nothing routes the addresses of Services on this machine, so the server goes to what stands behind them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from trainer.kube.objects import ObjectKey, metadata_of, namespace_of
from trainer.kube.resource import SERVICES, Resource
from trainer_devcluster.apiserver.storage.storage import Partition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.storage.storage import Storage
    from trainer_devcluster.apiserver.webhooks.client import ServiceReference

ENDPOINTS: Final = Resource("", "v1", "endpoints", "Endpoints")
ENDPOINT_SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
_SERVICE_LABEL: Final = "kubernetes.io/service-name"


class Address(NamedTuple):
    """A host and a TCP port."""

    host: str
    port: int


class UnresolvedError(Exception):
    """A Service cannot be reached; the text is that of the real server."""


def resolve(storage: Storage, reference: ServiceReference) -> Address:
    """An address behind a Service: the first that is ready, from its EndpointSlices or its Endpoints.

    Raises:
        UnresolvedError: there is no such Service or port, or nothing stands behind it.
    """
    key = ObjectKey(reference.namespace, reference.name)
    service = storage.get(Partition.of(SERVICES), key)
    if service is None:
        raise UnresolvedError(f'service "{reference.name}" not found')
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return Address(spec["externalName"], reference.port)
    ports = [port for port in spec.get("ports") or () if port["port"] == reference.port]
    if not ports:
        raise UnresolvedError(f'no service port {reference.port} found for service "{reference.name}"')
    name = ports[0].get("name") or ""
    slices = [
        entry
        for entry in storage.snapshot(Partition.of(ENDPOINT_SLICES))
        if namespace_of(entry) == reference.namespace
        and (metadata_of(entry).get("labels") or {}).get(_SERVICE_LABEL) == reference.name
    ]
    found = [address for entry in slices for address in _in_slice(entry, name)]
    found += _in_endpoints(storage.get(Partition.of(ENDPOINTS), key), name)
    if not found:
        raise UnresolvedError(f'no endpoints available for service "{reference.name}"')
    return found[0]


def _in_slice(entry: Object, port_name: str) -> Iterator[Address]:
    ports = [port["port"] for port in entry.get("ports") or () if (port.get("name") or "") == port_name]
    for endpoint in entry.get("endpoints") or ():
        # An unknown state counts as ready, as the API says.
        if (endpoint.get("conditions") or {}).get("ready") is not False:
            yield from (Address(host, port) for port in ports for host in endpoint.get("addresses") or ())


def _in_endpoints(entry: Object | None, port_name: str) -> Iterator[Address]:
    for subset in (entry or {}).get("subsets") or ():
        ports = [port["port"] for port in subset.get("ports") or () if (port.get("name") or "") == port_name]
        yield from (Address(each["ip"], port) for port in ports for each in subset.get("addresses") or ())
