"""What is shown of a sweep."""

from __future__ import annotations

from typing import Any

import pytest

from packages.dashboard.tests.sweeps import condition, sweep
from trainer_dashboard.sweep.rows import page_of, row_of


@pytest.mark.parametrize(
    ("status", "state", "message"),
    [
        pytest.param({}, "Submitted", "", id="untouched"),
        pytest.param({"state": "Running", "conditions": [condition("Created")]}, "Running", "", id="stated"),
        pytest.param({"conditions": [condition("Created")]}, "Running", "", id="by-condition"),
        pytest.param(
            {"conditions": [condition("Created", "False", message="no gp")]}, "Blocked", "no gp", id="blocked"
        ),
        pytest.param(
            {"conditions": [condition("Created"), condition("Suspended", message="by its spec")]},
            "Suspended",
            "by its spec",
            id="suspended",
        ),
        pytest.param(
            {"conditions": [condition("Failed", message="too many have failed")]},
            "Failed",
            "too many have failed",
            id="failed",
        ),
    ],
)
def test_state(status: dict[str, Any], state: str, message: str) -> None:
    """The state is that of the status, or of its conditions, also where a CRD keeps the conditions alone."""
    row = row_of(sweep(**status))
    assert (row["state"], row["message"]) == (state, message)


def test_row() -> None:
    """The list has counts, progress, objective and the best trial with its number."""
    parameters = [{"name": "lr", "value": "0.01"}]
    row = row_of(
        sweep(
            state="Complete",
            progressPercentage=100,
            trialCounts={"succeeded": 15, "pruned": 5},
            result={"trainJobName": "digits-trial-7", "value": "0.031", "parameters": parameters},
            conditions=[condition("Complete")],
        )
    )
    assert row["counts"] == {"running": 0, "succeeded": 15, "failed": 0, "pruned": 5}
    assert row["best"] == {
        "trainJob": "digits-trial-7",
        "number": 7,
        "value": "0.031",
        "parameters": [["lr", "0.01"]],
    }
    shown = ("numTrials", "metric", "direction", "algorithm", "progress", "ended", "parameterCount")
    assert [row[name] for name in shown] == [20, "val_loss", "Minimize", "tpe", 100, "2026-01-01T00:10:00Z", 3]


def test_page() -> None:
    """The page has the space of each parameter, and the settings of the algorithms."""
    page = page_of(sweep())
    assert [(each["name"], each["kind"], each["low"], each["high"]) for each in page["parameters"]] == [
        ("lr", "logUniform", 1e-5, 0.1),
        ("layers", "uniform", 1.0, 8.0),
        ("optimizer", "categorical", None, None),
    ]
    assert [page["parameters"][1]["isInteger"], page["parameters"][2]["choices"]] == [True, ["adamw", "sgd"]]
    settings = (page["settings"], page["pruning"], page["pruningSettings"])
    assert settings == ([("seed", "7")], "median", [("startupTrials", "3")])
    assert (page["aggregate"], page["parallelTrials"], page["maxFailedTrials"]) == ("Min", 4, None)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"objectives": None, "parameters": None, "searchAlgorithm": None}, id="nothing"),
        pytest.param({"objectives": ["x"], "parameters": [{"searchSpace": 3}, 5], "numTrials": "x"}, id="wrong"),
        pytest.param(
            {"parameters": [{"name": "p" * 900, "searchSpace": {"uniform": {"min": "nan"}}}] * 300}, id="many"
        ),
    ],
)
def test_lenient(spec: dict[str, Any]) -> None:
    """What a CRD of others has let in is shown without what cannot be read, and within bounds."""
    page = page_of(sweep(spec=spec, state=5, trialCounts="x", result={"trainJobName": "other-1"}))
    assert len(page["parameters"]) <= 100
    assert all(len(each["name"]) <= 64 and each["low"] is None for each in page["parameters"])
