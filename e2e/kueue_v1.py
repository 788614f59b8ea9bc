"""Kueue's controller for PyTorchJobs and JAXJobs of v1, request by request: what it reads, and what it writes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from subprocess import CompletedProcess
from typing import Any, Final

from e2e.cluster import Cluster
from e2e.kueue import CONFLICT, Flavor, of_go
from e2e.waiting import until

Object = dict[str, Any]

REPLICAS: Final = {"PyTorchJob": "pytorchReplicaSpecs", "JAXJob": "jaxReplicaSpecs"}
"""Kinds, and where each has its roles."""
_ROLES: Final = ("Master", "Worker")
"""In the order of PodSets."""


@dataclass(frozen=True, slots=True)
class PodSet:
    """The pods of one role, as a Workload keeps them from before the start."""

    name: str
    count: int
    template: Object


@dataclass(frozen=True, slots=True)
class V1Kueue:
    """The controller for jobs of one kind in one namespace."""

    cluster: Cluster
    kind: str
    sends_patches: bool
    """Whether it writes by JSON merge patches, as newer releases do, or by updates of the whole."""

    def read(self, name: str) -> Object:
        """A job."""
        obj = self.cluster.get(self.kind.lower(), name)
        assert obj is not None
        return obj

    def pod_sets(self, name: str) -> list[PodSet]:
        """What quota is reserved for."""
        return [
            PodSet(role.lower(), replica.get("replicas", 1), replica["template"])
            for role, replica in self._roles(self.read(name))
        ]

    def priority_class(self, name: str) -> str:
        """The PriorityClass of its Workload."""
        obj = self.read(name)
        stated = ((obj["spec"].get("runPolicy") or {}).get("schedulingPolicy") or {}).get("priorityClass")
        found = [replica["template"]["spec"].get("priorityClassName") for _, replica in self._roles(obj)]
        return next((each for each in (stated, *found) if each), "")

    def start(self, name: str, flavor: Flavor) -> str:
        """Say where the pods of each role shall run, and resume, in one request."""

        def started(obj: Object) -> Object:
            spec: Object = copy.deepcopy(obj["spec"])
            spec["runPolicy"]["suspend"] = False
            for role, replica in self._roles({"spec": spec}):
                _merge(replica["template"], flavor, role.lower())
            return spec

        return self._insist(name, started)

    def stop(self, name: str, waiting: list[PodSet]) -> str:
        """Suspend, and take back what `start` has said, in one request; `waiting` is from before that."""

        def stopped(obj: Object) -> Object:
            spec: Object = copy.deepcopy(obj["spec"])
            spec["runPolicy"]["suspend"] = True
            for (_, replica), pod_set in zip(self._roles({"spec": spec}), waiting, strict=True):
                _restore(replica["template"], pod_set.template)
            return spec

        return self._insist(name, stopped)

    def write(self, obj: Object, spec: Object) -> CompletedProcess[str]:
        """Send a spec for a job as it was read; lists and maps that it lacks are removed."""
        if not self.sends_patches:
            whole = obj | {"spec": spec}
            return self.cluster.kubectl("replace", "-f", "-", stdin=json.dumps(of_go(whole)), check=False)
        change = _merge_patch(of_go(obj["spec"]), of_go(spec))
        patch = json.dumps({"metadata": {"resourceVersion": obj["metadata"]["resourceVersion"]}, "spec": change})
        name = obj["metadata"]["name"]
        return self.cluster.kubectl("patch", self.kind.lower(), name, "--type=merge", "-p", patch, check=False)

    def is_active(self, name: str) -> bool:
        """Whether pods run."""
        statuses = (self.read(name).get("status") or {}).get("replicaStatuses") or {}
        return any(each.get("active") for each in statuses.values())

    def are_pods_ready(self, name: str) -> bool:
        """Whether it counts as running."""
        return self._holds(name, "Running") is not None

    def finished(self, name: str) -> tuple[bool, str] | None:
        """Whether a job has ended well, and with which message; None while it has not ended."""
        for condition, is_success in (("Succeeded", True), ("Failed", False)):
            if (message := self._holds(name, condition)) is not None:
                return is_success, message
        return None

    def _holds(self, name: str, condition: str) -> str | None:
        for each in (self.read(name).get("status") or {}).get("conditions") or []:
            if each["type"] == condition and each["status"] == "True":
                return str(each["message"])
        return None

    def _roles(self, obj: Object) -> Iterator[tuple[str, Object]]:
        specs = obj["spec"][REPLICAS[self.kind]]
        return ((role, specs[role]) for role in _ROLES if role in specs)

    def _insist(self, name: str, change: Callable[[Object], Object]) -> str:
        """Send a request again if somebody has changed the job meanwhile; what is said if it is refused."""

        def answer() -> CompletedProcess[str] | None:
            obj = self.read(name)
            result = self.write(obj, change(obj))
            return None if CONFLICT in result.stderr else result

        return until(answer, f"{name} is not changed by others").stderr


def _merge(template: Object, flavor: Flavor, name: str) -> None:
    """Add to a template, which must not say otherwise."""
    metadata, spec = template.setdefault("metadata", {}), template["spec"]
    for place, field, values in (
        (metadata, "labels", {"kueue.x-k8s.io/podset": name}),
        (metadata, "annotations", {"kueue.x-k8s.io/workload": "demo"}),
        (spec, "nodeSelector", flavor.node_selector),
    ):
        present = place.get(field) or {}
        assert all(present.get(key, value) == value for key, value in values.items()), f"a conflict of {field}"
        place[field] = present | values
    spec["tolerations"] = _united(spec.get("tolerations"), flavor.tolerations)
    spec["schedulingGates"] = _united(spec.get("schedulingGates"), [{"name": gate} for gate in flavor.scheduling_gates])


def _united(present: list[Object] | None, more: Any) -> list[Object]:
    return [*(present or []), *(each for each in more if each not in (present or []))]


def _restore(template: Object, former: Object) -> None:
    """Take labels, annotations and what says where pods run from another template."""
    metadata, past = template.setdefault("metadata", {}), former.get("metadata") or {}
    metadata |= {field: past.get(field) or {} for field in ("labels", "annotations")}
    template["spec"] |= {"nodeSelector": former["spec"].get("nodeSelector") or {}}
    template["spec"] |= {field: former["spec"].get(field) or [] for field in ("tolerations", "schedulingGates")}


def _merge_patch(before: Any, after: Any) -> Any:
    """The JSON merge patch (RFC 7386) between two objects."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return after
    changed = {
        name: _merge_patch(before.get(name), value) for name, value in after.items() if before.get(name) != value
    }
    return changed | {name: None for name in before if name not in after}
