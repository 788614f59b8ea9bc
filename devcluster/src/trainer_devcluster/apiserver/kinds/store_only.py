"""Kinds that are stored as they come: other components give them meaning, or nothing on a laptop does."""

from __future__ import annotations

from trainer.kube.resource import NODES, RUNTIME_CLASSES, SERVICE_ACCOUNTS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.webhooks.endpoints import ENDPOINT_SLICES
from trainer_devcluster.apiserver.webhooks.endpoints import ENDPOINTS as ENDPOINTS_RESOURCE

_STORE = StoreOnlyStrategy()

NODE = ResourceDefinition(
    NODES, _STORE, singular="node", short_names=("no",), status_subresource=True, generation=False
)
SERVICE_ACCOUNT = ResourceDefinition(
    SERVICE_ACCOUNTS, _STORE, singular="serviceaccount", short_names=("sa",), subresources=("token",), generation=False
)
ENDPOINTS = ResourceDefinition(ENDPOINTS_RESOURCE, _STORE, singular="endpoints", short_names=("ep",), generation=False)
ENDPOINT_SLICE = ResourceDefinition(ENDPOINT_SLICES, _STORE, singular="endpointslice")
RUNTIME_CLASS = ResourceDefinition(
    RUNTIME_CLASSES,
    _STORE,
    singular="runtimeclass",
    generation=False,
)
