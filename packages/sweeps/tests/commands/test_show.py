"""`trainer sweeps` and `trainer get sweep`, and `trainer explain sweep`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from packages.sweeps.tests.commands.samples import condition, ended, sweep, trial
from trainer.api.optimization import TRIAL_LABEL
from trainer.cli.app import app
from trainer.kube.objects import Object
from trainer_kube_testing import FakeClient

pytestmark = pytest.mark.usefixtures("cluster")
RESULT: Object = {
    "state": "Running",
    "progressPercentage": 75,
    "conditions": [condition("Created", "TrainJobsCreated", "Trials are chosen and created")],
    "trialCounts": {"running": 1, "succeeded": 2, "failed": 1, "pruned": 0},
    "result": {"trainJobName": "digits-trial-2", "value": "0.25"},
    "trials": [ended(1), ended(2, value="0.25"), ended(3, "Failed", None, "node-0: ValueError: no")],
}


def run(arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_list(served: FakeClient) -> None:
    """A line for each sweep, by what its status says."""
    served.add(sweep(status=RESULT))
    served.add(sweep("new"))
    elsewhere = sweep("others")
    elsewhere["metadata"]["namespace"] = "team"
    served.add(elsewhere)

    header, digits, new = run("sweeps").stdout.splitlines()

    assert header.split() == ["NAME", "STATE", "PROGRESS", "BEST", "TRIALS", "AGE"]
    assert " ".join(digits.split()[:-1]).replace("█", "").replace("▌", "").replace("░", "") == (
        "digits Running  75% loss 0.25 4: 1 running, 2 succeeded, 1 failed"
    )
    assert new.split()[:3] == ["new", "Submitted", "4"]
    everywhere = run("sweeps -A").stdout.splitlines()
    assert [line.split()[0] for line in everywhere] == ["NAMESPACE", "default", "default", "team"]
    assert run("get sweeps").stdout == run("sweeps").stdout
    assert run("sweeps -o wide").stdout.splitlines()[0].split()[-3:-1] == ["TRIAL", "ALGORITHM"]


def test_order(served: FakeClient) -> None:
    """Sweeps that run come first, then the newest."""
    for name, created, state in (("a", "01", "Complete"), ("b", "02", "Failed"), ("c", "01", "Running")):
        made = sweep(name, status={"state": state, "conditions": [condition("Created" if name == "c" else state)]})
        made["metadata"]["creationTimestamp"] = f"2026-01-{created}T00:00:00Z"
        served.add(made)

    assert [line.split()[0] for line in run("sweeps").stdout.splitlines()] == ["NAME", "c", "b", "a"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param("sweeps -o name", "optimizationjob.trainer.kubeflow.org/digits\n", id="names"),
        pytest.param("get sweep digits -o name", "optimizationjob.trainer.kubeflow.org/digits\n", id="name"),
    ],
)
def test_names(served: FakeClient, arguments: str, expected: str) -> None:
    """References are those of kubectl."""
    served.add(sweep())

    assert run(arguments).stdout == expected


def test_objects(served: FakeClient) -> None:
    """JSON and YAML are the objects."""
    served.add(sweep(status=RESULT))

    assert json.loads(run("sweeps -o json").stdout)["items"][0]["status"]["state"] == "Running"
    shown: Any = yaml.safe_load(run("get sweep/digits -o yaml").stdout)
    assert (shown["kind"], shown["metadata"]["name"]) == ("OptimizationJob", "digits")


def test_none() -> None:
    """Where there are none, that is said."""
    assert run("sweeps").stderr == "note: there are no sweeps in namespace default\n"


def test_details(served: FakeClient) -> None:
    """One sweep with its trials, the best one first, its parameters and conditions, and why trials have failed."""
    served.add(sweep(status=RESULT))
    served.add(trial(4, curve=("0.9",), state="Running", trainerStatus={"progressPercentage": 50}))

    lines = run("get sweep digits").stdout.splitlines()

    assert lines[0].startswith("digits  Running  3 of 4 trials")
    assert lines[1:3] == [
        "1 running, 2 succeeded, 1 failed",
        "best  loss 0.25  trial 2  lr 0.002  bs 16",
    ]
    table = lines[4:9]
    assert [line.split()[0] for line in table] == ["TRIAL", "2", "1", "4", "3"]
    assert lines[10:13] == ["Parameters", "  lr  log(1e-4,0.1)", "  bs  choice(16,32)"]
    assert lines[15].startswith("  Created (TrainJobsCreated, ")
    assert "  trial 3: node-0: ValueError: no" in lines
    assert "best: trial 2  loss 0.25" in lines


def explained(served: FakeClient, *objects: Object) -> tuple[int, list[str]]:
    for each in objects:
        served.add(each)
    result = run("explain sweep digits")
    return result.exit_code, [line.strip() for line in result.stdout.splitlines()]


def test_numbers(served: FakeClient) -> None:
    """The number of a trial is that of its name, as for the controller, whatever somebody has made of its label."""
    served.add(sweep(status=RESULT))
    edited = trial(4)
    edited["metadata"]["labels"][TRIAL_LABEL] = "2"
    served.add(edited)

    lines = run("get sweep digits").stdout.splitlines()

    numbers = [line.split()[0] for line in lines[lines.index("") + 2 :][:4]]
    assert sorted(numbers) == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("status", "code", "head", "remedy"),
    [
        pytest.param(
            None,
            3,
            "OptimizationJob digits is waiting: NoController: no controller has handled it",
            "check",
            id="untouched",
        ),
        pytest.param(
            {
                "state": "Blocked",
                "conditions": [condition("Created", "AlgorithmServiceCreationFailed", "gp needs torch", "False")],
            },
            3,
            "OptimizationJob digits is waiting: AlgorithmServiceCreationFailed: gp needs torch",
            "do what the message says",
            id="blocked",
        ),
        pytest.param(
            {"state": "Suspended", "conditions": [condition("Suspended")]},
            3,
            "OptimizationJob digits is waiting: Suspended: it is suspended, and so are its trials",
            "trainer resume sweep/digits -n default",
            id="suspended",
        ),
        pytest.param(
            {"state": "Failed", "conditions": [condition("Failed", "MaxFailedTrialsReached", "2 trials have failed")]},
            4,
            "OptimizationJob digits has failed: MaxFailedTrialsReached: 2 trials have failed",
            "see below why trials have failed",
            id="failed",
        ),
        pytest.param(
            {"state": "Running", "conditions": [condition("Created")]},
            0,
            "OptimizationJob digits is running",
            "",
            id="runs",
        ),
    ],
)
def test_own_causes(served: FakeClient, status: Object | None, code: int, head: str, remedy: str) -> None:
    """What blocks the sweep itself comes first."""
    got, lines = explained(served, sweep(status=status))

    assert (got, lines[0].startswith(head)) == (code, True), lines
    assert not remedy or lines[1].startswith(f"remedy   {remedy}")


def test_trials(served: FakeClient) -> None:
    """Trials that wait and that have failed are explained as TrainJobs, each cause once."""
    failed = condition("Failed", "JobsFailed", "node-0: ValueError: no data")
    waits: dict[str, Any] = {"state": "Suspended"}
    status = RESULT | {
        "trials": [ended(1, "Pruned", "0.9", "hopeless"), ended(2, "Failed", None, "node-0: ValueError")]
    }
    three, four = trial(3, **waits), trial(4, **waits)
    for each in (three, four):
        each["spec"] = each["spec"] | {"suspend": True}

    code, lines = explained(served, sweep(status=status), trial(2, failed, state="Failed"), three, four)

    assert code == 3
    assert lines[0].startswith("OptimizationJob digits is waiting: Suspended: trials 3, 4 wait: ")
    assert any(line.startswith("also: JobsFailed: trial 2 has failed: ") for line in lines), lines
    assert "note     1 was pruned: stopped as hopeless, with what they had reported" in lines
    assert "note     2 of 4 trials have ended" in lines


def test_a_trial_without_a_value(served: FakeClient) -> None:
    """A trial without its metric is a failure with its own remedy; one whose log is not read yet waits."""
    said = "it is complete and has not reported the metric loss"
    status = RESULT | {"trials": [ended(1, "Failed", None, said)]}
    late = trial(2, condition("Complete") | {"lastTransitionTime": "2999-01-01T00:00:00Z"}, state="Complete")

    _, lines = explained(served, sweep(status=status), trial(1, condition("Complete"), state="Complete"), late)

    assert lines[0].startswith(f"OptimizationJob digits is running: TrialFailed: trial 1 has failed: {said}")
    assert lines[1].startswith("remedy   look into its log and metrics; the metric must be reported")
    assert any("trial 2 has ended, and its loss is awaited until its log is read" in line for line in lines)


def test_commands_reach_the_same_cluster(served: FakeClient, tmp_path: Path) -> None:
    """What is proposed has the options that lead to the cluster, behind the name."""
    served.add(sweep(status={"state": "Suspended", "conditions": [condition("Suspended")]}))
    file = tmp_path / "kubeconfig"
    file.write_text("{}")

    shown = run(f"explain sweep/digits --kubeconfig {file}").stdout

    assert f"remedy   trainer resume sweep/digits -n default --kubeconfig {file}\n" in shown
