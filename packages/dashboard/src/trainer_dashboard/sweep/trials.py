"""The trials of a sweep: those of its status, which have ended, and the TrainJobs that there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from trainer.api.metric_curve import MetricCurve
from trainer.api.optimization import (
    LONGEST_TEXT,
    MOST_TRIALS,
    PRUNED,
    SWEEP_LABEL,
    TRIAL_LABEL,
    assignment_of,
    trial_name,
    value_of,
)
from trainer.api.trainjob_status import State
from trainer.kube.objects import (
    Object,
    annotations_of,
    find_condition,
    labels_of,
    mapping_at,
    name_of,
    objects_in,
    uid_of,
)
from trainer.view.row import TrainJobRow
from trainer_dashboard.sweep.rows import finite, objective_of, parameters_of

_LONGEST_MESSAGE: Final = 512
_RUNNING, _SUCCEEDED, _FAILED, _PRUNED = "Running", "Succeeded", "Failed", "Pruned"


def trials_of(sweep: Object, present: Iterable[Object]) -> list[Object]:
    """The trials by number, 100 at most.

    Those that the status records are as it says; times, curve and the rest come from the TrainJob where there is one.

    Args:
        sweep: the OptimizationJob.
        present: what `trial_of` makes of the TrainJobs that it controls, or of those that a history has kept.
    """
    count = len(parameters_of(mapping_at(sweep, "spec")))
    found = {each["number"]: each for each in present}
    for record in objects_in(mapping_at(sweep, "status").get("trials"))[:MOST_TRIALS]:
        number = record.get("number")
        if isinstance(number, int):
            found[number] = _recorded(record, found.get(number), trial_name(name_of(sweep), number), count)
    return [found[number] for number in sorted(found)[:MOST_TRIALS]]


def ended_trials(sweep: Object, trials: Sequence[Object]) -> list[Object]:
    """Those that have ended, as `status.trials` has them, also where the CRD has no such field."""
    recorded = objects_in(mapping_at(sweep, "status").get("trials"))[:MOST_TRIALS]
    return recorded or [
        {
            "number": each["number"],
            "state": each["state"],
            "parameterValues": [value or "" for value in each["parameters"]],
        }
        | ({"value": each["valueText"]} if each["valueText"] else {})
        for each in trials
        if each["state"] != _RUNNING
    ]


def membership_of(job: Object) -> Object | None:
    """The sweep that a TrainJob is a trial of, with its parameters; None for any other TrainJob."""
    number, sweep = number_of_trial(job), labels_of(job).get(SWEEP_LABEL)
    if number is None or not sweep:
        return None
    return {
        "sweep": sweep,
        "number": number,
        "parameters": list(assignment_of(annotations_of(job)).items()),
        "pruned": annotations_of(job).get(PRUNED, "")[:_LONGEST_MESSAGE],
    }


def number_of_trial(job: Object) -> int | None:
    """The number of a trial; None for any other TrainJob."""
    text = labels_of(job).get(TRIAL_LABEL, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else None


def trial_of(spec: Object, job: Object) -> Object | None:
    """A trial by its TrainJob, which is converted to v2alpha1; None where it says no number.

    Args:
        spec: of its OptimizationJob.
        job: the TrainJob.
    """
    number = number_of_trial(job)
    if number is None:
        return None
    annotations = annotations_of(job)
    row, assignment, objective = TrainJobRow.of(job), assignment_of(annotations), objective_of(spec)
    curve = MetricCurve.of(annotations, objective["metric"], uid_of(job))
    points = curve.points
    text = (value_of(job, curve, objective["aggregate"]) or "")[:LONGEST_TEXT]
    pruned = annotations.get(PRUNED)
    state, message = _RUNNING, ""
    if pruned is not None:
        state, message = _PRUNED, pruned
        text = points[-1].value if points else text
    elif row.state == State.FAILED:
        state, message = _FAILED, row.message
    elif row.state == State.COMPLETE and finite(text) is not None:
        state = _SUCCEEDED
    elif row.state == State.COMPLETE and curve.is_final:
        state, message = _FAILED, f"it has reported no {objective['metric']}"
    suspended = find_condition(job, "Suspended") if pruned is not None else None
    return {
        "number": number,
        "name": row.name,
        "uid": uid_of(job),
        "isThere": True,
        "state": state,
        "phase": row.state,
        "valueText": text if state != _FAILED else "",
        "value": finite(text) if state != _FAILED else None,
        "step": points[-1].step if points else mapping_at(job, "status", "trainerStatus").get("currentStep"),
        "progress": row.progress.percentage,
        "parameters": [assignment.get(str(each.get("name") or "")) for each in parameters_of(spec)],
        "started": row.started,
        "ended": row.ended or (suspended or {}).get("lastTransitionTime"),
        "message": message[:_LONGEST_MESSAGE],
        "points": [[each.step, finite(each.value)] for each in points],
    }


def _recorded(record: Object, live: Object | None, name: str, count: int) -> Object:
    """A trial that the status records, with what its TrainJob says beside that."""
    gone = {
        "name": name,
        "uid": "",
        "isThere": False,
        "phase": "",
        "progress": None,
        "started": None,
        "ended": None,
        "points": [],
    }
    given = record.get("parameterValues")
    values = [str(each)[:LONGEST_TEXT] for each in given] if isinstance(given, list) else []
    text = str(record.get("value") or "")[:LONGEST_TEXT]
    known = live or gone
    step = record.get("step")
    return known | {
        "number": record["number"],
        "state": str(record.get("state") or "")[:LONGEST_TEXT],
        "valueText": text,
        "value": finite(text),
        "step": step if isinstance(step, int) else known.get("step"),
        "parameters": [values[index] if index < len(values) else None for index in range(count)],
        "message": str(record.get("message") or "")[:_LONGEST_MESSAGE],
    }
