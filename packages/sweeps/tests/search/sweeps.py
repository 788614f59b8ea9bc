"""Sweeps and their histories, as the tests of the search need them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trainer_sweeps.api.optimizationjob import OptimizationJobSpec, TrialState
from trainer_sweeps.search import PastTrial, suggestion


def interval(name: str, low: str, high: str, kind: str = "Float", *, log: bool = False) -> dict[str, Any]:
    """A parameter of numbers."""
    return {"name": name, "searchSpace": {"logUniform" if log else "uniform": {"min": low, "max": high, "type": kind}}}


def choice(name: str, *texts: str) -> dict[str, Any]:
    """A parameter of texts."""
    return {"name": name, "searchSpace": {"categorical": {"choices": list(texts)}}}


LEARNING_RATE = interval("lr", "1e-5", "1e-1", log=True)
LAYERS = interval("layers", "1", "12", "Int")
OPTIMIZER = choice("optimizer", "sgd", "adam", "lion")
TRAINING = (LEARNING_RATE, LAYERS, OPTIMIZER)


def sweep(
    *parameters: Mapping[str, Any], algorithm: Mapping[str, Any] | None = None, **spec: Any
) -> OptimizationJobSpec:
    """The spec of a sweep that minimizes loss; with numTrials of 100."""
    objective = {"metric": "loss"} | spec.pop("objective", {})
    return OptimizationJobSpec.from_object(
        {
            "objectives": [objective],
            "searchAlgorithm": algorithm or {"random": {}},
            "parameters": list(parameters or TRAINING),
            "numTrials": 100,
            "trainJobTemplate": {"spec": {}},
        }
        | spec
    )


def history(
    spec: OptimizationJobSpec, ended: int, running: int, value: Callable[[Mapping[str, str]], float]
) -> list[PastTrial]:
    """Trials of random search, every fourth one of which was pruned, then running ones."""
    drawn = sweep(*(parameter.model_dump(by_alias=True, exclude_none=True) for parameter in spec.parameters))
    trials = []
    for number in range(1, ended + running + 1):
        assignment = suggestion(drawn, 1, [], number)
        if number > ended:
            trials.append(PastTrial(number, TrialState.RUNNING, assignment))
            continue
        state = TrialState.SUCCEEDED if number % 4 else TrialState.PRUNED
        reached = value(assignment)
        trials.append(PastTrial(number, state, assignment, reached, ((10 * number, reached),)))
    return trials


def loss(assignment: Mapping[str, str]) -> float:
    """What trainings with the parameters `TRAINING` end at."""
    return abs(float(assignment["lr"]) - 0.003) + 0.01 * abs(int(assignment["layers"]) - 5)
