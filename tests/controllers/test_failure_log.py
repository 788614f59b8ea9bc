"""What can be found out about a failure."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from tests.controllers.test_launcher_reports import TORCHRUN, TRACEBACK
from tests.framework.plugin_api.test_failure import end, job, pod, taken
from trainer.api.trainjob_status import ConditionType
from trainer.controllers.failure_log import LINES, SIZE_LIMIT, TIME_LIMIT, FailureLog, last_lines
from trainer.framework.plugin_api.failure import FailedContainer
from trainer.framework.plugin_api.reports import Outcome
from trainer.kube.client import LogOptions
from trainer.kube.errors import ForbiddenError, KubeError, TransportError
from trainer.kube.objects import Object
from trainer.kube.resource import JOBS, PODS
from trainer.kube.selection import Selection
from trainer_kube_testing import FakeClient, ManualClock, settle

CULPRIT = FailedContainer("pod a: container trainer exited with code 3", "a", "trainer")
FAILED = Outcome(ConditionType.FAILED, "FailedJobs", "a job failed", jobs=Selection("default", "set=demo"))


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        pytest.param(b"", (), id="empty"),
        pytest.param("a\tb\u2028c\u202ed\n".encode(), ("a    bcd",), id="unicode-tricks"),
    ],
)
def test_last_lines(data: bytes, lines: tuple[str, ...]) -> None:
    """They are text that no terminal obeys, as one would see it in the end."""
    assert last_lines(data) == lines


def test_last_lines_are_few_and_short() -> None:
    """Ten lines and two kilobytes at most, and it is the first ones that go."""
    lines = last_lines("".join(f"line {number}\n" for number in range(99)).encode())
    assert lines == tuple(f"line {number}" for number in range(99 - LINES, 99))
    long = last_lines(("é" * 5000 + "\n").encode() * LINES)
    assert {len(line) for line in long} == {400}
    assert sum(len(line.encode()) + 1 for line in long) <= SIZE_LIMIT


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def write_log(client: FakeClient, text: bytes) -> None:
    log = client.log("a", "default", "trainer")
    log.write(text)
    log.end()


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    client = FakeClient(clock=clock)
    client.add(stored(pod("a", end(3, 1)), "v1", "Pod"))
    return client


def stored(obj: Object, api_version: str, kind: str) -> Object:
    """An object of the namespace, with the label of the Jobs, of which one has made the pods."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "demo-node-0", "uid": "u", "controller": True}
    owners = {"ownerReferences": [owner]} if kind == "Pod" else {}
    metadata = obj["metadata"] | {"namespace": "default", "labels": {"set": "demo"}} | owners
    return obj | {"apiVersion": api_version, "kind": kind, "metadata": metadata}


async def test_tail(client: FakeClient, clock: ManualClock) -> None:
    """The log of the very container is read, and no more of it than is asked for."""
    write_log(client, b"Traceback\nValueError: lr\n")
    assert await FailureLog(client, clock).tail(CULPRIT, "default") == ("Traceback", "ValueError: lr")
    (request,) = client.requests
    options: Any = request.body
    assert (request.name, options.container, options.tail_lines) == ("a", "trainer", LINES)


async def test_a_pod_that_failed_as_a_whole_has_no_log(client: FakeClient, clock: ManualClock) -> None:
    """An evicted pod is not asked."""
    assert await FailureLog(client, clock).tail(FailedContainer("pod a failed: Evicted", "a"), "default") == ()
    assert client.requests == []


TAGGED = "[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus] {}\n"


@pytest.mark.parametrize(
    ("text", "lines", "asked"),
    [
        pytest.param(
            "Traceback\nValueError: lr\n" + TAGGED * 10, ("Traceback", "ValueError: lr"), [10, 160], id="messages last"
        ),
        pytest.param("x" * 70_000 + "\n" + TAGGED.strip(), ("x" * 400,), [10], id="long line, and no end of the last"),
        pytest.param(f"50%|##  |\r{TAGGED}", ("50%|##  |",), [10], id="behind a progress bar"),
        pytest.param(f"print('{TAGGED.strip()}')\n", (f"print('{TAGGED.strip()}')",), [10], id="amid code"),
    ],
)
async def test_messages_about_progress_are_left_out(
    client: FakeClient, clock: ManualClock, text: str, lines: tuple[str, ...], asked: list[int]
) -> None:
    """They do not count as lines either, as in `trainer logs`."""
    write_log(client, text.encode())
    assert await FailureLog(client, clock).tail(CULPRIT, "default") == lines
    options: list[Any] = [request.body for request in client.requests]
    assert [each.tail_lines for each in options] == asked


async def test_reports_of_launchers_are_left_out(client: FakeClient, clock: ManualClock) -> None:
    """What the program has said stands far above the end of torchrun's log; a report alone is better than nothing."""
    write_log(client, (TRACEBACK + TORCHRUN).encode())
    assert await FailureLog(client, clock).tail(CULPRIT, "default") == tuple(TRACEBACK.splitlines())
    assert last_lines(TORCHRUN.encode())[-1] == "=" * 60


async def test_a_report_of_a_killed_process_is_kept(client: FakeClient, clock: ManualClock) -> None:
    """The process itself has said nothing of it, and the failure is not one of the program."""
    said = "traceback : Signal 9 (SIGKILL) received by PID 2120"
    report = TORCHRUN.replace("exitcode  : 1", "exitcode  : -9").replace("traceback : To enable", f"{said}\n  x : ")
    write_log(client, ("step 7\n" + report).encode())
    outcome, lines = await FailureLog(client, clock).trace(FAILED, "default")
    assert outcome.culprit is not None
    assert lines == ("step 7", said)
    assert outcome.culprit.headline(lines) == "a: a process of it was killed (SIGKILL)"


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(TransportError("connection reset"), id="no-answer"),
    ],
)
async def test_a_log_that_cannot_be_read(client: FakeClient, clock: ManualClock, error: KubeError) -> None:
    """Then there are no lines, and no error."""
    client.faults.fail(error)
    assert await FailureLog(client, clock).tail(CULPRIT, "default") == ()


class StuckClient(FakeClient):
    """Sends the beginning of a log, and then nothing."""

    @asynccontextmanager
    async def logs(self, pod: str, namespace: str, options: Any = None) -> AsyncIterator[AsyncIterator[bytes]]:
        """See `Client.logs`."""

        async def chunks() -> AsyncIterator[bytes]:
            yield b"not the end\n"
            await anyio.sleep_forever()

        yield chunks()


async def test_a_log_that_takes_too_long(clock: ManualClock) -> None:
    """It is waited for a short time; the beginning of it is not taken for the end."""
    lines: list[tuple[str, ...]] = []

    async def read() -> None:
        lines.append(await FailureLog(StuckClient(), clock).tail(CULPRIT, "default"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await settle()
        assert lines == []
        await clock.advance(TIME_LIMIT)
    assert lines == [()]


class EndlessClient(FakeClient):
    """Sends a line that does not end."""

    sent = 0

    @asynccontextmanager
    async def logs(self, pod: str, namespace: str, options: LogOptions | None = None) -> AsyncIterator[Any]:
        """See `Client.logs`."""

        async def chunks() -> AsyncIterator[bytes]:
            while True:
                self.sent += 1
                yield b"x" * 65536

        yield chunks()


async def test_a_log_that_does_not_end(clock: ManualClock) -> None:
    """It is not read forever."""
    client = EndlessClient()
    assert await FailureLog(client, clock).tail(CULPRIT, "default") == ("x" * 400,)
    assert client.sent < 100


async def test_a_culprit_is_looked_for(client: FakeClient, clock: ManualClock) -> None:
    """If the caches lag behind, the pods are listed."""
    outcome = await FailureLog(client, clock).explain(FAILED)
    assert outcome.culprit is not None
    assert (outcome.culprit.text, outcome.culprit.pod) == (CULPRIT.text, "a")
    assert [request.resource for request in client.requests] == [PODS]


LOST = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:31722"


@pytest.mark.parametrize(
    ("logs", "headline"),
    [
        pytest.param({"a": LOST, "b": "ValueError: lr"}, "b: ValueError: lr", id="the-other-says-more"),
        pytest.param({"a": LOST, "b": LOST}, f"a: {LOST}", id="both-lost-each-other"),
        pytest.param({"a": LOST, "b": ""}, f"a: {LOST}", id="the-other-says-nothing"),
        pytest.param({"a": "KeyError: 3", "b": "ValueError: lr"}, "a: KeyError: 3", id="the-first-says-enough"),
    ],
)
async def test_a_lost_connection_is_not_the_cause(
    client: FakeClient, clock: ManualClock, logs: dict[str, str], headline: str
) -> None:
    """The node whose log says more is named, even if it ended later than those that have lost it."""
    client.add(stored(pod("b", end(1, 2)), "v1", "Pod"))
    client.add(stored(pod("c", end(143, 1)), "v1", "Pod"))
    for name, text in logs.items():
        log = client.log(name, "default", "trainer")
        log.write(f"{text}\n".encode())
        log.end()
    outcome, lines = await FailureLog(client, clock).trace(FAILED, "default")
    assert outcome.culprit is not None
    assert outcome.culprit.headline(lines) == headline


async def test_a_disruption_is_the_cause_of_a_lost_connection(client: FakeClient, clock: ManualClock) -> None:
    """A pod that was evicted is named, although the one that has lost it has ended before."""
    client.add(stored(taken("b", "EvictionByEvictionAPI", "2026-01-01T00:00:09Z"), "v1", "Pod"))
    write_log(client, f"{LOST}\n".encode())
    outcome, lines = await FailureLog(client, clock).trace(FAILED, "default")
    assert outcome.culprit is not None
    assert (outcome.culprit.text, lines) == ("pod b was evicted (EvictionByEvictionAPI)", ())


DELETED = FailedContainer("pod a was deleted; by whom is not known", "a", is_taken_away=True)


@pytest.mark.parametrize(
    ("reason", "culprit"),
    [
        pytest.param("BackoffLimitExceeded", DELETED, id="since a pod is gone"),
        pytest.param("DeadlineExceeded", None, id="by its Job at the deadline"),
    ],
)
async def test_a_deletion_may_be_that_of_the_job(
    client: FakeClient, clock: ManualClock, reason: str, culprit: FailedContainer | None
) -> None:
    """A deleted pod is not the cause where its Job had a reason of its own."""
    failed = job("demo-node-0", 1)
    failed["status"]["conditions"][0]["reason"] = reason
    client.add(stored(failed, "batch/v1", "Job"))
    outcome = await FailureLog(client, clock).explain(replace(FAILED, culprit=DELETED))
    assert outcome.culprit == culprit
    assert outcome.message == (
        "a job failed" if culprit else f"a job failed; job demo-node-0 failed: {reason}: too often"
    )


async def test_pods_of_an_earlier_train_job_of_the_name(client: FakeClient, clock: ManualClock) -> None:
    """Pods that are older than the TrainJob are not blamed."""
    outcome = await FailureLog(client, clock).explain(FAILED, since="2026-01-01T00:00:01Z")
    assert outcome.culprit is None


async def test_a_known_culprit_is_not_looked_for(client: FakeClient, clock: ManualClock) -> None:
    """Nor is one for an end that has nothing to do with pods."""
    known = Outcome(ConditionType.FAILED, "FailedJobs", "a job failed", CULPRIT, FAILED.jobs)
    nobody = Outcome(ConditionType.FAILED, "DeadlineExceeded", "too late")
    for outcome in (known, nobody):
        assert await FailureLog(client, clock).explain(outcome) == outcome
    assert client.requests == []


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        pytest.param(
            [job("demo-node-0", 1, failedIndexes="3")],
            "a job failed; job demo-node-0 failed: BackoffLimitExceeded: too often (indexes 3); "
            "no failed pod is left that would say more",
            id="job",
        ),
        pytest.param([], "a job failed; no failed pod is left that would say more", id="nothing"),
    ],
)
async def test_failed_pods_that_are_gone(
    client: FakeClient, clock: ManualClock, jobs: list[Object], message: str
) -> None:
    """That is said, with what the Job knows."""
    client.remove(PODS, "a", "default")
    for each in jobs:
        client.add(stored(each, "batch/v1", "Job"))
    outcome = await FailureLog(client, clock).explain(FAILED)
    assert (outcome.culprit, outcome.message) == (None, message)
    assert [request.resource for request in client.requests] == [PODS, JOBS]


async def test_the_last_restart_is_remembered(client: FakeClient, clock: ManualClock) -> None:
    """If all failed pods are gone, what was reported about the last restart is better than nothing."""
    client.remove(PODS, "a", "default")
    outcome = await FailureLog(client, clock).explain(FAILED, earlier="restart 1: pod a failed")
    assert outcome.message.endswith("; before that: restart 1: pod a failed")


async def test_a_cluster_that_does_not_say(client: FakeClient, clock: ManualClock) -> None:
    """The end is reported with what is known."""
    client.faults.fail(ForbiddenError(403, "no"), resource=PODS)
    assert await FailureLog(client, clock).explain(FAILED) == FAILED
