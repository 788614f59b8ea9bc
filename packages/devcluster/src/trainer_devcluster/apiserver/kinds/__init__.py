"""The built-in kinds, one module per kind that does more than store, and what stands in for JobSet's webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trainer.workloads import JOBSETS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy
from trainer_devcluster.apiserver.kinds import (
    configuration,
    custom_resource_definition,
    event,
    horizontal_pod_autoscaler,
    lease,
    limit_range,
    namespace,
    priority_class,
    rbac,
    resource_quota,
    reviews,
    service,
    storage_claim,
    store_only,
    webhook_configuration,
    workload,
)
from trainer_devcluster.apiserver.kinds.jobs.job import JOB
from trainer_devcluster.apiserver.kinds.jobsets.jobset import JobSetStrategy
from trainer_devcluster.apiserver.kinds.pods.pod import POD
from trainer_devcluster.feature_gates import FeatureGates

BUILTIN_KINDS: tuple[ResourceDefinition, ...] = (
    namespace.NAMESPACE,
    store_only.NODE,
    POD,
    service.SERVICE,
    store_only.ENDPOINTS,
    *(configuration.CONFIG_MAP, configuration.SECRET),
    store_only.SERVICE_ACCOUNT,
    storage_claim.PERSISTENT_VOLUME_CLAIM,
    event.EVENT,
    limit_range.LIMIT_RANGE,
    resource_quota.RESOURCE_QUOTA,
    store_only.DEPLOYMENT,
    horizontal_pod_autoscaler.HORIZONTAL_POD_AUTOSCALER,
    JOB,
    *(lease.LEASE, store_only.ENDPOINT_SLICE),
    custom_resource_definition.CUSTOM_RESOURCE_DEFINITION,
    *reviews.REVIEWS,
    webhook_configuration.MUTATING_WEBHOOK_CONFIGURATION,
    webhook_configuration.VALIDATING_WEBHOOK_CONFIGURATION,
    store_only.NETWORK_POLICY,
    store_only.POD_DISRUPTION_BUDGET,
    priority_class.PRIORITY_CLASS,
    store_only.RUNTIME_CLASS,
    *(rbac.ROLE, rbac.ROLE_BINDING, rbac.CLUSTER_ROLE, rbac.CLUSTER_ROLE_BINDING),
)
"""Those that every server serves, in the order of discovery."""


def built_in_kinds(gates: FeatureGates) -> tuple[ResourceDefinition, ...]:
    """The built-in kinds that a server with these gates serves."""
    return BUILTIN_KINDS + ((workload.WORKLOAD, workload.POD_GROUP) if gates.generic_workload else ())


WEBHOOKS: Final[Mapping[tuple[str, str], Strategy]] = {(JOBSETS.group, JOBSETS.kind): JobSetStrategy()}
"""Strategies that follow the schema of a custom resource, by group and kind; they stand in for webhooks."""
