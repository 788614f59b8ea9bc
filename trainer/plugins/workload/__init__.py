"""Gang scheduling by Kubernetes itself: the Workload API of Kubernetes 1.36 and later (KEP-4671, KEP-3015)."""

from trainer.plugins.workload.plugin import Workload
from trainer.plugins.workload.versions import VERSIONS, WorkloadVersion, is_offered

__all__ = ["VERSIONS", "Workload", "WorkloadVersion", "is_offered"]
