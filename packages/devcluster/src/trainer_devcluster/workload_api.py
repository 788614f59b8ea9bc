"""The Workload API (scheduling.k8s.io/v1beta1): what API server, controllers and scheduler call the same."""

from __future__ import annotations

from typing import Final

from trainer.kube.resource import Resource

POD_GROUPS: Final = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup")
WORKLOADS: Final = Resource("scheduling.k8s.io", "v1beta1", "workloads", "Workload")
PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"
"""Finalizer of PodGroups, which goes when none of their pods is left."""
