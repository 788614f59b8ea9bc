"""Feature gates: what the components of the cluster do by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

_FIELDS = {
    "ElasticJobSet": "elastic_job_set",
    "WatchList": "watch_list",
    "GenericWorkload": "generic_workload",
    "GangScheduling": "gang_scheduling",
    "TopologyAwareWorkloadScheduling": "topology_aware_workload_scheduling",
    "WorkloadAwarePreemption": "workload_aware_preemption",
    "DRAWorkloadResourceClaims": "dra_workload_resource_claims",
}
"""The field behind each gate, by the name that its own project gave the gate."""
_NEEDS = {
    "GangScheduling": "GenericWorkload",
    "TopologyAwareWorkloadScheduling": "GenericWorkload",
    "WorkloadAwarePreemption": "GangScheduling",
    "DRAWorkloadResourceClaims": "GenericWorkload",
}
_VALUES = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """Which features are on."""

    elastic_job_set: bool = False
    """`ElasticJobSet`: parallelism and completions of a JobSet's Indexed Jobs may change while it runs. Default: off,
    as in JobSet, where the feature is alpha."""
    watch_list: bool = True
    """`WatchList`: a watch may ask for the objects that there are (KEP-3157). Default: on, as in Kubernetes since 1.34;
    without it such watches are refused as Kubernetes 1.31 refuses them, and clients list."""
    generic_workload: bool = False
    """`GenericWorkload`: the Workload API is served, and pods may name a PodGroup of it. It and the gates that need it
    are off by default, as in Kubernetes."""
    gang_scheduling: bool = False
    """`GangScheduling`: pods of a PodGroup are bound together once `minCount` of them fit."""
    topology_aware_workload_scheduling: bool = False
    """`TopologyAwareWorkloadScheduling`: PodGroups keep their `schedulingConstraints`."""
    workload_aware_preemption: bool = False
    """`WorkloadAwarePreemption`: PodGroups are preempted for those of a higher priority."""
    dra_workload_resource_claims: bool = False
    """`DRAWorkloadResourceClaims`: PodGroups keep their `resourceClaims`."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The gates in the notation of Kubernetes components: `NAME=true|false`, separated by commas.

        Raises:
            ValueError: a gate is unknown, needs another one, or its value is not `true` or `false`; the message says
                what there is.
        """
        wanted: dict[str, bool] = {}
        for entry in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = entry.partition("=")
            if name not in _FIELDS:
                raise ValueError(f"unrecognized feature gate {name!r}, known are: {', '.join(_FIELDS)}")
            if value not in _VALUES:
                raise ValueError(f"{entry!r}: write {name}=true or {name}=false")
            wanted[name] = _VALUES[value]
        for name, needed in _NEEDS.items():
            if wanted.get(name) and not wanted.get(needed):
                raise ValueError(f"{name} needs {needed}: write {needed}=true as well")
        return cls(**{_FIELDS[name]: value for name, value in wanted.items()})


DEFAULT_FEATURE_GATES = FeatureGates()
"""Every feature as its own project ships it."""
