"""Making the pods of a Job from its template."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from trainer.kube.objects import controller_reference, name_of, namespace_of
from trainer_devcluster.controllers.job.pods import COMPLETION_INDEX, TRACKING_FINALIZER

if TYPE_CHECKING:
    from trainer.kube.objects import Object

_LONGEST_PREFIX = 58
"""A name of 63 characters less the five that the server adds to `generateName`."""
_INDEX_VARIABLE: Object = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}},
}


def build_pod(job: Object, index: int | None) -> Object:
    """A new pod of the Job; with an index also its hostname, label, annotation and JOB_COMPLETION_INDEX variable."""
    template = deepcopy(job["spec"]["template"])
    given = template.get("metadata") or {}
    metadata: Object = {
        "generateName": _name_prefix(name_of(job), index),
        "namespace": namespace_of(job),
        "labels": given.get("labels") or {},
        "annotations": given.get("annotations") or {},
        "ownerReferences": [controller_reference(job)],
        "finalizers": list(dict.fromkeys([*(given.get("finalizers") or []), TRACKING_FINALIZER])),
    }
    spec = template["spec"]
    if index is not None:
        metadata["labels"][COMPLETION_INDEX] = str(index)
        metadata["annotations"][COMPLETION_INDEX] = str(index)
        spec["hostname"] = f"{name_of(job)}-{index}"
        for container in (*(spec.get("initContainers") or []), *spec["containers"]):
            _add_index_variable(container)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _name_prefix(job: str, index: int | None) -> str:
    if index is None:
        # What of it is too long the server cuts off in the name alone.
        return f"{job}-"
    suffix = f"-{index}-"
    return job[: _LONGEST_PREFIX - len(suffix)] + suffix


def _add_index_variable(container: Object) -> None:
    variables = container.setdefault("env", [])
    if all(variable["name"] != _INDEX_VARIABLE["name"] for variable in variables):
        variables.append(deepcopy(_INDEX_VARIABLE))
