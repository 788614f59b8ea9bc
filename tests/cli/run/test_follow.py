"""Following TrainJobs to their end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.cli.conftest import RecordingDisplay, finished, node_pod, train_job
from tests.explain import samples
from trainer.api.progress import MONITORING
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.jobs.state import JobState
from trainer.cli.run.follow import JobOutcome, follow_jobs
from trainer.cli.run.run import exit_code
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import EVENTS, JOBS, Resource
from trainer.progress.interest import MetricValue
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock, eventually

DEMO = ObjectKey("default", "demo")


@asynccontextmanager
async def following(
    client: FakeClient, display: RecordingDisplay, clock: ManualClock, *jobs: Object
) -> AsyncIterator[dict[ObjectKey, JobOutcome]]:
    """Follows jobs in the background while the body lets things happen; afterwards holds their outcomes."""
    outcomes: dict[ObjectKey, JobOutcome] = {}
    stored = [client.add(job) for job in jobs]

    async def follow() -> None:
        outcomes.update(await follow_jobs(client, stored, display, clock))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await clock.advance(0)
            yield outcomes
            while not outcomes:
                await clock.advance(1)


async def test_from_submission_to_complete(client: FakeClient, display: RecordingDisplay, clock: ManualClock) -> None:
    """States, node logs and the result are shown; the outcome is the last state, with the metrics of plain lines."""
    async with following(client, display, clock, train_job()) as outcomes:
        client.add(train_job(state="Created"))
        await clock.advance(1)
        for index in (0, 1):
            pod = client.add(node_pod("demo", index, phase="Pending"))
            log = client.log(pod["metadata"]["name"], "default")
            log.write(f"node {index}\ntest accuracy: 9{index} %\nbye\n".encode())
            log.end()
        client.add(train_job(state="Running", trainerStatus={"progressPercentage": 50}))
        await clock.advance(1)
        assert display.lines == []
        for index in (0, 1):
            client.add(node_pod("demo", index))
        await clock.advance(1)
        for index in (0, 1):
            client.add(node_pod("demo", index, phase="Succeeded"))
        client.add(train_job(**finished("Complete", "AllJobsCompleted", "all jobs completed")))

    state = outcomes[DEMO].state
    assert state is not None
    assert state.progress.metrics == (MetricValue("test_accuracy", "90", is_eval=True),)
    last = JobState("Complete", state.progress, reason="AllJobsCompleted", message="all jobs completed")
    assert outcomes == {DEMO: JobOutcome(last, "test accuracy: 90 %")}
    assert outcomes[DEMO].is_complete
    words = [state.word for state in display.states]
    assert words == ["Submitted", "Created", "Running", "Running", "Complete"]  # twice: the metrics are news
    assert {"demo node-0: test accuracy: 90 %", "demo node-1: bye"} <= set(display.lines)
    assert not display.warnings


async def test_short_job_is_followed_from_its_end(
    client: FakeClient, display: RecordingDisplay, clock: ManualClock
) -> None:
    """A job that has ended before it is looked at still shows its logs."""
    pod = client.add(node_pod("demo", 0, phase="Succeeded"))
    log = client.log(pod["metadata"]["name"], "default")
    log.write(b"hello\n")
    log.end()

    async with following(client, display, clock, train_job(**finished("Complete", "Done", ""))) as outcomes:
        pass

    assert display.lines == ["demo node-0: hello"]
    assert outcomes[DEMO].result == "hello"


@pytest.mark.parametrize(
    "replacement",
    [
        pytest.param(None, id="deleted"),
        pytest.param({**train_job(), "metadata": {**train_job()["metadata"], "uid": "another"}}, id="replaced"),
    ],
)
async def test_deleted_job(
    client: FakeClient, display: RecordingDisplay, clock: ManualClock, replacement: Object | None
) -> None:
    """A job that somebody deletes is not waited for, also when another one takes its name."""
    async with following(client, display, clock, train_job()) as outcomes:
        await client.delete(TRAIN_JOBS, "demo", "default")
        if replacement is not None:
            client.add(replacement)

    assert outcomes[DEMO] == JobOutcome(None)
    assert display.warnings == ["demo: the TrainJob was deleted"]


async def test_silence_is_explained(client: FakeClient, display: RecordingDisplay, clock: ManualClock) -> None:
    """A job that no controller looks at makes the user look at the controller manager."""
    async with following(client, display, clock, train_job()):
        await clock.advance(11)
        assert len(display.warnings) == 1
        assert "check whether one is running" in display.warnings[0]
        client.add(train_job(**finished("Complete", "Done", "")))


class SlowLog:
    """A log with a line every 6 s, which stops without an end when it should have more lines than `lines`."""

    lines = 5

    def __init__(self, _client: Client, _namespace: str, _pod: str, container: str, *, clock: Clock, **_: Any) -> None:
        self._container = container
        self._clock = clock

    async def follow(self, is_finished: Callable[[], bool]) -> AsyncGenerator[bytes, None]:
        for number in range(self.lines):
            await self._clock.sleep(6)
            yield f"2026-01-01T00:00:0{number}Z {number}\n".encode()
        assert is_finished()
        if self._container == "stuck":
            await anyio.sleep_forever()


@pytest.mark.parametrize(
    ("container", "warnings"),
    [
        pytest.param("trainer", [], id="ends"),
        pytest.param("stuck", ["demo: the end of the log of node-0 could not be read in time"], id="stuck"),
    ],
)
async def test_long_logs_are_read_to_their_end(
    client: FakeClient,
    display: RecordingDisplay,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    container: str,
    warnings: list[str],
) -> None:
    """After the end of a job its logs are read as long as there are new lines; a missing end is reported."""
    monkeypatch.setattr("trainer.cli.logs.follower.ContainerLog", SlowLog)
    pod = node_pod("demo", 0, phase="Succeeded")
    pod["spec"]["containers"][0]["name"] = pod["status"]["containerStatuses"][0]["name"] = container
    client.add(pod)

    async with following(client, display, clock, train_job(**finished("Complete", "Done", ""))):
        pass

    assert display.lines == [f"demo node-0: {number}" for number in range(SlowLog.lines)]
    assert display.warnings == warnings


TAGGED = b"[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus] "


async def test_messages_move_the_bar(client: FakeClient, display: RecordingDisplay, clock: ManualClock) -> None:
    """What the first node reports in its log is the progress at once, and no line; other nodes do not count."""
    for index in (0, 1):
        pod = client.add(node_pod("demo", index))
        text = b"begin\n" + TAGGED + b'{"progressPercentage": 3%d}\n' % index + TAGGED + b"nonsense\nend\n"
        log = client.log(pod["metadata"]["name"], "default")
        log.write(text)
        log.end()

    async with following(client, display, clock, train_job(state="Running")):
        await clock.advance(5)
        for index in (0, 1):
            client.add(node_pod("demo", index, phase="Succeeded"))
        client.add(train_job(**finished("Complete", "Done", "")))

    assert {line for line in display.lines if "node-0" in line} == {"demo node-0: begin", "demo node-0: end"}
    assert {state.progress.percentage for state in display.states if not state.is_terminal} == {None, 30}


async def test_display_that_cannot_show(
    client: FakeClient, display: RecordingDisplay, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the reader of the display has ended, the following ends with that error."""

    def fail(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(display, "state", fail)
    job = client.add(train_job(state="Created"))

    with pytest.raises(ExceptionGroup) as caught:
        await follow_jobs(client, [job], display, clock)

    assert caught.group_contains(BrokenPipeError)


def event(uid: str, about: dict[str, Any], reason: str = "FailedCreate", kind: str = "Warning") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"event-{uid}", "namespace": "default", "uid": uid},
        "type": kind,
        "reason": reason,
        "message": "quota exceeded",
        "lastTimestamp": "2026-01-01T00:00:05Z",
        "involvedObject": about,
    }


async def test_warnings_about_the_job(client: FakeClient, display: RecordingDisplay, clock: ManualClock) -> None:
    """Warning events are shown once if they are about the job, its JobSet, Jobs or pods, and no others.

    Those of the TrainJob controller, and that a Job or a JobSet has failed or starts again, are left out, because the
    state line tells the same.
    """
    async with following(client, display, clock, train_job()):
        pod_uid = "known-later"
        client.add(event("1", {"kind": "Pod", "name": "demo-node-0-0-abcde", "uid": pod_uid}))
        client.add(event("2", {"kind": "Pod", "name": "demo-2-node-0-0-abcde", "uid": "another job's"}))
        client.add(event("3", {"kind": "TrainJob", "name": "demo", "uid": "uid-of-demo"}, reason="Invalid"))
        client.add(event("4", {"kind": "TrainJob", "name": "demo", "uid": "uid-of-demo"}, reason="Invalid"))
        client.add(event("5", {"kind": "TrainJob", "name": "demo", "uid": "uid-of-demo"}, kind="Normal"))
        client.add(event("6", {"kind": "JobSet", "name": "demo", "uid": "never seen"}))
        reported_by_condition = event(
            "7", {"kind": "TrainJob", "name": "demo", "uid": "uid-of-demo"}, reason="JobsBuildFailed"
        )
        client.add(reported_by_condition | {"reportingComponent": "trainer"})
        for number, reason in enumerate(("FailedJobs", "FailurePolicy_disruption", "RestartJobSetFailurePolicyAction")):
            client.add(event(f"8{number}", {"kind": "JobSet", "name": "demo", "uid": "never seen"}, reason=reason))
        await clock.advance(1)
        assert len(display.warnings) == 2
        pod = node_pod("demo", 0, phase="Succeeded")
        client.add({**pod, "metadata": {**pod["metadata"], "uid": pod_uid}})
        await clock.advance(1)
        client.add(train_job(**finished("Complete", "Done", "")))

    assert sorted(display.warnings) == [
        "demo: JobSet demo: FailedCreate: quota exceeded",
        "demo: Pod demo-node-0-0-abcde: FailedCreate: quota exceeded",
        "demo: TrainJob demo: Invalid: quota exceeded",
    ]


@pytest.mark.parametrize(
    ("resource", "watched"),
    [pytest.param(EVENTS, "warnings of its namespace", id="events"), pytest.param(JOBS, "its Jobs", id="jobs")],
)
async def test_what_may_not_be_watched(
    client: FakeClient, display: RecordingDisplay, clock: ManualClock, resource: Resource, watched: str
) -> None:
    """Who may not list what the warnings come from reads so in a sentence, once."""
    client.faults.fail(ForbiddenError(403, "jane may not"), times=None, resource=resource)
    async with following(client, display, clock, train_job()):
        await clock.advance(60)
        client.add(train_job(**finished("Complete", "Done", "all Jobs are complete")))
    told = [each for each in display.warnings if "cannot be watched" in each]
    assert told == [f"demo: {watched} cannot be watched, trying again: jane may not"]


def gpu_is_missing(place: str) -> Object:
    """The TrainJob, Pending with the words of the scheduler about a pod."""
    message = f"pod {place}: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    pending = samples.condition("Pending", reason="Unschedulable", message=message)
    return samples.train_job(pending, state="Pending")


async def test_why_it_is_pending(client: FakeClient, display: RecordingDisplay, clock: ManualClock) -> None:
    """It is said in the sentence of `trainer explain`, with the remedy, once for each cause; its events say no more."""
    text = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    spec = {"containers": [{"name": "trainer", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]}
    for obj in (samples.jobset(), samples.JOB, samples.unscheduled(text, spec=spec), samples.node()):
        client.add(obj)
    async with following(client, display, clock, samples.train_job()):
        client.add(samples.event("Pod", "demo-node-0-0-abcde", "uid-of-pod-0", "FailedScheduling", text))
        for place in ("a", "b"):
            client.add(gpu_is_missing(place))
            await clock.advance(10)
            await eventually(lambda: [state.word for state in display.states][-1] == "Pending")
        await clock.advance(60)
        client.add(train_job(**finished("Complete", "Done", "")))

    lacking = "Unschedulable: no node that the pod may run on has nvidia.com/gpu"
    assert [state.explanation for state in display.states if state.word == "Pending"] == [lacking]
    (hint,) = display.hints
    assert hint.startswith("demo: ask for a resource that nodes have")
    assert display.warnings == []


async def test_pending_without_a_cause(client: FakeClient, display: RecordingDisplay, clock: ManualClock) -> None:
    """Where nothing can be read, the message of the TrainJob is shown."""
    client.faults.fail(ForbiddenError(403, "jane may not"), times=None, resource=JOBSETS)
    async with following(client, display, clock, samples.train_job()):
        client.add(samples.train_job(samples.condition("Pending", reason="Other", message="text"), state="Pending"))
        await eventually(lambda: [state.word for state in display.states][-1] == "Pending")
        client.add(train_job(**finished("Complete", "Done", "")))

    assert "Other: text" in [state.explanation for state in display.states]


async def test_a_pod_that_no_node_takes(client: FakeClient, display: RecordingDisplay, clock: ManualClock) -> None:
    """Its event is shown after a while where no manager makes the TrainJob Pending."""
    async with following(client, display, clock, samples.train_job()):
        client.add(samples.unscheduled("no node"))
        client.add(samples.event("Pod", "demo-node-0-0-abcde", "uid-of-pod-0", "FailedScheduling", "no node"))
        await clock.advance(14)
        assert display.warnings == []
        await clock.advance(2)
        client.add(train_job(**finished("Complete", "Done", "")))

    assert display.warnings == ["demo: Pod demo-node-0-0-abcde: FailedScheduling: no node"]


@pytest.mark.parametrize(
    ("line", "annotations", "hints"),
    [
        pytest.param("working on it", {}, 1, id="nothing"),
        pytest.param("Epoch 1/2 loss=0.5", {}, 0, id="plain lines"),
        pytest.param("working on it", {MONITORING: "false"}, 0, id="switched off"),
    ],
)
async def test_missing_progress(
    client: FakeClient,
    display: RecordingDisplay,
    clock: ManualClock,
    line: str,
    annotations: dict[str, str],
    hints: int,
) -> None:
    """A training that has run for a minute without progress makes the user read how to get it, once."""
    job = train_job(state="Running")
    job["metadata"]["annotations"] = annotations
    client.add(node_pod("demo", 0))
    client.log("demo-node-0-0-abcde", "default").write(f"{line}\n".encode())
    async with following(client, display, clock, job):
        await clock.advance(59)
        assert display.hints == []
        await clock.advance(300)
        client.log("demo-node-0-0-abcde", "default").end()
        client.add(node_pod("demo", 0, phase="Succeeded"))
        client.add(train_job(**finished("Complete", "Done", "")))

    assert len(display.hints) == hints
    assert all("docs/progress.md" in hint for hint in display.hints)


def test_exit_code_of_several() -> None:
    """All must be complete: one that is not counts, also one whose end was not seen."""
    good, unseen = JobOutcome(JobState("Complete")), JobOutcome(None)
    a, b = ObjectKey("default", "a"), ObjectKey("default", "b")

    assert exit_code({a: good, b: good}) == 0
    assert exit_code({a: good, b: unseen}) == 1
