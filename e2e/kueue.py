"""Kueue's webhook and controller, request by request: what they read of TrainJobs of v1alpha1, and what they write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from e2e.kubectl import Kubectl
from e2e.kueue_pod_sets import PodSet, pod_sets
from e2e.mutating_webhook import mutating_webhook
from e2e.waiting import until

Object = dict[str, Any]

MANAGER = "kueue.x-k8s.io/manager"
QUEUE = "kueue.x-k8s.io/queue-name"
ENTRY = {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {}}}}
"""Its runtime patch, before it says anything about nodes."""
CONFLICT = "Error from server (Conflict)"
WORKLOADS = "workloads.kueue.x-k8s.io"


def workload_definition() -> Object:
    """The definition of its Workloads, which keeps whatever they have."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": WORKLOADS},
        "spec": {
            "group": "kueue.x-k8s.io",
            "names": {"kind": "Workload", "plural": "workloads", "singular": "workload"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


@dataclass(frozen=True, slots=True)
class Flavor:
    """What an admitted Workload tells about the nodes of its pods."""

    node_selector: dict[str, str]
    tolerations: tuple[Object, ...] = ()


def webhook(kubectl: Kubectl, directory: Path) -> AbstractContextManager[None]:
    """Have the API server call it for TrainJobs that are created in the namespace; its key goes to the directory."""
    return mutating_webhook(kubectl, directory, "kueue", [("trainer.kubeflow.org", "v1alpha1", "trainjobs")], _changes)


def _changes(obj: Object) -> Iterator[tuple[str, Any]]:
    if QUEUE in (obj["metadata"].get("labels") or {}):
        yield "/spec/suspend", True
        yield "/spec/runtimePatches", [*(obj["spec"].get("runtimePatches") or []), ENTRY]


@dataclass(frozen=True, slots=True)
class Kueue:
    """The controller, for one namespace."""

    cluster: Kubectl
    sends_patches: bool
    """Whether it writes runtimePatches by JSON merge patches, as newer releases do, or by updates of the whole."""

    def read(self, name: str) -> Object:
        """A TrainJob."""
        obj = self.cluster.get("trainjob", name)
        assert obj is not None
        return obj

    def pod_sets(self, name: str) -> list[PodSet]:
        """What quota is reserved for."""
        obj = self.read(name)
        ref = obj["spec"]["runtimeRef"]
        runtime = self.cluster.get(ref["kind"].lower(), ref["name"])
        assert runtime is not None
        return pod_sets(obj, runtime)

    def start(self, name: str, flavor: Flavor) -> None:
        """Say where the pods shall run, and resume, in two requests."""
        self.insist(name, lambda obj: self.place(obj, flavor))
        self.insist(name, self.resume)

    def place(self, obj: Object, flavor: Flavor) -> CompletedProcess[str]:
        """The first request of a start; whether it succeeds shows the result."""
        names = [each.name for each in self.pod_sets(obj["metadata"]["name"])]
        return self._write_entry(obj, {"replicatedJobs": [_placed(name, flavor) for name in names]})

    def resume(self, obj: Object) -> CompletedProcess[str]:
        """The second request of a start."""
        return self._write(obj, suspend=False)

    def suspend(self, obj: Object) -> CompletedProcess[str]:
        """The first request of a stop."""
        return self._write(obj, suspend=True)

    def forget(self, obj: Object) -> CompletedProcess[str]:
        """The last request of a stop: its entry says nothing about nodes any more, and stays."""
        return self._write_entry(obj, {})

    def stop(self, name: str) -> None:
        """Suspend, wait until no pod is active, and take back what `start` has said."""
        self.insist(name, self.suspend)
        until(lambda: not self.is_active(name), f"no pod of {name} is active")
        self.insist(name, self.forget)

    def insist(self, name: str, request: Callable[[Object], CompletedProcess[str]]) -> str:
        """Send a request again if somebody has changed the TrainJob meanwhile; what is said if it is refused."""

        def answer() -> CompletedProcess[str] | None:
            result = request(self.read(name))
            return None if CONFLICT in result.stderr else result

        return until(answer, f"{name} is not changed by others").stderr

    def is_active(self, name: str) -> bool:
        """Whether pods run or end."""
        return any(each["active"] > 0 for each in self._jobs_status(name).values())

    def are_pods_ready(self, name: str) -> bool:
        """Whether all Jobs have their pods."""
        counts = self._jobs_status(name).values()
        done: int = sum(each["ready"] + each["succeeded"] for each in counts)
        return done == len(self.pod_sets(name))

    def reclaimable(self, name: str) -> dict[str, int]:
        """Pods that have done their work, so that others get their quota, by PodSet."""
        jobs = self._jobs_status(name)
        return {each.name: each.count for each in self.pod_sets(name) if jobs.get(each.name, {}).get("succeeded")}

    def finished(self, name: str) -> tuple[str, str] | None:
        """How a TrainJob has ended, and with which message."""
        for condition in (self.read(name).get("status") or {}).get("conditions") or []:
            if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
                return condition["type"], condition["message"]
        return None

    def _jobs_status(self, name: str) -> dict[str, Object]:
        status = self.read(name).get("status") or {}
        return {each["name"]: each for each in status.get("jobsStatus") or []}

    def _write_entry(self, obj: Object, spec: Object) -> CompletedProcess[str]:
        own = {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": spec}}}
        entries = obj["spec"]["runtimePatches"]
        assert own["manager"] in [each["manager"] for each in entries], "it fails without its entry"
        changed = [own if each["manager"] == MANAGER else each for each in entries]
        return self._write(obj, runtimePatches=changed)

    def _write(self, obj: Object, **spec: Any) -> CompletedProcess[str]:
        name, version = obj["metadata"]["name"], obj["metadata"]["resourceVersion"]
        if not self.sends_patches:
            whole = obj | {"spec": obj["spec"] | spec}
            return self.cluster.kubectl("replace", "-f", "-", stdin=json.dumps(of_go(whole)), check=False)
        patch = json.dumps({"metadata": {"resourceVersion": version}, "spec": of_go(spec)})
        return self.cluster.kubectl("patch", "trainjob", name, "--type=merge", "-p", patch, check=False)


def _placed(name: str, flavor: Flavor) -> Object:
    """A patch of the pods of a replicated Job."""
    spec = {"nodeSelector": flavor.node_selector, "tolerations": [*flavor.tolerations], "schedulingGates": []}
    metadata = {
        "labels": {"kueue.x-k8s.io/podset": name},
        "annotations": {"kueue.x-k8s.io/workload": "trainjob-demo"},
    }
    return {"name": name, "template": {"spec": {"template": {"metadata": metadata, "spec": spec}}}}


def of_go(value: Any) -> Any:
    """What Go makes of an object that it has read: lists, maps, texts and booleans are left out where they are empty.

    Structures stay, be they as empty as the innermost of Kueue's own entry.
    """
    if isinstance(value, list):
        return [of_go(item) for item in value]
    return dict(_members(value)) if isinstance(value, dict) else value


def _members(obj: Object) -> Iterator[tuple[str, Any]]:
    for name, value in obj.items():
        is_empty_map = value == {} and name in ("labels", "annotations", "nodeSelector")
        if value is None or value in ("", []) or is_empty_map or (value is False and name != "suspend"):
            continue
        yield name, of_go(value)
