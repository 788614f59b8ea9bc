"""`trainer logs`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio
import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.cli.conftest import finished, node_pod, screen, text_of, train_job
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.progress import PRIMARY_POD
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.app import app
from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.logs.choice import LogChoice, LogRequest
from trainer.cli.logs.logs import LogReader, parse_duration
from trainer.kube.errors import ForbiddenError, TransportError
from trainer.kube.objects import Object
from trainer.kube.podlogs.instant import Instant
from trainer.kube.resource import PODS
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock

TAGGED = "[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus] "


def role_pod(role: str, index: int = 0, *, suffix: str = "abcde", **changes: Any) -> Object:
    """A pod of the job demo that belongs to a replicated Job."""
    pod = node_pod("demo", index, phase=changes.pop("phase", "Running"))
    labels = pod["metadata"]["labels"] | {"jobset.sigs.k8s.io/replicatedjob-name": role}
    name = f"demo-{role}-0-{index}-{suffix}"
    return {**pod, "metadata": {**pod["metadata"], "name": name, "uid": name, "labels": labels, **changes}}


def with_containers(pod: Object, *names: str) -> Object:
    """The pod with these containers, all of them running."""
    statuses = [{"name": name, "restartCount": 0, "state": {"running": {}}} for name in names]
    pod["spec"]["containers"] = [{"name": name} for name in names]
    pod["status"]["containerStatuses"] = statuses
    return pod


def write(client: FakeClient, pod: Object, *lines: str, container: str = "trainer", end: bool = True) -> None:
    """Let a container of a pod write lines, a second after one another."""
    client.add(pod)
    log = client.log(pod["metadata"]["name"], "default", container)
    for number, line in enumerate(lines):
        log.write(f"{line}\n".encode(), Instant(1_767_225_600 + number))
    if end:
        log.end()


async def read(client: FakeClient, clock: ManualClock, job: Object, **request: Any) -> list[str]:
    """What the command prints about a job."""
    console = screen()
    request.setdefault("choice", LogChoice())
    await LogReader(client, client.add(job), LogRequest(**request), console, clock).run()
    return text_of(console).splitlines()


LATER = Instant(1_767_225_700)
RUNNING = train_job(state="Running")


@pytest.mark.parametrize(
    ("pods", "request_", "printed"),
    [
        pytest.param(["node", "evaluator*"], {}, ["evaluator"], id="annotated"),
        pytest.param(["node", "launcher*"], {"node": "0"}, ["node"], id="number"),
        pytest.param(
            ["node", "dataset-initializer"], {"node": "dataset-initializer"}, ["dataset-initializer"], id="role"
        ),
        pytest.param(["node", "launcher"], {"node": "demo-launcher-0-0-abcde"}, ["launcher"], id="pod"),
        pytest.param(
            ["node", "launcher*"], {"all_nodes": True}, ["launcher-0 | launcher", "node-0 | node"], id="all, by name"
        ),
    ],
)
async def test_choice_of_nodes(
    client: FakeClient, clock: ManualClock, pods: list[str], request_: dict[str, Any], printed: list[str]
) -> None:
    """The default is the pod that tells of the training; other nodes have numbers and names."""
    for role in pods:
        annotations = {PRIMARY_POD: "true"} if role.endswith("*") else {}
        write(client, role_pod(role.rstrip("*"), annotations=annotations), role.rstrip("*"))

    assert await read(client, clock, RUNNING, choice=LogChoice(**request_)) == printed


@pytest.mark.parametrize("on_job", [True, False], ids=["on-the-job", "on-the-pod"])
async def test_numbers_are_those_of_the_job_with_the_label(
    client: FakeClient, clock: ManualClock, on_job: bool
) -> None:
    """The trainer may have any name; a Job called node that does not train has no numbers."""
    label = {ANCESTOR_LABEL: "trainer"}
    worker = role_pod("worker")
    if on_job:
        jobs = [{"name": "node", "template": {}}, {"name": "worker", "template": {"metadata": {"labels": label}}}]
        client.add(
            {"apiVersion": JOBSETS.api_version, "kind": JOBSETS.kind, "spec": {"replicatedJobs": jobs}}
            | {"metadata": {"name": "demo", "namespace": "default"}}
        )
    else:
        worker["metadata"]["labels"] |= label
    write(client, role_pod("node"), "other")
    write(client, worker, "training")

    assert await read(client, clock, RUNNING, choice=LogChoice("0")) == ["training"]
    with pytest.raises(BadInputError, match="has no worker-7"):
        await read(client, clock, RUNNING, choice=LogChoice("7"))


@pytest.mark.parametrize(
    ("choice", "printed"),
    [
        pytest.param(LogChoice(), ["trainer"], id="the one that trains"),
        pytest.param(LogChoice(container="sidecar"), ["sidecar"], id="named"),
        pytest.param(
            LogChoice(all_nodes=True), ["node-0/sidecar | sidecar", "node-0/trainer | trainer"], id="all of all nodes"
        ),
    ],
)
async def test_choice_of_containers(
    client: FakeClient, clock: ManualClock, choice: LogChoice, printed: list[str]
) -> None:
    """Of several containers that one is read which trains, unless another is named."""
    pod = with_containers(role_pod("node"), "sidecar", "trainer")
    for container in ("sidecar", "trainer"):
        write(client, pod, container, container=container)

    assert await read(client, clock, RUNNING, choice=choice) == printed


@pytest.mark.parametrize(
    ("request_", "printed"),
    [
        pytest.param({"tail": 2}, ["3", "4"], id="tail"),
        pytest.param({"tail": 0}, [], id="tail of nothing"),
        pytest.param({"since": timedelta(seconds=2)}, ["3", "4"], id="since"),
        pytest.param({"timestamps": True, "tail": 1}, ["2026-01-01T00:00:04.000000000Z 4"], id="timestamps"),
    ],
)
async def test_part_of_a_log(
    client: FakeClient, clock: ManualClock, request_: dict[str, Any], printed: list[str]
) -> None:
    """A part of the log can be asked for, by number of lines or by time."""
    write(client, role_pod("node"), *map(str, range(5)))
    await clock.advance((Instant(1_767_225_605).moment - clock.now()).total_seconds())

    assert await read(client, clock, RUNNING, **request_) == printed


@pytest.mark.parametrize(
    ("tail", "progress", "printed"),
    [
        pytest.param(2, False, ["one", "two"], id="two"),
        pytest.param(1, True, [f"{TAGGED}{{}}"], id="messages count where they are printed"),
    ],
)
async def test_tail_of_what_is_printed(
    client: FakeClient, clock: ManualClock, tail: int, progress: bool, printed: list[str]
) -> None:
    """So many lines are printed as were asked for, however many messages for programs are between them."""
    messages = [f"{TAGGED}{{}}"] * 20
    write(client, role_pod("node"), "one", *messages, "two", *messages)

    assert await read(client, clock, RUNNING, tail=tail, progress=progress) == printed


async def test_pod_made_again(client: FakeClient, clock: ManualClock) -> None:
    """Of a node whose pod was made again the newest is read, and the one before it with --previous."""
    first = role_pod("node", suffix="first", phase="Failed", creationTimestamp="2026-01-01T00:00:00Z")
    second = role_pod("node", suffix="again", creationTimestamp="2026-01-01T01:00:00Z")
    write(client, second, "second run")
    write(client, first, "first run")

    assert await read(client, clock, RUNNING) == ["second run"]
    assert await read(client, clock, RUNNING, previous=True) == ["first run"]


async def test_container_started_again(client: FakeClient, clock: ManualClock) -> None:
    """Of a container that was started again within its pod the earlier run is read with --previous."""
    pod = role_pod("node")
    pod["status"]["containerStatuses"][0]["restartCount"] = 1
    write(client, pod, "first run", end=False)
    client.log(pod["metadata"]["name"], "default", "trainer").restart()
    write(client, pod, "second run")

    assert await read(client, clock, RUNNING) == ["second run"]
    assert await read(client, clock, RUNNING, previous=True) == ["first run"]


@pytest.mark.parametrize(
    ("pods", "job", "request_", "error"),
    [
        pytest.param(
            [role_pod("node")],
            RUNNING,
            {"choice": LogChoice("9" * 5000)},
            BadInputError(f"--node: TrainJob demo has no node-{'9' * 5000}; there are: node-0"),
            id="number with more digits than Python reads",
        ),
        pytest.param(
            [role_pod("node")],
            RUNNING,
            {"choice": LogChoice("7")},
            BadInputError("--node: TrainJob demo has no node-7; there are: node-0"),
            id="no such node",
        ),
        pytest.param(
            [role_pod("node")],
            RUNNING,
            {"choice": LogChoice(container="web")},
            BadInputError("--container: node-0 has no container web; there are: trainer"),
            id="no such container",
        ),
        pytest.param(
            [role_pod("node", phase="Pending"), role_pod("dataset-initializer")],
            RUNNING,
            {},
            CommandError(
                "the training node of TrainJob demo has not started yet; "
                "there are logs of: dataset-initializer-0 (see --node)"
            ),
            id="initializers only",
        ),
        pytest.param(
            [role_pod("node", 1, phase="Failed")],
            train_job(**finished("Failed", "FailedJobs", "a job failed; no failed pod is left that would say more")),
            {},
            CommandError(
                "there is no log of the training node of TrainJob demo, which has ended: its pod is gone or has never "
                "started; there are logs of: node-1 (see --node)"
            ),
            id="deleted, and nobody knows which pod failed",
        ),
        pytest.param(
            [role_pod("node", 1, phase="Pending")],
            train_job(**finished("Failed", "DeadlineExceeded", "too long")),
            {},
            CommandError("no node of TrainJob demo has started; there are: node-1"),
            id="ended before the start",
        ),
        pytest.param(
            [role_pod("node")],
            RUNNING,
            {"previous": True},
            CommandError("there is no earlier run of node-0: it has not been restarted, or its pod is gone"),
            id="no earlier run",
        ),
        pytest.param(
            [],
            train_job(state="Suspended"),
            {},
            CommandError("TrainJob demo has no pods: it is Suspended"),
            id="suspended",
        ),
        pytest.param(
            [],
            train_job(**finished("Complete", "Done", "all done")),
            {"follow": True},
            CommandError("the pods of TrainJob demo are gone, and their logs with them; no lines are left"),
            id="gone",
        ),
    ],
)
async def test_nothing_to_print(
    client: FakeClient,
    clock: ManualClock,
    pods: list[Object],
    job: Object,
    request_: dict[str, Any],
    error: CommandError,
) -> None:
    """Where there is no log, the error says why and what there is."""
    for pod in pods:
        client.add(pod)

    with pytest.raises(type(error)) as caught:
        await read(client, clock, job, **request_)

    assert str(caught.value) == str(error)


NODE_1_FAILED = "a job failed; pod demo-node-0-1-abcde: container trainer exited with code 3"


@pytest.mark.parametrize("follow", [pytest.param(False, id="once"), pytest.param(True, id="followed")])
async def test_the_pod_that_failed(
    client: FakeClient, clock: ManualClock, capsys: pytest.CaptureFixture[str], follow: bool
) -> None:
    """When node 0 was deleted because node 1 has failed, the log of node 1 is printed, which says so."""
    write(client, role_pod("node", 1, phase="Failed"), "ValueError: lr")
    write(client, role_pod("node", 2, phase="Running"), "waiting for node 1")
    job = train_job(**finished("Failed", "FailedJobs", f"{NODE_1_FAILED}\nlast lines of its log:\nValueError: lr"))

    assert await read(client, clock, job, follow=follow) == ["ValueError: lr"]

    assert (
        "the pod of the training node of TrainJob demo is gone, and its log with it; this is the log of node-1, pod "
        "demo-node-0-1-abcde, which has failed" in capsys.readouterr().err
    )


async def test_the_pod_that_failed_is_gone_as_well(client: FakeClient, clock: ManualClock) -> None:
    """Then the lines that the condition keeps are printed."""
    write(client, role_pod("node", 2, phase="Failed"), "waiting for node 1")
    job = train_job(**finished("Failed", "R", f"{NODE_1_FAILED}\nlast lines of its log:\none\ntwo"))
    console = screen()

    with pytest.raises(CommandError, match="above are the last 2 lines of pod demo-node-0-1-abcde, which has failed"):
        await LogReader(client, client.add(job), LogRequest(LogChoice()), console, clock).run()

    assert text_of(console).splitlines() == ["one", "two"]


async def test_lines_that_the_condition_keeps(client: FakeClient, clock: ManualClock) -> None:
    """When the pods are gone, the last lines are those of the condition."""
    job = train_job(**finished("Failed", "FailedJobs", "exit 3\nlast lines of its log:\n  one\n\x1b[2Jtwo"))
    console = screen()

    with pytest.raises(CommandError, match="the lines above are the last ones, from its condition Failed"):
        await LogReader(client, client.add(job), LogRequest(LogChoice()), console, clock).run()

    assert text_of(console).splitlines() == ["  one", r"\x1b[2Jtwo"]


@asynccontextmanager
async def following(
    client: FakeClient, clock: ManualClock, console: Console, **request: Any
) -> AsyncIterator[list[str]]:
    """Follows in the background; the list holds `ended` once that is over."""
    ended: list[str] = []
    job = client.add(RUNNING)
    asked = LogRequest(request.pop("choice", LogChoice()), follow=True, **request)

    async def follow() -> None:
        await LogReader(client, job, asked, console, clock).run()
        ended.append("ended")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await clock.advance(0)
            yield ended
            while not ended:
                await clock.advance(1)


async def test_follow_across_restarts(client: FakeClient, clock: ManualClock) -> None:
    """Following goes on with the next pod of the node, over broken connections, and ends with the job."""
    console = screen()
    pod = role_pod("node", suffix="first")
    write(client, pod, "one", end=False)
    async with following(client, clock, console) as ended:
        client.faults.drop_logs(TransportError("reset"))
        await clock.advance(2)
        log = client.log(pod["metadata"]["name"], "default", "trainer")
        log.write(b"two\n", LATER)
        log.end()
        client.add(role_pod("node", suffix="first", phase="Failed", creationTimestamp="2026-01-01T00:00:00Z"))
        await clock.advance(5)
        write(client, role_pod("node", suffix="again", creationTimestamp="2026-01-01T01:00:00Z"), "three", end=False)
        await clock.advance(5)
        assert not ended
        log = client.log("demo-node-0-0-again", "default", "trainer")
        log.write(b"four\n", LATER)
        log.end()
        client.add(role_pod("node", suffix="again", phase="Succeeded", creationTimestamp="2026-01-01T01:00:00Z"))
        client.add(train_job(**finished("Complete", "Done", "")))

    assert text_of(console).splitlines() == ["one", "two", "three", "four"]


@pytest.mark.parametrize("terminal", [True, False])
async def test_follow_a_progress_bar(
    client: FakeClient, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    """On a terminal a bar is one line that is drawn anew, as wide as fits; elsewhere only its last state is a line."""
    monkeypatch.setenv("TERM", "xterm")
    console = screen(terminal=terminal, width=20)
    pod = role_pod("node")
    write(client, pod, "begin", end=False)
    async with following(client, clock, console):
        log = client.log(pod["metadata"]["name"], "default", "trainer")
        bar = "\r10% of a long bar ██", "\r20%\x1b[31m\x1b]0;title\x07", "\r30%".ljust(22), "\nend\n"
        for text in bar:
            log.write(text.encode(), LATER)
            await clock.advance(1)
        log.end()
        client.add(role_pod("node", phase="Succeeded"))
        client.add(train_job(**finished("Complete", "Done", "")))

    erase = "\r\x1b[K"
    drawn = f"begin\n10% of a long bar …{erase}20%{erase}" if terminal else "begin\n"
    assert text_of(console) == f"{drawn}30%{' ' * 18}\nend\n"


async def test_a_bar_that_messages_cut(client: FakeClient, clock: ManualClock) -> None:
    """Of a bar that goes on, only the last state is printed, however many messages stand behind its states."""
    write(client, role_pod("node"), "begin", *(f"\r{percent}%{TAGGED}{{}}" for percent in (10, 20)))
    assert await read(client, clock, RUNNING) == ["begin", "20%"]


async def test_follow_before_the_start(
    client: FakeClient, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Following waits for the node, says so, and takes the right one when it comes."""
    console = screen()
    async with following(client, clock, console):
        write(client, role_pod("dataset-initializer", phase="Succeeded"), "download")
        await clock.advance(1)
        write(client, role_pod("node", phase="Succeeded"), "train")
        await clock.advance(1)
        client.add(train_job(**finished("Complete", "Done", "")))

    assert text_of(console).splitlines() == ["train"]
    assert capsys.readouterr().err == "note: waiting for the training node of TrainJob demo to start\n"


async def test_follow_from_the_last_lines(client: FakeClient, clock: ManualClock) -> None:
    """Following may begin with the last lines of what there is."""
    console = screen()
    pod = role_pod("node")
    write(client, pod, "one", "two", "three", end=False)
    async with following(client, clock, console, tail=1):
        log = client.log(pod["metadata"]["name"], "default", "trainer")
        log.write(b"four\n", LATER)
        log.end()
        client.add(role_pod("node", phase="Succeeded"))
        client.add(train_job(**finished("Complete", "Done", "")))

    assert text_of(console).splitlines() == ["three", "four"]


async def test_follow_a_deleted_job(client: FakeClient, clock: ManualClock, capsys: pytest.CaptureFixture[str]) -> None:
    """When somebody deletes the job, following ends and says so."""
    write(client, role_pod("node"), "one")
    async with following(client, clock, screen()):
        client.remove(TRAIN_JOBS, "demo", "default")
        client.remove(PODS, "demo-node-0-0-abcde", "default")

    assert "TrainJob demo was deleted" in capsys.readouterr().err


async def test_follow_tells_what_keeps_it(
    client: FakeClient, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """That pods cannot be watched for some time is reported once, and tried again."""
    client.faults.fail(ForbiddenError(403, "pods is forbidden: cannot watch"), verb="watch", resource=PODS, times=100)
    async with following(client, clock, screen()):
        for _ in range(60):
            await clock.advance(1)
        client.add(train_job(**finished("Complete", "Done", "")))

    reported = capsys.readouterr().err.splitlines()
    assert reported[1:] == ["warning: its pods cannot be watched, trying again: pods is forbidden: cannot watch"]


async def test_follow_what_is_forbidden(
    client: FakeClient, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """A log that may not be read is reported, once."""
    client.faults.fail(ForbiddenError(403, "pods/log is forbidden"), verb="log")
    write(client, role_pod("node", phase="Succeeded"), "one")
    async with following(client, clock, screen()):
        client.add(train_job(**finished("Complete", "Done", "")))

    assert capsys.readouterr().err == "warning: cannot read the log of node-0: pods/log is forbidden\n"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("90s", 90, id="seconds"),
        pytest.param("2d", 172800, id="days"),
        pytest.param("500ms", 0.5, id="milliseconds"),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    """A length of time is written as for kubectl."""
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        pytest.param("logs", 2, "Missing argument 'NAME': trainer logs NAME", id="no name"),
        pytest.param(
            "logs nope", 1, "there is no TrainJob nope in namespace default: there are: demo", id="no such job"
        ),
        pytest.param("logs demo --all --node 1", 2, "--all cannot be combined with --node", id="all and one"),
        pytest.param("logs demo -f --previous", 2, "--previous cannot be combined with --follow", id="past and future"),
        pytest.param("logs demo --since 10", 2, "write it as 90s, 10m, 1h30m or 2d", id="no unit"),
        pytest.param("logs demo --since 99999999999999d", 2, "is too long", id="too long"),
        pytest.param("logs demo --tail -1", 2, "'--tail'", id="negative tail"),
        pytest.param("logs demo --node 3", 2, "there are: node-0", id="no such node"),
    ],
)
def test_bad_questions(served: FakeClient, cluster: None, arguments: str, code: int, complaint: str) -> None:
    """What cannot be answered gets one clear line on standard error."""
    served.add(RUNNING)
    served.add(role_pod("node"))

    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == code
    assert result.stderr.startswith("error: ")
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
    assert not result.stdout


def test_command_line(served: FakeClient, cluster: None) -> None:
    """The command prints logs, with --follow those of a job that has ended as well."""
    served.add(train_job(**finished("Complete", "Done", "")))
    for index in (0, 1):
        write(served, role_pod("node", index, phase="Succeeded"), "one", f"node {index}")

    assert CliRunner().invoke(app, "logs demo").stdout == "one\nnode 0\n"
    assert CliRunner().invoke(app, "logs demo -f --node 1 --tail 1").stdout == "node 1\n"
    everything = CliRunner().invoke(app, "logs demo --all --timestamps").stdout.splitlines()
    assert everything[-1] == "node-1 | 2026-01-01T00:00:01.000000000Z node 1"
