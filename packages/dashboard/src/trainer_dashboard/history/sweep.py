"""What is kept of an OptimizationJob in one row, so that a list reads nothing else, and what is said of its end."""

from __future__ import annotations

from typing import Any, Final

from trainer.api.optimization import condition_of, in_words
from trainer.kube.objects import Object, mapping_at, metadata_of
from trainer_dashboard.history.training import bounded, seconds
from trainer_dashboard.history.trial import assignment_in
from trainer_dashboard.sweep.rows import row_of

COMPLETE: Final = "Complete"
_MESSAGE: Final = 1024
_GREATEST: Final = 2**31 - 1
_NUMBERS: Final = ("running", "succeeded", "failed", "pruned")


def sweep_row_of(sweep: Object) -> dict[str, Any]:
    """The columns of an OptimizationJob, without its content."""
    row = row_of(sweep)
    state = row["state"]
    condition = condition_of(sweep, state)
    counts, best = row["counts"] or {}, row["best"] or {}
    created = seconds(metadata_of(sweep).get("creationTimestamp")) or 0.0
    return {
        **{name: bounded(row[name]) for name in ("uid", "namespace", "name", "state")},
        "created": created,
        "started": seconds(row["started"]) or created,
        "ended": seconds(row["ended"]),
        "reason": bounded(condition.get("reason")),
        "message": bounded(condition.get("message"), _MESSAGE),
        **{name: bounded(row[name]) for name in ("metric", "direction", "algorithm")},
        "trials": _number(row["numTrials"]),
        **{name: _number(counts.get(name)) for name in _NUMBERS},
        "best": bounded(best.get("trainJob")),
        "value": bounded(best.get("value")),
    }


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
