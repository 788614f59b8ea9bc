"""Endpoints: what stands behind a Service."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import SERVICES, Resource
from trainer_devcluster.apiserver.storage.storage import Partition, Storage
from trainer_devcluster.apiserver.webhooks.client import (
    ENDPOINT_SLICES,
    ENDPOINTS,
    Address,
    ServiceReference,
    UnresolvedError,
    resolve,
)

SERVICE = {"spec": {"type": "ClusterIP", "ports": [{"name": "web", "port": 443}, {"name": "other", "port": 80}]}}
SLICE: Object = {"ports": [{"name": "web", "port": 9443}], "endpoints": [{"addresses": ["127.0.0.5"]}]}
UNREADY = {"addresses": ["127.0.0.4"], "conditions": {"ready": False}}
SUBSET = {"ports": [{"name": "web", "port": 9444}], "addresses": [{"ip": "127.0.0.6"}]}


def put(storage: Storage, resource: Resource, obj: Object, *, namespace: str = "ns", **labels: str) -> None:
    metadata: Any = {"name": "hook", "namespace": namespace, "labels": labels}
    storage.create(Partition.of(resource), ObjectKey(namespace, "hook"), {**obj, "metadata": metadata})


@pytest.mark.parametrize(
    ("service", "slice_", "endpoints", "port", "expected"),
    [
        pytest.param(SERVICE, None, {"subsets": [SUBSET]}, 443, Address("127.0.0.6", 9444), id="endpoints"),
        pytest.param(
            {"spec": {"type": "ExternalName", "externalName": "localhost"}},
            None,
            None,
            8443,
            Address("localhost", 8443),
            id="external name",
        ),
        pytest.param(SERVICE, SLICE, None, 444, 'no service port 444 found for service "hook"', id="no such port"),
        pytest.param(SERVICE, None, None, 443, 'no endpoints available for service "hook"', id="nothing behind it"),
    ],
)
def test_resolve(
    service: Object | None, slice_: Object | None, endpoints: Object | None, port: int, expected: Address | str
) -> None:
    """The first address that is ready, or the real server's words for why there is none."""
    storage = Storage()
    put(storage, SERVICES, SERVICE, namespace="elsewhere")
    put(storage, ENDPOINT_SLICES, SLICE, namespace="elsewhere", **{"kubernetes.io/service-name": "hook"})
    if service is not None:
        put(storage, SERVICES, service)
    if slice_ is not None:
        put(storage, ENDPOINT_SLICES, slice_, **{"kubernetes.io/service-name": "hook"})
    if endpoints is not None:
        put(storage, ENDPOINTS, endpoints)
    reference = ServiceReference("ns", "hook", port)
    if isinstance(expected, Address):
        assert resolve(storage, reference) == expected
        return
    with pytest.raises(UnresolvedError) as caught:
        resolve(storage, reference)
    assert str(caught.value) == expected
