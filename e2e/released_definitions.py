"""The CustomResourceDefinitions of Kubeflow Trainer (Go): those of config/v1alpha1 with its status, names and columns.

A unit test compares them with the files of the release where these are beside the checkout.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

from e2e.installation import CONFIG

Object = dict[str, Any]

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_COUNT: Final = {"type": "integer", "format": "int32", "minimum": 0}
_TIME: Final = {"type": "string", "format": "date-time"}
_TYPE: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
_COUNTS: Final = ("active", "failed", "ready", "succeeded", "suspended")


def _text(longest: int, **rules: Any) -> Object:
    return {"type": "string", "maxLength": longest, **rules}


def _objects(most: int, properties: Object, *, key: str | None = None, optional: tuple[str, ...] = ()) -> Object:
    """An array of objects, which is a map where they have a key."""
    required = sorted(properties.keys() - optional)
    kind = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]} if key else {}
    items = {"type": "object", "required": required, "properties": properties}
    return {"type": "array", "maxItems": most, "items": items, "x-kubernetes-list-type": "atomic", **kind}


_CONDITION: Final = {
    "type": _text(316, pattern=_TYPE),
    "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
    "reason": _text(1024, minLength=1, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
    "message": _text(32768),
    "lastTransitionTime": _TIME,
    "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
}
_PROGRESS: Final = {
    "progressPercentage": _COUNT | {"maximum": 100},
    "estimatedRemainingSeconds": _COUNT,
    "metrics": _objects(256, {name: _text(64, minLength=1) for name in ("name", "value")}),
    "lastUpdatedTime": _TIME,
}
_RULE: Final = {
    "rule": "has(self.lastUpdatedTime)",
    "message": "lastUpdatedTime is required when trainerStatus is present",
}
STATUS: Final = {
    "type": "object",
    "minProperties": 1,
    "properties": {
        "conditions": _objects(8, _CONDITION, key="type", optional=("observedGeneration",)),
        "jobsStatus": _objects(100, {"name": _text(253, minLength=1), **dict.fromkeys(_COUNTS, _COUNT)}, key="name"),
        "trainerStatus": {"type": "object", "properties": _PROGRESS, "x-kubernetes-validations": [_RULE]},
    },
}
"""Schema of the status of a TrainJob, without descriptions."""
COLUMNS: Final = [
    {"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
"""What `kubectl get trainjob` shows: the state is the last condition."""


def released_definitions() -> list[Object]:
    """TrainJobs and both kinds of runtimes."""
    file = CONFIG / "v1alpha1" / "crd" / "trainer.kubeflow.org.yaml"
    return [_released(definition) for definition in yaml.load_all(file.read_text(), _LOADER)]


def _released(definition: Object) -> Object:
    names = definition["spec"]["names"]
    for name in ("shortNames", "categories"):
        del names[name]
    (version,) = definition["spec"]["versions"]
    del version["additionalPrinterColumns"]
    if names["kind"] == "TrainJob":
        version["additionalPrinterColumns"] = COLUMNS
        version["schema"]["openAPIV3Schema"]["properties"]["status"] = STATUS
    return definition
