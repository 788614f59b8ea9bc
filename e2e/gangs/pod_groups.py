"""The PodGroups of TrainJobs and the pods in them, as kubectl shows them."""

from __future__ import annotations

import json
import re
from typing import Any

from e2e.cluster import Cluster
from trainer.plugins.workload import VERSIONS
from trainer.workloads.scheduling_groups import scheduled

POD_GROUPS = "podgroups.scheduling.k8s.io"
WORKLOADS = "workloads.scheduling.k8s.io"
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"

Object = dict[str, Any]


def served_version(cluster: Cluster) -> str:
    """The version of the Workload API that the manager uses in this cluster; "" where it serves none of ours."""
    served = cluster.kubectl("api-versions").stdout.split()
    return next((each.name for each in VERSIONS if each.pod_groups.api_version in served), "")


def refusal(cluster: Cluster, **spec: Any) -> str:
    """Why the API server would not keep these further fields of a gang's `spec`; "" where it would."""
    group = {
        "apiVersion": f"scheduling.k8s.io/{served_version(cluster)}",
        "kind": "PodGroup",
        "metadata": {"name": "trial"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}, **spec},
    }
    command = ("create", "--dry-run=server", "-o", "json", "-f", "-")
    answer = cluster.kubectl(*command, stdin=json.dumps(group), check=False)
    if answer.returncode:
        return answer.stderr
    dropped = spec.keys() - json.loads(answer.stdout)["spec"].keys()
    return f"it drops {' and '.join(sorted(dropped))}" if dropped else ""


def is_known_to_be_off(cluster: Cluster, gate: str) -> bool:
    """Whether the API server says in its metrics that this feature gate is off, as of those that change no object."""
    metrics = cluster.kubectl("get", "--raw", "/metrics", check=False).stdout
    return re.search(rf'^kubernetes_feature_enabled{{name="{gate}",.*}} 0$', metrics, re.MULTILINE) is not None


def all_at_once(cluster: Cluster) -> Any:
    """`disruptionMode` of a gang that goes as a whole, in the version of the cluster."""
    return "PodGroup" if served_version(cluster) == "v1alpha2" else {"all": {}}


def pod_group(cluster: Cluster, name: str) -> Object | None:
    """The PodGroup of a TrainJob; None while it has none."""
    return next((each for each in cluster.list(POD_GROUPS) if _owner(each) == name), None)


def min_count(group: Object | None) -> int:
    """How many pods of a gang are placed at the same time; 0 where there is none."""
    return int(group["spec"]["schedulingPolicy"]["gang"]["minCount"]) if group else 0


def verdict(cluster: Cluster, name: str) -> tuple[str, str]:
    """Status and reason of the condition that says whether the gang of a TrainJob has found a place."""
    condition = scheduled(pod_group(cluster, name) or {})
    return condition.get("status", ""), condition.get("reason", "")


def pods_of(cluster: Cluster, name: str) -> list[Object]:
    """The pods of a TrainJob."""
    return [pod for pod in cluster.list("pod") if job_of(pod) == name]


def job_of(pod: Object) -> str:
    """The TrainJob of a pod."""
    return str((pod["metadata"].get("labels") or {}).get(JOBSET_NAME, ""))


def group_of(pod: Object) -> str:
    """The PodGroup that a pod names; "" where it names none."""
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName", ""))


def takes_room(pod: Object) -> bool:
    """Whether a pod holds resources of a node."""
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in {"Succeeded", "Failed"}


def placed(cluster: Cluster, name: str) -> int:
    """How many pods of a TrainJob hold resources of a node."""
    return sum(map(takes_room, pods_of(cluster, name)))


def _owner(obj: Object) -> str:
    owners = obj["metadata"].get("ownerReferences") or []
    return next((each["name"] for each in owners if each["kind"] == "TrainJob"), "")
