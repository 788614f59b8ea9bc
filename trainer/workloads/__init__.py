"""Kubernetes' workloads: JobSets, the requests of a pod, and how its containers run and end."""

from __future__ import annotations

from trainer.kube.resource import Resource

JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")

DEFAULT_SCHEDULER = "default-scheduler"
"""The scheduler of pods that name none (Kubernetes, "Configure Multiple Schedulers")."""
