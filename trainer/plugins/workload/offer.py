"""Whether a cluster offers gangs by Kubernetes itself, for the setting gangScheduling: auto."""

from __future__ import annotations

from trainer.framework import Reader
from trainer.plugins.workload.versions import VERSIONS


def is_offered(reader: Reader) -> bool:
    """Whether the API server serves PodGroups and Workloads of a version that is known here."""
    return any(reader.serves(each.pod_groups) and reader.serves(each.workloads) for each in VERSIONS)
