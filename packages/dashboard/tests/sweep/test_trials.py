"""The trials of a sweep, by its status and by the TrainJobs that there are."""

from __future__ import annotations

from typing import Any

import pytest

from packages.dashboard.tests.sweeps import condition, record, sweep, trial
from trainer.api.metric_curve import CURVE, MetricCurve, Point
from trainer.api.optimization import ASSIGNMENT, TRIAL_LABEL
from trainer.kube.objects import Object
from trainer_dashboard.sweep.importance import importance_of
from trainer_dashboard.sweep.trials import ended_trials, membership_of, trial_of, trials_of

ASSIGNED = {"lr": "0.01", "layers": "3", "optimizer": "sgd"}
VALUES = ["0.01", "3", "sgd"]
POINTS = [(1, 0.9), (2, 0.4), (3, 0.6)]


def shown(of: Object, *jobs: Object) -> list[Object]:
    """The trials on the page."""
    present = [trial_of(of["spec"], job) for job in jobs]
    return trials_of(of, [each for each in present if each is not None])


@pytest.mark.parametrize(
    ("job", "state", "value"),
    [
        pytest.param({"points": POINTS, "state": "Running"}, "Running", 0.4, id="running"),
        pytest.param({"points": POINTS, "is_final": True, "state": "Complete"}, "Succeeded", 0.4, id="succeeded"),
        pytest.param({"state": "Complete"}, "Running", None, id="ended-but-not-read"),
        pytest.param({"state": "Complete", "is_final": True}, "Failed", None, id="no-value"),
        pytest.param({"points": POINTS, "state": "Failed"}, "Failed", None, id="failed"),
        pytest.param({"points": POINTS, "state": "Suspended", "pruned": "worse"}, "Pruned", 0.6, id="pruned"),
        pytest.param(
            {"state": "Complete", "trainerStatus": {"evalMetrics": {"val_loss": "0.5"}}},
            "Succeeded",
            0.5,
            id="no-curve",
        ),
        pytest.param({"points": POINTS, "metric": "accuracy", "state": "Running"}, "Running", None, id="other-metric"),
    ],
)
def test_state_of_a_train_job(job: dict[str, Any], state: str, value: float | None) -> None:
    """A trial that the status does not record yet is judged as the sweep will judge it."""
    of = sweep()
    (found,) = shown(of, trial(4, ASSIGNED, job.pop("points", ()), of=of, **job))
    assert (found["number"], found["state"], found["value"], found["parameters"]) == (4, state, value, VALUES)


def test_copied_curve() -> None:
    """The curve in the annotations of a copied TrainJob is that of the other one."""
    of = sweep()
    job = trial(4, ASSIGNED, POINTS, of=of, state="Running")
    job["metadata"]["annotations"][CURVE] = MetricCurve("val_loss", (Point(1, "0.1"),)).to_text("of-another")
    assert [each["points"] for each in shown(of, job)] == [[]]


def test_recorded() -> None:
    """A trial that has ended is as the status says; its TrainJob, if there is one, adds times and the curve."""
    pruned = record(2, VALUES, "Pruned", value="0.9", step=2, message="worse than the median")
    of = sweep(trials=[record(1, VALUES, value="0.25", step=9), pruned])
    job = trial(1, ASSIGNED, POINTS, of=of, state="Complete", startTime="2026-01-01T00:01:00Z")
    job["status"]["conditions"] = [condition("Complete")]
    first, second = shown(of, job)
    assert (first["value"], first["valueText"], first["step"], first["isThere"]) == (0.25, "0.25", 9, True)
    assert (first["started"], first["ended"]) == ("2026-01-01T00:01:00Z", "2026-01-01T00:10:00Z")
    assert first["points"] == [list(point) for point in POINTS]
    assert (second["name"], second["isThere"], second["state"]) == ("digits-trial-2", False, "Pruned")
    assert (second["value"], second["step"], second["message"]) == (0.9, 2, "worse than the median")


def test_pruned_train_job() -> None:
    """A pruned trial says why, and ended when it was suspended."""
    of = sweep()
    job = trial(3, ASSIGNED, POINTS, of=of, pruned="0.6 at step 3: worse than the median 0.5", state="Suspended")
    job["status"]["conditions"] = [condition("Suspended")]
    (found,) = shown(of, job)
    assert (found["message"], found["ended"]) == ("0.6 at step 3: worse than the median 0.5", "2026-01-01T00:10:00Z")


def test_ended_trials() -> None:
    """Where a CRD does not keep them in the status, they are those of the TrainJobs."""
    of = sweep()
    trials = shown(
        of,
        trial(1, ASSIGNED, POINTS, of=of, is_final=True, state="Complete"),
        trial(2, ASSIGNED, POINTS, of=of, state="Running"),
    )
    assert ended_trials(of, trials) == [record(1, VALUES, value="0.4")]
    recorded = [record(9, VALUES, value="1")]
    assert ended_trials(sweep(trials=recorded), trials) == recorded


@pytest.mark.parametrize(
    ("label", "assignment", "expected"),
    [
        pytest.param("7", '[{"name": "lr", "value": "0.1"}]', (7, [("lr", "0.1")]), id="usual"),
        pytest.param("7", "{", (7, []), id="unreadable"),
        pytest.param("7", "[" * 70_000, (7, []), id="long"),
        pytest.param("x", "[]", None, id="no-number"),
        pytest.param("99999", "[]", None, id="large"),
    ],
)
def test_membership(label: str, assignment: str, expected: tuple[int, list[tuple[str, str]]] | None) -> None:
    """The page of a TrainJob says which trial of which sweep it is."""
    job = trial(1, {}, of=sweep())
    job["metadata"]["labels"][TRIAL_LABEL] = label
    job["metadata"]["annotations"][ASSIGNMENT] = assignment
    found = membership_of(job)
    assert (found and (found["number"], found["parameters"])) == expected


def test_bounds() -> None:
    """At most 100 trials of 100 parameters are shown, whatever there is."""
    parameters = [{"name": f"p{number}"} for number in range(300)]
    of = sweep(parameters=parameters, trials=[record(number, ["1"] * 300) for number in range(300)])
    trials = shown(of, *(trial(number, {}, of=of) for number in range(300)))
    assert (len(trials), {len(each["parameters"]) for each in trials}) == (100, {100})


@pytest.mark.parametrize(
    "trials",
    [
        pytest.param("x", id="no-list"),
        pytest.param([3, {"number": "1"}, {}], id="no-trials"),
        pytest.param([{"number": 1, "parameterValues": 5, "value": 3, "step": "x", "state": None}], id="no-values"),
    ],
)
def test_lenient(trials: Any) -> None:
    """What a CRD of others has let in is shown without what cannot be read."""
    of = sweep(trials=trials)
    found = shown(of)
    assert all(each["parameters"] == [None] * 3 and each["step"] is None for each in found)
    assert importance_of(of["spec"], ended_trials(of, found))["of"] == {}
