"""The versions of Kubernetes' Workload API, and in what they differ.

v1alpha2 is that of Kubernetes 1.36, v1beta1 that of 1.37; no cluster serves objects of one in the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainer.kube.resource import Resource

GROUP = "scheduling.k8s.io"


@dataclass(frozen=True, slots=True)
class WorkloadVersion:
    """One version of the Workload API."""

    name: str
    """As in `apiVersion`, such as `v1beta1`."""
    pod_groups: Resource
    workloads: Resource
    scheduled: str
    """Type of the condition of a PodGroup that says whether its gang has found a place."""


def _version(name: str, scheduled: str) -> WorkloadVersion:
    return WorkloadVersion(
        name,
        Resource(GROUP, name, "podgroups", "PodGroup"),
        Resource(GROUP, name, "workloads", "Workload"),
        scheduled,
    )


V1BETA1 = _version("v1beta1", "PodGroupInitiallyScheduled")
V1ALPHA2 = _version("v1alpha2", "PodGroupScheduled")

VERSIONS = (V1BETA1, V1ALPHA2)
"""All of them; the first that the cluster serves is used."""
