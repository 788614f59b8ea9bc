"""The versions of Kubernetes' Workload API, in what they differ, and which of their fields feature gates may refuse.

v1alpha2 is that of Kubernetes 1.36, v1beta1 that of 1.37; no cluster serves objects of one in the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainer.framework import DryRun, Reader
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.workloads import JOBSETS
from trainer.workloads.scheduling_groups import GROUP, POD_GROUPS

TOPOLOGY = "topologyKey"
DISRUPTION = "disruptionMode"
CLAIMS = "resourceClaims"

SCHEDULING_GROUP = DryRun(
    {
        "apiVersion": JOBSETS.api_version,
        "kind": JOBSETS.kind,
        "spec": {
            "replicatedJobs": [
                {
                    "name": "node",
                    "template": {
                        "spec": {
                            "template": {
                                "spec": {
                                    "restartPolicy": "Never",
                                    "containers": [{"name": "node", "image": "none"}],
                                    "schedulingGroup": {"podGroupName": "none"},
                                }
                            }
                        }
                    },
                }
            ]
        },
    },
    "spec.replicatedJobs.template.spec.template.spec.schedulingGroup",
)
"""A JobSet whose pods are in a group, which its CRD keeps since v0.12."""

MEMBERSHIP = "workload-membership"
"""Name of the dry run of `SCHEDULING_GROUP`."""

GATES: Mapping[str, str] = {
    TOPOLOGY: "TopologyAwareWorkloadScheduling",
    DISRUPTION: "WorkloadAwarePreemption",
    CLAIMS: "DRAWorkloadResourceClaims",
}
"""Feature gates of Kubernetes by the field of podGroupPolicy.workload, and the dry run, that needs them."""


@dataclass(frozen=True, slots=True)
class WorkloadVersion:
    """One version of the Workload API."""

    name: str
    """As in `apiVersion`, such as `v1beta1`."""
    pod_groups: Resource
    workloads: Resource

    @property
    def disrupted_together(self) -> Object | str:
        """The `disruptionMode` of a group of which the scheduler preempts all pods or none."""
        return "PodGroup" if self.name == "v1alpha2" else {"all": {}}

    def template_reference(self, workload: str, template: str) -> Object:
        """The part of a PodGroup's spec that says from which template of which Workload it was made."""
        if self.name == "v1alpha2":
            names = {"workloadName": workload, "podGroupTemplateName": template}
            return {"podGroupTemplateRef": {"workload": names}}
        return {"workloadRef": {"workloadName": workload, "templateName": template}}

    def dry_runs(self) -> Mapping[str, DryRun]:
        """PodGroups with one field each that a feature gate may refuse, or drop in silence."""
        claim = {"name": "shared", "resourceClaimTemplateName": "shared"}
        return {
            TOPOLOGY: self._dry_run("schedulingConstraints", {"topology": [{"key": "kubernetes.io/hostname"}]}),
            DISRUPTION: self._dry_run("disruptionMode", self.disrupted_together),
            CLAIMS: self._dry_run("resourceClaims", [claim]),
        }

    def _dry_run(self, field: str, value: object) -> DryRun:
        spec = {"schedulingPolicy": {"gang": {"minCount": 1}}, field: value}
        kind = self.pod_groups
        return DryRun({"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}, f"spec.{field}")


V1BETA1, V1ALPHA2 = (
    WorkloadVersion(groups.version, groups, Resource(GROUP, groups.version, "workloads", "Workload"))
    for groups in POD_GROUPS
)

VERSIONS = (V1BETA1, V1ALPHA2)
"""All of them; the first that the cluster serves is used."""


def served_version(reader: Reader) -> WorkloadVersion | None:
    """The version of which the cluster serves both kinds; None without the Workload API."""
    served = reader.serves
    return next((each for each in VERSIONS if served(each.pod_groups) and served(each.workloads)), None)


def is_offered(reader: Reader) -> bool:
    """Whether the API server serves PodGroups, and JobSet keeps which one pods are in."""
    return served_version(reader) is not None and not reader.refusal(JOBSETS, MEMBERSHIP)
