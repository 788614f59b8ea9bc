"""A sweep and its trials, as a cluster has them."""

from __future__ import annotations

import json
from typing import Any

from trainer.api.metric_curve import CURVE, MetricCurve, Point
from trainer.api.optimization import ASSIGNMENT, OPTIMIZATION_JOBS, SWEEP_LABEL, TRIAL_LABEL
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.objects import Object

BEGAN = "2026-01-01T00:00:00Z"


def sweep(name: str = "digits", *, status: Object | None = None, **spec: Any) -> Object:
    """An OptimizationJob that minimizes `loss` by `lr` and `bs`."""
    given: Object = {
        "objectives": [{"metric": "loss"}],
        "searchAlgorithm": {"random": {"seed": 7}},
        "parameters": [
            {"name": "lr", "searchSpace": {"logUniform": {"min": "1e-4", "max": "0.1"}}},
            {"name": "bs", "searchSpace": {"categorical": {"choices": ["16", "32"]}}},
        ],
        "numTrials": 4,
        "parallelTrials": 2,
        "trainJobTemplate": {"spec": {"runtimeRef": {"name": "torch-distributed"}}},
    }
    return {
        "apiVersion": OPTIMIZATION_JOBS.api_version,
        "kind": OPTIMIZATION_JOBS.kind,
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}", "creationTimestamp": BEGAN},
        "spec": given | spec,
        **({"status": status} if status is not None else {}),
    }


def condition(kind: str, reason: str = "Because", message: str = "", status: str = "True") -> Object:
    """One of a sweep or a TrainJob."""
    moment = "2026-01-01T00:01:00Z"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": moment}


def ended(number: int, state: str = "Succeeded", value: str | None = "0.5", message: str | None = None) -> Object:
    """An entry of `status.trials`."""
    said = {"value": value, "message": message}
    entry: Object = {"number": number, "state": state, "parameterValues": [f"0.00{number}", "16"]}
    return entry | {field: text for field, text in said.items() if text is not None}


def trial(
    number: int, *conditions: Object, sweep: str = "digits", curve: tuple[str, ...] = (), **status: Any
) -> Object:
    """The TrainJob of a trial; with the last values of a curve that it has reported so far."""
    points = tuple(Point(step, value) for step, value in enumerate(curve, start=1))
    text = MetricCurve("loss", points, is_final=bool(conditions)).to_text()
    values = [{"name": "lr", "value": f"0.00{number}"}, {"name": "bs", "value": "16"}]
    owner = {
        "apiVersion": OPTIMIZATION_JOBS.api_version,
        "kind": OPTIMIZATION_JOBS.kind,
        "name": sweep,
        "uid": f"uid-of-{sweep}",
        "controller": True,
    }
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {
            "name": f"{sweep}-trial-{number}",
            "namespace": "default",
            "uid": f"uid-of-trial-{number}",
            "creationTimestamp": BEGAN,
            "labels": {SWEEP_LABEL: sweep, TRIAL_LABEL: str(number)},
            "annotations": {ASSIGNMENT: json.dumps(values), **({CURVE: text} if curve else {})},
            "ownerReferences": [owner],
        },
        "spec": {"runtimeRef": {"name": "torch-distributed"}},
        "status": status | ({"conditions": list(conditions)} if conditions else {}),
    }
