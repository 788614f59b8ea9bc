"""What is kept of an OptimizationJob in one row, so that a list reads nothing else, and what is said of its end.

What upstream's CRD of v1alpha1 does not keep of a status follows from its conditions where it can, and else is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trainer.kube.objects import (
    Object,
    find_condition,
    is_condition_true,
    mapping_at,
    metadata_of,
    name_of,
    namespace_of,
    objects_in,
    uid_of,
)
from trainer_dashboard.history.training import bounded, seconds
from trainer_dashboard.history.trial import assignment_in, in_words

COMPLETE: Final = "Complete"
ENDS: Final = (COMPLETE, "Failed")
"""States of sweeps that have ended, and the conditions that say so."""
_MESSAGE: Final = 1024
_GREATEST: Final = 2**31 - 1
_ALGORITHMS: Final = ("random", "grid", "tpe", "gp", "cmaEs")


def sweep_row_of(sweep: Object) -> dict[str, Any]:
    """The columns of an OptimizationJob, without its content."""
    spec, status = mapping_at(sweep, "spec"), mapping_at(sweep, "status")
    state = sweep_state(sweep)
    condition = find_condition(sweep, "Created" if state == "Blocked" else state) or {}
    objective = next(iter(objects_in(spec.get("objectives"))), {})
    algorithm = mapping_at(spec, "searchAlgorithm")
    counts, result = mapping_at(status, "trialCounts"), mapping_at(status, "result")
    created = seconds(metadata_of(sweep).get("creationTimestamp")) or 0.0
    ended = status.get("completionTime") or (condition.get("lastTransitionTime") if state in ENDS else None)
    return {
        "uid": uid_of(sweep),
        "namespace": namespace_of(sweep),
        "name": name_of(sweep),
        "created": created,
        "started": seconds(status.get("startTime")) or created,
        "ended": seconds(ended),
        "state": bounded(state),
        "reason": bounded(condition.get("reason")),
        "message": bounded(condition.get("message"), _MESSAGE),
        "metric": bounded(objective.get("metric")),
        "direction": bounded(objective.get("direction") or "Minimize"),
        "algorithm": next((name for name in _ALGORITHMS if name in algorithm), "random"),
        "trials": _number(spec.get("numTrials", 1)),
        **{name: _number(counts.get(name)) for name in ("running", "succeeded", "failed", "pruned")},
        "best": bounded(result.get("trainJobName")),
        "value": bounded(result.get("value")),
    }


def sweep_state(sweep: Mapping[str, Any]) -> str:
    """How it ended, else its state; Running where nothing says one."""
    if ended := next((each for each in ENDS if is_condition_true(sweep, each)), ""):
        return ended
    if said := mapping_at(sweep, "status").get("state"):
        return str(said)
    if is_condition_true(sweep, "Suspended"):
        return "Suspended"
    return "Blocked" if (find_condition(sweep, "Created") or {}).get("status") == "False" else "Running"


def text_about_sweep(sweep: Object) -> str:
    """What a notification says of the end of a sweep: how it ended, and the best trial with its parameters."""
    row = sweep_row_of(sweep)
    subject = f"OptimizationJob {row['namespace']}/{row['name']}"
    why = ": ".join(filter(None, (row["reason"], row["message"])))
    said = f"{subject} is complete" if row["state"] == COMPLETE else f"{subject} has failed: {why}"
    lines = [said]
    if row["best"]:
        assignment = assignment_in(mapping_at(sweep, "status", "result").get("parameters"))
        value = f" with {row['metric']} {row['value']}" if row["value"] else ""
        lines.append(f"the best trial is {row['best']}{value}" + (f" ({in_words(assignment)})" if assignment else ""))
    return "\n".join([*lines, f"trainer get sweep {row['name']} -n {row['namespace']}"])


def _number(value: object) -> int | None:
    return min(max(value, 0), _GREATEST) if isinstance(value, int) else None
