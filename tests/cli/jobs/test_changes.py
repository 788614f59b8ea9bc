"""`trainer delete`, `suspend` and `resume`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tests.cli.conftest import finished, train_job
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.app import app
from trainer.explain.suspension import JOB_UID, WORKLOADS
from trainer.kube.objects import name_of, uid_of
from trainer_kube_testing import FakeClient

LATER = "2999-01-01T00:00:00Z"
NAMED = "trainjob.trainer.kubeflow.org/"


def jobs(served: FakeClient) -> dict[str, bool]:
    """The TrainJobs, and whether they are suspended."""
    return {name_of(job): bool(job["spec"].get("suspend")) for job in served.objects(TRAIN_JOBS)}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("arguments", "lines", "left"),
    [
        pytest.param("delete a", ["a deleted"], {"b": True}, id="delete"),
        pytest.param("delete a b a", ["a deleted", "b deleted"], {}, id="delete several"),
        pytest.param("suspend a b", ["a suspended"], {"a": True, "b": True}, id="one is suspended already"),
        pytest.param("resume a b -n default", ["b resumed"], {"a": False, "b": False}, id="namespace"),
    ],
)
def test_changes(served: FakeClient, arguments: str, lines: list[str], left: dict[str, bool]) -> None:
    """What is done is said, and so is what needs no change."""
    served.add(train_job("a", state="Running"))
    suspended = train_job("b", state="Suspended")
    served.add(suspended | {"spec": suspended["spec"] | {"suspend": True}})

    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [NAMED + line for line in lines]
    assert result.stderr.count("note: TrainJob ") == (not arguments.startswith("delete")), "one needs no change"
    assert jobs(served) == left


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("step", "said"),
    [
        pytest.param(85, "note: last checkpoint step 80, 0 s ago; 5 steps are to be done again, unless ", id="later"),
        pytest.param(80, "", id="at-it"),
    ],
)
def test_suspended_after_a_checkpoint(served: FakeClient, step: int, said: str) -> None:
    """Who suspends a training reads how many steps it may have to do again."""
    progress = {"currentStep": step, "lastUpdatedTime": LATER, "checkpoint": {"step": 80, "time": LATER}}
    served.add(train_job("a", state="Running", trainerStatus=progress))
    assert CliRunner().invoke(app, "suspend a").stderr.partition("it saves")[0] == said


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("arguments", "complaint", "left"),
    [
        pytest.param(
            "delete c a",
            "there is no TrainJob c in namespace default: there are: a, ended",
            {"ended": False},
            id="no such job",
        ),
        pytest.param(
            "suspend enedd",
            "there is no TrainJob enedd in namespace default: did you mean ended? There are: a, ended",
            {"a": False, "ended": False},
            id="mistyped",
        ),
        pytest.param(
            "suspend ended a",
            "TrainJob ended cannot be suspended: it has ended, and is Complete",
            {"a": True, "ended": False},
            id="has ended",
        ),
        pytest.param(
            "resume ended",
            "TrainJob ended cannot be resumed: it has ended, and is Complete",
            {"a": False, "ended": False},
            id="resume",
        ),
    ],
)
def test_one_that_is_wrong(served: FakeClient, arguments: str, complaint: str, left: dict[str, bool]) -> None:
    """The others are changed, and the exit code says that one was not."""
    served.add(train_job("a", state="Running"))
    served.add(train_job("ended", **finished("Complete", "Done", "")))

    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 1
    assert result.stderr == f"error: {complaint}\n"
    assert jobs(served) == left


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("command", "active", "line"),
    [
        pytest.param(
            "suspend", True, "suspended: its Workload of-a of Kueue is inactive until it is resumed", id="suspend"
        ),
        pytest.param("resume", False, "resumed: Kueue's queue team decides when it runs", id="resume"),
    ],
)
def test_kueue_decides(served: FakeClient, command: str, active: bool, line: str) -> None:
    """Where Kueue has a Workload, that is changed, and the command says so."""
    job = train_job("a", state="Running")
    served.add(job)
    metadata = {"name": "of-a", "namespace": "default", "labels": {JOB_UID: uid_of(job)}}
    spec = {"queueName": "team", "active": active}
    served.add({"apiVersion": WORKLOADS[0].api_version, "kind": "Workload", "metadata": metadata, "spec": spec})

    result = CliRunner().invoke(app, f"{command} a")

    assert (result.exit_code, result.stdout) == (0, f"{NAMED}a {line}\n"), result.stderr
    assert [each["spec"]["active"] for each in served.objects(WORKLOADS[0])] == [not active]
    assert jobs(served) == {"a": False}
