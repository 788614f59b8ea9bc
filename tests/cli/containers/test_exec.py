"""`trainer exec`."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.cli.conftest import finished, node_pod, train_job
from tests.cli.containers.conftest import CommandCluster, Machine, NeverRun
from trainer.cli.app import app
from trainer.cli.containers.streams import attach_streams
from trainer.kube.errors import ForbiddenError, InternalError, NotFoundError, TransportError
from trainer.kube.remote_command import CommandOptions, OutputStream
from trainer.kube.resource import PODS

pytestmark = pytest.mark.usefixtures("cluster")
NODE_0, NODE_1 = "demo-node-0-0-abcde", "demo-node-0-1-abcde"


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("line", "pod", "asked"),
    [
        pytest.param("exec demo -- true", NODE_0, CommandOptions(("true",), "trainer"), id="first node"),
        pytest.param("exec demo --node 1 -- true", NODE_1, CommandOptions(("true",), "trainer"), id="another node"),
        pytest.param(
            "exec demo -c trainer -i -- true --node 7", NODE_0,
            CommandOptions(("true", "--node", "7"), "trainer", stdin=True), id="options of the command",
        ),
        pytest.param(
            "exec -it demo -- true", NODE_0, CommandOptions(("true",), "trainer", stdin=True), id="no terminal here"
        ),
    ],
)  # fmt: skip
def test_request(machine: Machine, line: str, pod: str, asked: CommandOptions) -> None:
    """The command runs on the node that is named, by default the first; a terminal needs one here."""
    result = CliRunner().invoke(app, line, input="")

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == ("note: --tty is left out: standard input is no terminal\n" if "-it" in line else "")
    assert machine.asked == [(pod, asked)]


@pytest.mark.usefixtures("served")
def test_streams() -> None:
    """Input, output, errors and exit code are those of the command, byte for byte."""
    script = "cat; printf '\\377\\033[1m'; echo err >&2; exit 7"
    result = CliRunner().invoke(app, ["exec", "demo", "-i", "--", "sh", "-c", script], input=b"a\0b")

    assert (result.exit_code, result.stdout_bytes, result.stderr) == (7, b"a\0b\xff\x1b[1m", "err\n")


async def test_closed_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes to a stream that the shell has closed is dropped."""

    class Speaking(NeverRun):
        exit_code = 3

        async def output(self) -> AsyncGenerator[tuple[OutputStream, bytes], None]:
            yield OutputStream.OUTPUT, b"a"

    monkeypatch.setattr(sys, "stdout", None)

    assert await attach_streams(Speaking(Exception()), with_input=False, terminal=None) == 3


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("line", "code", "complaint"),
    [
        pytest.param(
            "exec demo ls -l", 2,
            "No such option: -l; options of the command follow after --: trainer exec NAME -- COMMAND -l",
            id="no dashes",
        ),
        pytest.param("exec demo", 2, "Missing argument 'COMMAND': trainer exec NAME -- COMMAND", id="no command"),
        pytest.param(
            "exec nosuch -- ls", 1, "there is no TrainJob nosuch in namespace default: there are: demo",
            id="no such training",
        ),
        pytest.param(
            "exec demo --node 7 -- ls", 2,
            "--node: TrainJob demo has no node-7; there are: node-0, node-1", id="no such node",
        ),
        pytest.param(
            "exec demo -c x -- ls", 2, "--container: node-0 has no container x; there are: trainer",
            id="no such container",
        ),
        pytest.param(
            "exec demo -- nosuch", 1,
            'the command cannot run: exec: "nosuch": executable file not found in $PATH', id="no such program",
        ),
    ],
)  # fmt: skip
def test_mistakes(line: str, code: int, complaint: str) -> None:
    """What is wrong is said, with what there is."""
    result = CliRunner().invoke(app, line)

    assert (result.exit_code, result.stderr) == (code, f"error: {complaint}\n")


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("refusal", "complaint"),
    [
        pytest.param(
            ForbiddenError(403, 'pods "p" is forbidden'),
            "you may not run commands in pods of namespace default: ask for a role with the verbs get and create on "
            'pods/exec (pods "p" is forbidden)',
            id="forbidden",
        ),
        pytest.param(
            NotFoundError(404, 'pods "p" not found'),
            f"pod {NODE_0} is gone: it has been deleted or replaced meanwhile",
            id="gone",
        ),
        pytest.param(
            InternalError(500, 'unable to upgrade connection: container not found ("trainer")'),
            "node-0 does not run any more: its container has just ended",
            id="ended",
        ),
        pytest.param(InternalError(500, "no room"), "no room", id="something else"),
        pytest.param(TransportError("timed out"), "cannot reach the cluster: timed out", id="no answer"),
    ],
)
def test_refusals(machine: Machine, refusal: Exception, complaint: str) -> None:
    """A refusal of the API server is said in plain words."""
    machine.refusal = refusal

    result = CliRunner().invoke(app, "exec demo -- ls")

    assert (result.exit_code, result.stderr) == (1, f"error: {complaint}\n")


@pytest.mark.usefixtures("served")
def test_lost_connection(machine: Machine) -> None:
    """A connection that ends before the command is no trouble with reaching the cluster."""
    machine.programs["ls"] = TransportError("default/p: the connection ended before the command")

    result = CliRunner().invoke(app, "exec demo -- ls")

    assert (result.exit_code, result.stderr) == (1, "error: default/p: the connection ended before the command\n")


@pytest.mark.parametrize(
    ("status", "state", "complaint"),
    [
        pytest.param(
            finished("Complete", "JobsCompleted", "all done"), None,
            "TrainJob demo has ended, and is Complete: nothing of it runs any more; what it has printed: "
            "trainer logs demo",
            id="ended",
        ),
        pytest.param(
            {"state": "Suspended"}, None, "TrainJob demo has no pods: it is Suspended; see: trainer explain demo",
            id="no pods",
        ),
        pytest.param(
            {"state": "Pending"}, {"state": {"waiting": {"reason": "ContainerCreating"}}},
            "the training node of TrainJob demo has not started yet; see: trainer explain demo", id="not started",
        ),
        pytest.param(
            {"state": "Running"}, {"state": {"terminated": {"exitCode": 3}}},
            "node-0 of TrainJob demo does not run now: it has ended with exit code 3; see: trainer logs demo",
            id="ended node",
        ),
        pytest.param(
            {"state": "Running"}, {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 1},
            "node-0 of TrainJob demo does not run now: it waits to be started again (CrashLoopBackOff); see: "
            "trainer logs demo",
            id="crash loop",
        ),
    ],
)  # fmt: skip
def test_nothing_runs(served: CommandCluster, status: Any, state: Any, complaint: str) -> None:
    """Where nothing runs, the error says why, and which command shows more."""
    served.add(train_job("demo", **status))
    for index in range(2):
        pod = node_pod("demo", index)
        served.remove(PODS, pod["metadata"]["name"], "default")
        if state is not None:
            pod["status"]["containerStatuses"][0] |= state
            served.add(pod)

    result = CliRunner().invoke(app, "exec demo -- ls")

    assert (result.exit_code, result.stderr) == (1, f"error: {complaint}\n")
