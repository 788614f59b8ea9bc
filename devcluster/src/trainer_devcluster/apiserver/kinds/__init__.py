"""The built-in kinds, one module per kind that does more than store, and what stands in for JobSet's webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.workloads import JOBSETS
from trainer_devcluster.apiserver.kinds.authentication import SELF_SUBJECT_REVIEW, TOKEN_REVIEW
from trainer_devcluster.apiserver.kinds.authorization import (
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    SUBJECT_ACCESS_REVIEW,
)
from trainer_devcluster.apiserver.kinds.configuration import CONFIG_MAP, SECRET
from trainer_devcluster.apiserver.kinds.custom_resource_definition import CUSTOM_RESOURCE_DEFINITION
from trainer_devcluster.apiserver.kinds.event import EVENT
from trainer_devcluster.apiserver.kinds.horizontal_pod_autoscaler import HORIZONTAL_POD_AUTOSCALER
from trainer_devcluster.apiserver.kinds.jobs.job import JOB
from trainer_devcluster.apiserver.kinds.jobsets.jobset import JobSetStrategy
from trainer_devcluster.apiserver.kinds.limit_range import LIMIT_RANGE
from trainer_devcluster.apiserver.kinds.namespace import NAMESPACE
from trainer_devcluster.apiserver.kinds.pods.pod import POD
from trainer_devcluster.apiserver.kinds.priority_class import PRIORITY_CLASS
from trainer_devcluster.apiserver.kinds.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING
from trainer_devcluster.apiserver.kinds.resource_quota import RESOURCE_QUOTA
from trainer_devcluster.apiserver.kinds.service import SERVICE
from trainer_devcluster.apiserver.kinds.storage_claim import PERSISTENT_VOLUME_CLAIM
from trainer_devcluster.apiserver.kinds.store_only import (
    DEPLOYMENT,
    ENDPOINT_SLICE,
    ENDPOINTS,
    LEASE,
    NETWORK_POLICY,
    NODE,
    POD_DISRUPTION_BUDGET,
    RUNTIME_CLASS,
    SERVICE_ACCOUNT,
)
from trainer_devcluster.apiserver.kinds.webhook_configuration import (
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_WEBHOOK_CONFIGURATION,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
    from trainer_devcluster.apiserver.definitions.strategy import Strategy
    from trainer_devcluster.feature_gates import FeatureGates

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
    RESOURCE_QUOTA,
    DEPLOYMENT,
    HORIZONTAL_POD_AUTOSCALER,
    JOB,
    LEASE,
    ENDPOINT_SLICE,
    CUSTOM_RESOURCE_DEFINITION,
    TOKEN_REVIEW,
    SELF_SUBJECT_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    SUBJECT_ACCESS_REVIEW,
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_WEBHOOK_CONFIGURATION,
    NETWORK_POLICY,
    POD_DISRUPTION_BUDGET,
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
