"""What the tests make in a cluster beside their namespaces, so that all of it goes again."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from typing import Any

import yaml

from e2e.kubectl import Kubectl

LABEL = "e2e.trainer.kubeflow.org/run"
"""On namespaces and cluster-scoped objects that tests make, with the name of the run."""
LABELLED = ("Namespace", "ClusterTrainingRuntime")
"""Kinds whose objects are found by the label in the end, whichever test has made them and failed to delete them."""


@dataclass(slots=True)
class Belongings:
    """Objects that one run has made."""

    run: str = ""
    """Name of the run, which begins with a letter: 12e4567 is a number to kubectl. Default: "", in a cluster that goes
    away with it, where nothing needs to be known again."""
    created: list[dict[str, Any]] = field(default_factory=list)

    def create(self, kubectl: Kubectl, *objects: dict[str, Any], namespace: str = "") -> None:
        """Apply objects that were not there, and leave alone those that were.

        Args:
            kubectl: where.
            objects: in an order in which they can be made.
            namespace: of those that name none.
        """
        place = ["-n", namespace] if namespace else []
        new = objects
        if self.run:
            manifests = yaml.dump_all(objects, Dumper=yaml.CSafeDumper)
            shown = kubectl.kubectl("get", *place, "-f", "-", "-o", "json", stdin=manifests, check=False).stdout
            found = json.loads(shown) if shown.strip() else {}
            present = {_key(obj) for obj in found.get("items", [found] if found else [])}
            new = tuple(obj for obj in objects if _key(obj) not in present)
        if new:
            self.created += [obj | {"metadata": {"namespace": namespace, **obj["metadata"]}} for obj in new]
            manifests = yaml.dump_all(new, Dumper=yaml.CSafeDumper)
            kubectl.kubectl("apply", "--server-side", "--force-conflicts", *place, "-f", "-", stdin=manifests)

    def labelled(self, obj: dict[str, Any]) -> dict[str, Any]:
        """The object as it is made, so that it is found in the end."""
        if not self.run or obj["kind"] not in LABELLED:
            return obj
        metadata = obj["metadata"]
        return obj | {"metadata": metadata | {"labels": {**metadata.get("labels", {}), LABEL: self.run}}}

    def remove(self, kubectl: Kubectl) -> None:
        """Delete everything, the youngest first; what is gone already is no matter, and a failure stops nothing."""
        if not self.run:
            return
        failures = []
        for kind in LABELLED:
            command = ("delete", kind.lower(), "-l", f"{LABEL}={self.run}", "--ignore-not-found", "--timeout=80s")
            failures += _failures(kubectl, *command)
        for obj in reversed(self.created):
            failures += _failures(kubectl, "delete", "--ignore-not-found", "--timeout=80s", "-f", "-", obj=obj)
        self.created.clear()
        assert not failures, "\n".join(["could not be deleted:", *failures])


def _failures(kubectl: Kubectl, *command: str, obj: dict[str, Any] | None = None) -> list[str]:
    stdin = None if obj is None else yaml.safe_dump(obj)
    try:
        result = kubectl.kubectl(*command, stdin=stdin, check=False)
    except subprocess.TimeoutExpired as error:
        return [str(error)]
    # A kind whose definition has gone has no objects any more.
    is_gone = "no matches for kind" in result.stderr or "doesn't have a resource type" in result.stderr
    return [] if result.returncode == 0 or is_gone else [result.stderr.strip()]


def _key(obj: dict[str, Any]) -> tuple[str, str]:
    return obj["kind"], obj["metadata"]["name"]
