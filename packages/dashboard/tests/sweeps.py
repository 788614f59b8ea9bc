"""Sweeps and their trials, as a cluster has them."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
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
    return {"type": kind, "status": status, "reason": kind, "lastTransitionTime": "2026-01-01T00:10:00Z"} | more


def searched(
    name: str = "digits",
    count: int = 20,
    *,
    parameters: Sequence[Object] = PARAMETERS,
    running: int = 0,
    namespace: str = "default",
    metric: str = METRIC,
    total: int | None = None,
) -> tuple[Object, list[Object]]:
    """A sweep with trials of all kinds, the last of which run, and their TrainJobs; the same each time.

    Every seventh trial has failed, and every fourth was pruned; the value is least near a rate of 3e-3.
    """
    of = sweep(name, namespace=namespace, parameters=parameters, spec={"numTrials": total or count})
    of["spec"]["objectives"] = [{"metric": metric, "direction": "Minimize"}]
    draws = random.Random(7)
    jobs, records = [], []
    for number in range(1, count + 1):
        assignment = {each["name"]: drawn(each["searchSpace"], draws) for each in parameters}
        rate = abs(math.log10(float(assignment[parameters[0]["name"]])) + 2.5)
        level = 0.05 + rate * 0.2 + draws.random() * 0.05
        state = "Failed" if number % 7 == 5 else "Pruned" if number % 4 == 0 else "Succeeded"
        is_running = number > count - running
        steps = 6 if state == "Pruned" or is_running else 30
        points = [
            (step, round(level + (1.2 + draws.random() * 0.08) / (1 + step / 4), 4)) for step in range(1, steps + 1)
        ]
        pruned = "worse than the median 0.31 of 5 trials at step 6" if state == "Pruned" and not is_running else ""
        begun = 40 * (number - 1)
        job = trial(number, assignment, points, of=of, pruned=pruned, metric=metric, startTime=moment(begun))
        job["status"] |= {
            "state": "Running",
            "trainerStatus": {"progressPercentage": 20, "currentStep": steps, "lastUpdatedTime": moment(begun)},
        }
        if not is_running:
            said = {"Failed": "RuntimeError: CUDA out of memory", "Pruned": pruned}
            kind = {"Failed": "Failed", "Pruned": "Suspended", "Succeeded": "Complete"}[state]
            ended = condition(kind, message=said.get(state, ""), lastTransitionTime=moment(begun + 8 * steps))
            job["status"] |= {"state": kind, "conditions": [ended]}
            value = {} if state == "Failed" else {"value": str(points[-1][1])}
            records.append(
                record(number, list(assignment.values()), state, step=steps, **value)
                | ({"message": said[state]} if state in said else {})
            )
        jobs.append(job)
    told = [each for each in records if each["state"] == "Succeeded"]
    best = min(told, key=lambda each: float(each["value"]), default=None)
    counted = Counter(each["state"].lower() for each in records)
    of["status"] = {
        "state": "Running" if running or (total or count) > count else "Complete",
        "progressPercentage": 100 * len(records) // (total or count),
        "trialCounts": {"running": running} | counted,
        "trials": records,
        "startTime": moment(0),
        "conditions": [condition("Created")] + ([] if running else [condition("Complete")]),
    }
    if not running:
        of["status"]["completionTime"] = moment(40 * count + 240)
    if best is not None:
        assigned = [
            {"name": each["name"], "value": value}
            for each, value in zip(parameters, best["parameterValues"], strict=True)
        ]
        name = f"{name}-trial-{best['number']}"
        of["status"]["result"] = {"trainJobName": name, "value": best["value"], "parameters": assigned}
    return of, jobs


def drawn(space: Object, draws: random.Random) -> str:
    """A value of a parameter."""
    if "categorical" in space:
        return str(draws.choice(space["categorical"]["choices"]))
    kind, interval = next(iter(space.items()))
    low, high = float(interval["min"]), float(interval["max"])
    if kind == "logUniform":
        return f"{math.exp(draws.uniform(math.log(low), math.log(high))):.6g}"
    value = draws.uniform(low, high)
    return str(round(value)) if interval.get("type") == "Int" else f"{value:.4f}"


def moment(seconds: float) -> str:
    """A time of the sweep."""
    return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def many(count: int = 30) -> list[Object]:
    """Parameters of all kinds, some with long names."""
    kinds = [each["searchSpace"] for each in PARAMETERS]
    names = [
        "lr",
        *(f"p{number}_{'a_rather_long_name_of_a_parameter' if number % 5 == 0 else 'x'}" for number in range(1, count)),
    ]
    return [{"name": name, "searchSpace": kinds[number % len(kinds)]} for number, name in enumerate(names)]
