"""`trainer attach`."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from tests.cli.conftest import finished, node_pod, train_job
from trainer.cli.app import app
from trainer.kube.objects import find_condition
from trainer.kube.podlogs.instant import Instant
from trainer_kube_testing import FakeClient

COMPLETE = finished("Complete", "Done", "all Jobs are complete")
FAILED = finished("Failed", "JobsFailed", "no data")


def has_ended_after_a_minute(status: dict[str, Any]) -> dict[str, Any]:
    """A TrainJob with this status, which was created a minute before its end."""
    job = train_job("a", **status)
    job["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    condition = find_condition(job, status["state"])
    assert condition is not None
    condition["lastTransitionTime"] = "2026-01-01T00:01:00Z"
    return job


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("status", "options", "code", "lines", "note"),
    [
        pytest.param(
            COMPLETE,
            "",
            0,
            ["node-0 | hello", "a  Complete  after 1 min 00 s"],
            "",
            id="ok",
        ),
        pytest.param(
            FAILED,
            "-n default",
            1,
            ["node-0 | hello", "a  Failed  after 1 min 00 s  no data"],
            "note: trainer explain a -n default says what to do\n",
            id="failed",
        ),
        pytest.param(COMPLETE, "--since 1h", 0, ["a  Complete  after 1 min 00 s"], "", id="since"),
    ],
)
def test_one_that_has_ended(
    served: FakeClient, status: dict[str, Any], options: str, code: int, lines: list[str], note: str
) -> None:
    """The logs that are left, and how it ended after its creation, with the exit code of `trainer run`."""
    served.add(has_ended_after_a_minute(status))
    pod = served.add(node_pod("a", 0, phase="Succeeded"))
    log = served.log(pod["metadata"]["name"], "default")
    log.write(b"hello\n", Instant.parse("2026-01-01T00:00:30Z"))
    log.end()

    result = CliRunner().invoke(app, f"attach a {options}")

    assert (result.exit_code, result.stderr) == (code, note)
    assert result.stdout.splitlines() == lines


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        pytest.param("attach b", 1, "there is no TrainJob b in namespace default: there are: a", id="no such job"),
        pytest.param("attach a --since soon", 2, "--since: soon is not a duration: write it as 90s, 10m", id="since"),
    ],
)
def test_nothing_to_attach_to(served: FakeClient, arguments: str, code: int, complaint: str) -> None:
    """One line says why."""
    served.add(train_job("a", state="Running"))

    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == code
    assert result.stderr.startswith(f"error: {complaint}")


@pytest.mark.usefixtures("cluster")
def test_time_is_up(served: FakeClient) -> None:
    """The training goes on, and the command says how to attach to it again."""
    served.add(train_job("a", state="Running"))

    result = CliRunner().invoke(app, "attach a --timeout 0")

    assert result.exit_code == 124
    again = "(trainer attach a -n default follows it again)"
    assert result.stdout.splitlines()[-1] == f"not finished after 0 s: the cluster continues to run a {again}"
