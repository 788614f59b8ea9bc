"""Sweeps of the history on the command line."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import Connection

from packages.dashboard.tests.commands.test_history import run
from packages.dashboard.tests.sweeps import condition, record, sweep, trial
from trainer.kube.cache.cached_object import CachedObject
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.records import Training, prepared, save_trainings
from trainer_dashboard.history.sweep_records import prepared_sweep, save_sweeps

VALUES = {1: ("0.1", "2", "adamw"), 2: ("0.01", "4", "sgd")}
END = "2026-01-01T00:10:00Z"


def fill(connection: Connection) -> None:
    ended = {"type": "Complete", "status": "True", "reason": "MaxTrialsReached", "message": "3 trials"}
    status: dict[str, Any] = {
        "conditions": [ended | {"lastTransitionTime": END}],
        "trialCounts": {"running": 0, "succeeded": 2, "failed": 0, "pruned": 1},
        "trials": [
            record(1, VALUES[1], value="0.5"),
            record(2, VALUES[2], value="0.25", step=9),
            record(3, ("1e-3", "8", "sgd"), "Pruned", value="0.9", step=3, message="worse\x1b[31m than the median"),
        ],
        "result": {"trainJobName": "digits-trial-2", "value": "0.25"},
    }
    done = sweep(namespace="team", spec={"numTrials": 3}, **status)
    running = sweep("later", namespace="vision")
    running["metadata"]["creationTimestamp"] = END
    sweeps = [prepared_sweep(CachedObject.of(obj), None, None) for obj in (done, running)]
    save_sweeps(connection, sweeps, cluster="cluster", now=0)
    names = ("lr", "layers", "optimizer")
    start = "2026-01-01T00:01:00Z"
    jobs = [
        trial(number, dict(zip(names, values, strict=True)), [(9, 0.5 / number)], of=done, startTime=start)
        for number, values in VALUES.items()
    ]
    trainings = [prepared(Training(CachedObject.of(job), None, None, "me", 1767229200.0)) for job in jobs]
    save_trainings(connection, trainings, cluster="cluster", now=0)


@pytest.fixture(autouse=True)
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has recorded two sweeps, and has no cluster."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    database = Database(f"sqlite:///{tmp_path}/trainer/history.db")
    database.migrate()
    database.write(fill)
    database.close()


HEAD = ["UID", "NAMESPACE", "NAME", "STATE", "TRIALS", "FAILED", "PRUNED", "BEST", "ALGORITHM", "CREATED (UTC)", "TOOK"]
LATER = ["uid-of-l", "vision", "later", "Submitted", "20", "tpe", "2026-01-01 00:10"]
DIGITS = [
    *("uid-of-d", "team", "digits", "Complete", "3/3", "0", "1", "trial-2 val_loss=0.25", "tpe"),
    *("2026-01-01 00:00", "10m"),
]


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        pytest.param("", [LATER, DIGITS], id="all"),
        pytest.param("--limit 2 -n team", [DIGITS], id="namespace"),
        pytest.param("--state Complete", [DIGITS], id="state"),
    ],
)
def test_list(arguments: str, rows: list[list[str]]) -> None:
    """Sweeps are listed, the newest first, with the best trial of each."""
    result = run("history", "sweeps", *arguments.split())
    assert result.exit_code == 0, result.stderr
    assert [re.split(r"  +", line) for line in result.stdout.splitlines()] == [HEAD, *rows]


@pytest.mark.parametrize("arguments", ["digits", "team/digits", "digits -n team"])
def test_one(arguments: str) -> None:
    """A sweep is shown with its trials, also those whose TrainJobs nobody has seen."""
    result = run("history", "sweeps", *arguments.split())
    assert result.exit_code == 0, result.stderr
    trials = result.stdout.rpartition("\n\n")[2].splitlines()
    assert [line.split() for line in trials] == [
        ["TRIAL", "STATE", "VAL_LOSS", "STEP", "PARAMETERS", "TOOK", "MESSAGE"],
        ["1", "Succeeded", "0.5", "9", "lr=0.1,", "layers=2,", "optimizer=adamw", "59m"],
        ["2*", "Succeeded", "0.25", "9", "lr=0.01,", "layers=4,", "optimizer=sgd", "59m"],
        ["3", "Pruned", "0.9", "3", "1e-3,", "8,", "sgd", "worse\\x1b[31m", "than", "the", "median"],
    ]


def test_time_of_a_pruned_trial(tmp_path: Path) -> None:
    """A pruned trial took until it was suspended, however long its TrainJob stayed."""
    of = sweep("hopeless", namespace="team", trials=[record(1, VALUES[1], "Pruned", value="0.9")])
    suspended = condition("Suspended") | {"lastTransitionTime": "2026-01-01T00:03:00Z"}
    job = trial(1, {"lr": "0.1"}, of=of, pruned="worse", startTime="2026-01-01T00:01:00Z", conditions=[suspended])

    def fill_more(connection: Connection) -> None:
        save_sweeps(connection, [prepared_sweep(CachedObject.of(of), None, None)], cluster="cluster", now=0)
        gone = Training(CachedObject.of(job), None, None, "me", 1767229200.0)
        save_trainings(connection, [prepared(gone)], cluster="cluster", now=0)

    database = Database(f"sqlite:///{tmp_path}/trainer/history.db")
    database.write(fill_more)
    database.close()
    trials = run("history", "sweeps", "hopeless").stdout.rpartition("\n\n")[2].splitlines()
    assert trials[1].split()[-1] == "2m"


def test_formats() -> None:
    """JSON has the row and the trials, and YAML the OptimizationJob."""
    found = json.loads(run("history", "sweeps", "digits", "-o", "json").stdout)
    assert found["best"] == {"trainJob": "digits-trial-2", "value": "0.25"}
    assert [each["points"] for each in found["trials"]] == [[[9, 0.5]], [[9, 0.25]], []]
    assert [each["name"] for each in json.loads(run("history", "sweeps", "-o", "json").stdout)] == ["later", "digits"]
    assert yaml.safe_load(run("history", "sweeps", "digits", "-o", "yaml").stdout)["spec"]["numTrials"] == 3
    assert len(list(yaml.safe_load_all(run("history", "sweeps", "-o", "yaml").stdout))) == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param("other", "the history has no sweep other: trainer history sweeps lists them", id="name"),
        pytest.param("digits -n vision", "the history has no sweep vision/digits", id="namespace"),
        pytest.param("--state Failed", "the history has no such sweep", id="none of a list"),
        pytest.param("--limit 1", "there are more: --limit 10", id="more"),
    ],
)
def test_notes(arguments: str, complaint: str) -> None:
    """What is not there is said, with the remedy."""
    assert complaint in run("history", "sweeps", *arguments.split()).stderr


def test_trials() -> None:
    """Trials are trainings: listed by their sweep, shown with number and parameters, compared and exported by them."""
    listed = json.loads(run("history", "list", "--sweep", "digits", "-o", "json").stdout)
    assert {(each["name"], each["sweep"], each["trial"], each["parameters"]["lr"]) for each in listed} == {
        ("digits-trial-1", "digits", 1, "0.1"),
        ("digits-trial-2", "digits", 2, "0.01"),
    }
    details = run("history", "show", "digits-trial-2").stdout
    assert "Sweep         digits, trial 2\nParameters    lr=0.01, layers=4, optimizer=sgd\n" in details
    compared = json.loads(run("compare", "digits-trial-1", "digits-trial-2", "-o", "json").stdout)
    assert {each["field"]: (each["left"], each["right"]) for each in compared["parameters"]} == {
        "lr": ("0.1", "0.01"),
        "layers": ("2", "4"),
        "optimizer": ("adamw", "sgd"),
    }
    rows = list(csv.DictReader(io.StringIO(run("history", "export").stdout)))
    assert {(row["sweep"], row["trial"], json.loads(row["parameters"])["optimizer"]) for row in rows} == {
        ("digits", "1", "adamw"),
        ("digits", "2", "sgd"),
    }
