"""Sweeps and their trials, as a cluster has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from packages.dashboard.tests.conftest import UserClient, train_job
from trainer.api.metric_curve import CURVE, CURVE_OF, MetricCurve
from trainer.api.optimization import ASSIGNMENT, OPTIMIZATION_JOBS, PRUNED, SWEEP_LABEL, TRIAL_LABEL, variable_of
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.v1alpha1.client import SERVED

METRIC: Final = "val_loss"
V1_SWEEPS: Final = msgspec.structs.replace(OPTIMIZATION_JOBS, version="v1alpha1")
RESOURCES: Final[tuple[Resource, ...]] = (TRAIN_JOBS, *SERVED.values(), OPTIMIZATION_JOBS, V1_SWEEPS)
PARAMETERS: Final[Sequence[Object]] = (
    {"name": "lr", "searchSpace": {"logUniform": {"min": "1e-5", "max": "1e-1"}}},
    {"name": "layers", "searchSpace": {"uniform": {"min": "1", "max": "8", "type": "Int"}}},
    {"name": "optimizer", "searchSpace": {"categorical": {"choices": ["adamw", "sgd"]}}},
)


def cluster() -> UserClient:
    """A cluster that serves OptimizationJobs."""
    return UserClient(resources=RESOURCES)


def sweep(
    name: str = "digits",
    *,
    namespace: str = "default",
    parameters: Sequence[Object] = PARAMETERS,
    spec: Object | None = None,
    **status: Any,
) -> Object:
    """An OptimizationJob as a server returns it."""
    return {
        "apiVersion": OPTIMIZATION_JOBS.api_version,
        "kind": OPTIMIZATION_JOBS.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{name}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "objectives": [{"metric": METRIC, "direction": "Minimize", "aggregate": "Min"}],
            "searchAlgorithm": {"tpe": {"seed": 7}},
            "pruneAlgorithm": {"median": {"startupTrials": 3}},
            "parameters": list(parameters),
            "numTrials": 20,
            "parallelTrials": 4,
            "trainJobTemplate": {
                "spec": {
                    "runtimeRef": {"name": "plain"},
                    "trainer": {"args": ["--epochs", "3"], "env": [{"name": "SEED", "value": "1"}]},
                }
            },
        }
        | (spec or {}),
        "status": status,
    }


def record(number: int, values: Sequence[str], state: str = "Succeeded", **more: Any) -> Object:
    """A trial that has ended, in the status of its sweep."""
    return {"number": number, "state": state, "parameterValues": list(values)} | more


def trial(
    number: int,
    assignment: Mapping[str, str],
    points: Sequence[tuple[int, float]] = (),
    *,
    of: Object,
    is_final: bool = False,
    pruned: str = "",
    metric: str = METRIC,
    **status: Any,
) -> Object:
    """The TrainJob of a trial."""
    name, namespace = of["metadata"]["name"], of["metadata"]["namespace"]
    env = [{"name": variable_of(parameter), "value": value} for parameter, value in assignment.items()]
    job = train_job(f"{name}-trial-{number}", namespace=namespace, spec={"trainer": {"env": env}}, **status)
    curve = MetricCurve(metric)
    for step, value in points:
        curve = curve.with_point(step, str(value))
    text = msgspec.json.decode(curve.to_text()) | {"isFinal": is_final}
    job["metadata"] |= {
        "labels": {SWEEP_LABEL: name, TRIAL_LABEL: str(number)},
        "annotations": {
            ASSIGNMENT: json.dumps([{"name": each, "value": value} for each, value in assignment.items()]),
            CURVE_OF: metric,
        }
        | ({CURVE: json.dumps(text)} if points or is_final else {})
        | ({PRUNED: pruned} if pruned else {}),
        "ownerReferences": [
            {
                "apiVersion": OPTIMIZATION_JOBS.api_version,
                "kind": OPTIMIZATION_JOBS.kind,
                "name": name,
                "uid": of["metadata"]["uid"],
                "controller": True,
            }
        ],
    }
    return job


def condition(kind: str, status: str = "True", **more: str) -> Object:
    """A condition."""
    return {"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:10:00Z"} | more
