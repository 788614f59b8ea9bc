"""OptimizationJobs for tests."""

from __future__ import annotations

import copy
from typing import Any

from trainer.kube.objects import Object

REMOVED = object()
"""Stands for a field that is left out."""

UNIFORM: Object = {"uniform": {"min": "0", "max": "1"}}
CATEGORICAL: Object = {"categorical": {"choices": ["16", "32"]}}


def sweep(*changes: tuple[str, Any], version: str = "v2alpha1", name: str = "demo") -> Object:
    """An OptimizationJob, with other values at dotted paths below its spec, where digits are places in lists."""
    obj: Object = {
        "apiVersion": f"trainer.kubeflow.org/{version}",
        "kind": "OptimizationJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "objectives": [{"metric": "loss"}],
            "parameters": [
                {"name": "lr", "searchSpace": {"logUniform": {"min": "1e-5", "max": "0.1"}}},
                {"name": "batch", "searchSpace": copy.deepcopy(CATEGORICAL)},
            ],
            "numTrials": 4,
            "parallelTrials": 2,
            "trainJobTemplate": {"spec": {"runtimeRef": {"name": "torch-distributed"}}},
        },
    }
    return changed(obj, *changes)


def changed(obj: Object, *changes: tuple[str, Any]) -> Object:
    """A copy with other values at dotted paths below its spec."""
    result = copy.deepcopy(obj)
    for path, value in changes:
        place: Any = result["spec"]
        *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
        for step in steps:
            place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
        if value is REMOVED:
            del place[last]
        else:
            place[last] = value
    return result


def large_sweep(parameters: int, choices: int) -> Object:
    """One with so many categorical parameters of so many choices, in a grid."""
    texts = [str(number).rjust(64, "0") for number in range(choices)]
    named = [{"name": f"p{each}", "searchSpace": {"categorical": {"choices": texts}}} for each in range(parameters)]
    return sweep(("parameters", named), ("searchAlgorithm", {"grid": {}}))
