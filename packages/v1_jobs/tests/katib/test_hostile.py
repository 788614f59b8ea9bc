"""What a stranger writes costs linear time and gives bounded messages."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from packages.v1_jobs.tests.katib.samples import experiment, job
from trainer.api.invalid_object import InvalidObjectError
from trainer.kube.objects import Object
from trainer_v1_jobs.katib import convert_experiment

LONG: dict[str, Callable[[int], Object]] = {
    "signs": lambda size: experiment(job(["$" * size])),
    "signs before placeholders": lambda size: experiment(job(["$$${trialParameters.lr}" * size])),
    "beginnings": lambda size: experiment(job(["${trialParameters." * size])),
    "placeholders": lambda size: experiment(job(["${trialParameters.lr}" * size])),
    "unknown placeholders": lambda size: experiment(job(["${trialParameters.x}"] * size)),
    "misplaced placeholders": lambda size: experiment(job(image="${trialParameters.lr}" * size)),
    "variables": lambda size: experiment(
        job(env=[{"name": f"V{index}", "value": "${trialParameters.lr}"} for index in range(size)])
    ),
    "containers": lambda size: experiment(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "spec": {
                "template": {"spec": {"containers": [{"name": f"c{index}", "image": "x"} for index in range(size)]}}
            },
        }
    ),
    "settings": lambda size: experiment(
        algorithm={
            "algorithmName": "tpe",
            "algorithmSettings": [{"name": f"s{index}", "value": "9" * 64} for index in range(min(size, 100))],
        }
    ),
    "parameters": lambda size: experiment(
        parameters=[
            {"name": f"p{index}", "parameterType": "int", "feasibleSpace": {"min": "1", "max": "9"}}
            for index in range(size)
        ]
    ),
}


def problems_of(obj: Object) -> list[str]:
    """Why an Experiment cannot be converted; none where it can."""
    try:
        convert_experiment(obj)
    except InvalidObjectError as error:
        return [str(each) for each in error.errors] or ["no error is named"]
    return []


def steps_of(obj: Object) -> int:
    """The lines of Python that a conversion takes."""
    count = 0

    def trace(_frame: Any, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        problems_of(obj)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("make", LONG.values(), ids=LONG)
def test_time(make: Callable[[int], Object]) -> None:
    """Four times as much input takes at most about four times as many steps."""
    steps_of(make(10))
    small, large = steps_of(make(200)), steps_of(make(800))

    assert large < 5 * small


@pytest.mark.parametrize("make", LONG.values(), ids=LONG)
def test_messages(make: Callable[[int], Object]) -> None:
    """They are few and short."""
    assert sum(map(len, problems_of(make(20_000)))) < 100_000


WRONG: list[Any] = [None, 5, "x", [], {}, [5], {"a": 5}, [[]], [None], True]
PLACES: list[tuple[str, ...]] = [
    ("spec",),
    ("metadata",),
    ("status",),
    ("spec", "objective"),
    ("spec", "algorithm"),
    ("spec", "algorithm", "algorithmSettings"),
    ("spec", "earlyStopping"),
    ("spec", "parameters"),
    ("spec", "metricsCollectorSpec"),
    ("spec", "metricsCollectorSpec", "source"),
    ("spec", "trialTemplate"),
    ("spec", "trialTemplate", "trialParameters"),
    ("spec", "trialTemplate", "trialSpec"),
    ("spec", "trialTemplate", "trialSpec", "metadata"),
    ("spec", "trialTemplate", "trialSpec", "spec"),
    ("spec", "trialTemplate", "trialSpec", "spec", "template"),
    ("spec", "trialTemplate", "trialSpec", "spec", "template", "spec"),
    ("spec", "trialTemplate", "trialSpec", "spec", "template", "spec", "containers"),
    ("spec", "trialTemplate", "trialSpec", "spec", "podFailurePolicy"),
    ("spec", "trialTemplate", "trialSpec", "spec", "activeDeadlineSeconds"),
]


@pytest.mark.parametrize("place", PLACES, ids=".".join)
@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_types(place: tuple[str, ...], value: Any) -> None:
    """A value of another type is an error that names a field, or counts for nothing."""
    obj = experiment(metricsCollectorSpec={})
    holder = obj
    for name in place[:-1]:
        holder = holder.setdefault(name, {})
    holder[place[-1]] = value

    assert "no error is named" not in problems_of(obj)
