"""Kinds that are stored as they come: other components give them meaning, or nothing on a laptop does."""

from __future__ import annotations

from trainer.kube.objects import Object
from trainer.kube.resource import NODES, RUNTIME_CLASSES, SERVICE_ACCOUNTS, Resource
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.webhooks.client import ENDPOINT_SLICES
from trainer_devcluster.apiserver.webhooks.client import ENDPOINTS as ENDPOINTS_RESOURCE


class UnusedStrategy(Strategy):
    """Stores what the manager's manifests contain and no component of the dev cluster reads; a warning says so."""

    def __init__(self, warning: str) -> None:
        self._warning = warning

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Warn the client."""
        context.warn(self._warning)


_STORE = Strategy()

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
DEPLOYMENT = ResourceDefinition(
    Resource("apps", "v1", "deployments", "Deployment"),
    UnusedStrategy("apps/v1 Deployment is only stored: the dev cluster makes no pods for it"),
    singular="deployment",
    short_names=("deploy",),
    categories=("all",),
    status_subresource=True,
)
NETWORK_POLICY = ResourceDefinition(
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
    UnusedStrategy("networking.k8s.io/v1 NetworkPolicy is only stored: the dev cluster does not filter traffic"),
    singular="networkpolicy",
    short_names=("netpol",),
)
POD_DISRUPTION_BUDGET = ResourceDefinition(
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    UnusedStrategy("policy/v1 PodDisruptionBudget is only stored: the dev cluster evicts pods regardless"),
    singular="poddisruptionbudget",
    short_names=("pdb",),
    status_subresource=True,
)
