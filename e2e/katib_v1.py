"""Katib's v1beta1 controller and webhook for trials that are jobs of v1: what they read, and what they write.

Its collector finds the end of a training among the processes of the pod, which containers of the dev cluster do not
share; here a file says it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from e2e.kubectl import Kubectl
from e2e.mutating_webhook import mutating_webhook

Object = dict[str, Any]

API_VERSION: Final = "kubeflow.org/v1beta1"
COLLECTOR: Final = "metrics-logger-and-collector"
LEADER: Final = {"training.kubeflow.org/job-role": "master"}
"""Labels of the pods that get a collector, where an experiment does not say otherwise."""
_DIRECTORY: Final = "/var/log/katib"
_COLLECT: Final = f"while [ ! -e {_DIRECTORY}/done ]; do sleep 0.2; done; cat {_DIRECTORY}/metrics.log"


@dataclass(frozen=True, slots=True)
class Katib:
    """Both, for one namespace."""

    cluster: Kubectl

    def webhook(self, directory: Path) -> AbstractContextManager[None]:
        """Have the API server call it for pods; its key goes to a directory."""
        return mutating_webhook(self.cluster, directory, "katib", [("", "v1", "pods")], self._injected)

    def start(self, job: Object, primary_pods: dict[str, str] | None = None) -> None:
        """Create a trial and its job; `primary_pods` are labels of pods whose metrics are collected."""
        name, kind = job["metadata"]["name"], job["kind"]
        (container,) = {"PyTorchJob": ("pytorch",), "JAXJob": ("jax",)}[kind]
        spec = {"primaryPodLabels": primary_pods or LEADER, "primaryContainerName": container, "runSpec": job}
        self._create({"apiVersion": API_VERSION, "kind": "Trial", "metadata": {"name": name}, "spec": spec})
        owner = {
            "apiVersion": API_VERSION,
            "kind": "Trial",
            "name": name,
            "uid": self._get("trial", name)["metadata"]["uid"],
        }
        owners = [owner | {"controller": True, "blockOwnerDeletion": True}]
        self._create(job | {"metadata": job["metadata"] | {"ownerReferences": owners}})

    def end(self, kind: str, name: str) -> tuple[str, str, str] | None:
        """How a trial has ended, with reason and message; None while it goes on.

        The conditions are those of Katib's examples: `status.conditions.#(type=="Succeeded")#|#(status=="True")#`.
        """
        conditions = (self._get(kind, name).get("status") or {}).get("conditions") or []
        for end in ("Failed", "Succeeded"):
            for each in [each for each in conditions if each["type"] == end and each["status"] == "True"]:
                return end, each["reason"], each["message"]
        return None

    def observation(self, pod: str) -> str:
        """What the collector of a pod has read."""
        return self.cluster.kubectl("logs", pod, "-c", COLLECTOR).stdout

    def _injected(self, pod: Object) -> Iterator[tuple[str, Any]]:
        name = self._trial_of(pod)
        if name is None:
            return
        spec = self._get("trial", name)["spec"]
        if not spec["primaryPodLabels"].items() <= pod["metadata"]["labels"].items():
            return
        (index,) = (
            n for n, each in enumerate(pod["spec"]["containers"]) if each["name"] == spec["primaryContainerName"]
        )
        main = pod["spec"]["containers"][index]
        words = " ".join(f"'{word}'" for word in (*main["command"], *main.get("args", [])))
        line = f"{words} 1>{_DIRECTORY}/metrics.log 2>&1; code=$?; touch {_DIRECTORY}/done; exit $code"
        mount = {"name": "metrics-volume", "mountPath": _DIRECTORY}
        mounts = [*(main.get("volumeMounts") or []), mount]
        wrapped = main | {"command": ["sh", "-c"], "args": [line], "volumeMounts": mounts}
        collector = {"name": COLLECTOR, "image": "any", "command": ["sh", "-c", _COLLECT], "volumeMounts": [mount]}
        containers = [wrapped if n == index else each for n, each in enumerate(pod["spec"]["containers"])]
        yield "/spec/containers", [*containers, collector]
        yield "/spec/volumes", [*(pod["spec"].get("volumes") or []), {"name": "metrics-volume", "emptyDir": {}}]

    def _trial_of(self, obj: Object) -> str | None:
        """The trial that an object belongs to, through all its owners."""
        for owner in obj["metadata"].get("ownerReferences") or []:
            if (owner["apiVersion"], owner["kind"]) == (API_VERSION, "Trial"):
                return str(owner["name"])
            group, _, _ = owner["apiVersion"].rpartition("/")
            kind = f"{owner['kind'].lower()}s.{group}" if group else owner["kind"].lower()
            if (found := self._trial_of(self._get(kind, owner["name"]))) is not None:
                return found
        return None

    def _get(self, kind: str, name: str) -> Object:
        found = self.cluster.get(kind, name)
        assert found is not None, f"there is no {kind} {name}"
        return found

    def _create(self, obj: Object) -> None:
        self.cluster.kubectl("create", "-f", "-", stdin=json.dumps(obj))
