"""The built-in kinds, one module per kind that does more than store, and what stands in for JobSet's webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.devcluster.apiserver.kinds.configuration import CONFIG_MAP, SECRET
from trainer.devcluster.apiserver.kinds.custom_resource_definition import CUSTOM_RESOURCE_DEFINITION
from trainer.devcluster.apiserver.kinds.event import EVENT
from trainer.devcluster.apiserver.kinds.horizontal_pod_autoscaler import HORIZONTAL_POD_AUTOSCALER
from trainer.devcluster.apiserver.kinds.job import JOB
from trainer.devcluster.apiserver.kinds.jobset import JobSetStrategy
from trainer.devcluster.apiserver.kinds.namespace import NAMESPACE
from trainer.devcluster.apiserver.kinds.pod import POD
from trainer.devcluster.apiserver.kinds.service import SERVICE
from trainer.devcluster.apiserver.kinds.storage_claim import PERSISTENT_VOLUME_CLAIM
from trainer.devcluster.apiserver.kinds.store_only import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ENDPOINT_SLICE,
    ENDPOINTS,
    LEASE,
    LIMIT_RANGE,
    NODE,
    PRIORITY_CLASS,
    ROLE,
    ROLE_BINDING,
    RUNTIME_CLASS,
    SERVICE_ACCOUNT,
)
from trainer.devcluster.apiserver.kinds.webhook_configuration import (
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_WEBHOOK_CONFIGURATION,
)
from trainer.kube.resource import JOBSETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.devcluster.apiserver.definitions import ResourceDefinition
    from trainer.devcluster.apiserver.strategy import Strategy
    from trainer.devcluster.feature_gates import FeatureGates

BUILTIN_KINDS: tuple[ResourceDefinition, ...] = (
    NAMESPACE,
    NODE,
    POD,
    SERVICE,
    ENDPOINTS,
    CONFIG_MAP,
    SECRET,
    SERVICE_ACCOUNT,
    PERSISTENT_VOLUME_CLAIM,
    EVENT,
    LIMIT_RANGE,
    HORIZONTAL_POD_AUTOSCALER,
    JOB,
    LEASE,
    ENDPOINT_SLICE,
    CUSTOM_RESOURCE_DEFINITION,
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_WEBHOOK_CONFIGURATION,
    PRIORITY_CLASS,
    RUNTIME_CLASS,
    ROLE,
    ROLE_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
)
"""What the server always serves, in the order of discovery."""


def webhooks(gates: FeatureGates) -> Mapping[tuple[str, str], Strategy]:
    """Strategies that follow the schema of a custom resource, by group and kind; they stand in for webhooks."""
    return {(JOBSETS.group, JOBSETS.kind): JobSetStrategy(gates)}
