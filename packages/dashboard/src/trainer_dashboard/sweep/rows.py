"""What the dashboard shows of an OptimizationJob: a row of the list, and the search on its page.

It is read leniently, by the names of fields alone: a CRD of others may lack some of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from trainer.api.metric_curve import number_of
from trainer.api.optimization import LONGEST_TEXT, MOST_CHOICES, MOST_PARAMETERS, condition_of, state_of, trial_number
from trainer.framework.status.status import UNTOUCHED
from trainer.kube.objects import (
    Object,
    is_being_deleted,
    mapping_at,
    metadata_of,
    name_of,
    namespace_of,
    objects_in,
    resource_version_of,
    uid_of,
)

_LONGEST_MESSAGE: Final = 300
_ENDS: Final = ("Complete", "Failed")
_COUNTS: Final = ("running", "succeeded", "failed", "pruned")


def row_of(sweep: Object) -> Object:
    """A sweep in the list."""
    spec, status = mapping_at(sweep, "spec"), mapping_at(sweep, "status")
    state = (state_of(sweep) or UNTOUCHED)[:LONGEST_TEXT]
    objective = objective_of(spec)
    return {
        "uid": uid_of(sweep),
        "namespace": namespace_of(sweep),
        "name": name_of(sweep),
        "state": state,
        "message": str(condition_of(sweep, state).get("message") or "")[:_LONGEST_MESSAGE],
        "progress": _count(status.get("progressPercentage")),
        "counts": {name: _count(mapping_at(status, "trialCounts").get(name)) or 0 for name in _COUNTS}
        if status.get("trialCounts")
        else None,
        "numTrials": _count(spec.get("numTrials")) or 1,
        "metric": objective["metric"],
        "direction": objective["direction"],
        "best": _best(sweep),
        "algorithm": _only(mapping_at(spec, "searchAlgorithm")) or "random",
        "parameterCount": len(objects_in(spec.get("parameters"))),
        "created": metadata_of(sweep).get("creationTimestamp"),
        "started": status.get("startTime"),
        "ended": _ended(sweep, state),
        "isSuspended": spec.get("suspend") is True,
        "isDeleted": is_being_deleted(sweep),
    }


def page_of(sweep: Object) -> Object:
    """A sweep on its page, without its trials."""
    spec = mapping_at(sweep, "spec")
    algorithm, pruning = mapping_at(spec, "searchAlgorithm"), mapping_at(spec, "pruneAlgorithm")
    return row_of(sweep) | {
        "resourceVersion": resource_version_of(sweep),
        "aggregate": objective_of(spec)["aggregate"],
        "settings": _settings(mapping_at(algorithm, _only(algorithm) or "random")),
        "pruning": _only(pruning),
        "pruningSettings": _settings(mapping_at(pruning, _only(pruning) or "")),
        "parallelTrials": _count(spec.get("parallelTrials")) or 1,
        "maxFailedTrials": _count(spec.get("maxFailedTrials")),
        "parameters": [_parameter(each) for each in parameters_of(spec)],
        "conditions": objects_in(mapping_at(sweep, "status").get("conditions")),
    }


def objective_of(spec: Object) -> dict[str, str]:
    """The metric that is optimized, its direction, and how one value is made of a curve; with their defaults."""
    objective = next(iter(objects_in(spec.get("objectives"))), {})
    return {
        "metric": _text(objective.get("metric")),
        "direction": "Maximize" if objective.get("direction") == "Maximize" else "Minimize",
        "aggregate": str(objective.get("aggregate")) if objective.get("aggregate") in {"Min", "Max"} else "Last",
    }


def parameters_of(spec: Object) -> list[Object]:
    """The parameters that are shown, in their order."""
    return objects_in(spec.get("parameters"))[:MOST_PARAMETERS]


def finite(text: object) -> float | None:
    """The number of a text; None where it is none that can be shown."""
    number = number_of(text) if isinstance(text, str) else math.nan
    return number if math.isfinite(number) else None


def _parameter(parameter: Object) -> Object:
    space = mapping_at(parameter, "searchSpace")
    kind = next((each for each in ("uniform", "logUniform", "categorical") if space.get(each)), "")
    values = mapping_at(space, kind)
    choices = values.get("choices")
    return {
        "name": _text(parameter.get("name")),
        "kind": kind,
        "isInteger": values.get("type") == "Int",
        "low": finite(values.get("min")),
        "high": finite(values.get("max")),
        "choices": [_text(each) for each in choices[:MOST_CHOICES]] if isinstance(choices, list) else [],
    }


def _ended(sweep: Object, state: str) -> str | None:
    if state not in _ENDS:
        return None
    ended = mapping_at(sweep, "status").get("completionTime")
    return ended or condition_of(sweep, state).get("lastTransitionTime")


def _best(sweep: Object) -> Object | None:
    result = mapping_at(sweep, "status", "result")
    job = str(result.get("trainJobName") or "")
    if not job:
        return None
    return {
        "trainJob": job,
        "number": trial_number(job, name_of(sweep)),
        "value": _text(result.get("value")),
        "parameters": [[_text(each.get("name")), _text(each.get("value"))] for each in parameters_of(result)],
    }


def _settings(algorithm: Mapping[str, object]) -> list[tuple[str, str]]:
    """What is set of an algorithm, as pairs of texts."""
    return [(_text(name), _text(value)) for name, value in list(algorithm.items())[:10]]


def _only(choice: Mapping[str, object]) -> str:
    """The name of the one field that is set; "" for none."""
    return _text(next((name for name, value in choice.items() if value is not None), ""))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str:
    return "" if value is None else str(value)[:LONGEST_TEXT]
