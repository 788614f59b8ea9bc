from __future__ import annotations

import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.trainjob_status import TrainerStatus
from trainer.kube.field_errors import FieldError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey, find_condition, uid_of
from trainer.kube.podlogs.instant import Instant
from trainer.progress.metrics import ProgressSeries
from trainer.progress.train_jobs import REMAINING, ShownProgress, shown_steps
from trainer.progress.writer import FIELD_MANAGER, ProgressWriter
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock, settle, statuses

KEY = ObjectKey("team-a", "digits")
INTERVAL = 5.0


def train_job(**status: object) -> Object:
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": "TrainJob",
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        "spec": {"runtimeRef": {"name": "torch"}},
        "status": status,
    }


COMPLETE = {"conditions": [{"type": "Complete", "status": "True", "reason": "Done"}]}


class Desk:
    """A manager with a writer, and a training that has reported some percentage."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.client = FakeClient(train_job(), resources=[TRAIN_JOBS, JOBSETS], clock=self.clock)
        self.manager = Manager(self.client, clock=self.clock)
        informer = self.manager.informer(TRAIN_JOBS)
        self.series = self.manager.metrics.series(ProgressSeries)
        self.writer = ProgressWriter(
            self.manager,
            informer.lister,
            INTERVAL,
            self.series,
            lambda _: self.stall,
            steps_of=shown_steps,
            is_silent=lambda _: False,
        )
        self.percentage = 0
        self.stall: str | None = None

    @property
    def uid(self) -> str:
        return uid_of(self.client.objects(TRAIN_JOBS)[0])

    def report(self, percentage: int, uid: str | None = None) -> None:
        self.percentage = percentage
        now = Instant.of(self.clock.now())
        self.writer.submit(KEY, uid or self.uid, lambda _: self.status(now), now)

    def status(self, time: Instant) -> TrainerStatus:
        return TrainerStatus(
            progress_percentage=self.percentage,
            estimated_remaining_seconds=60,
            estimated_remaining_time_summary="1 minute",
            last_updated_time=time.second,
        )

    @property
    def written(self) -> list[int]:
        """The percentages that were written, in their order."""
        return [
            write.body["status"]["trainerStatus"]["progressPercentage"] for write in self.client.requests_of("apply")
        ]

    @property
    def shown(self) -> Object:
        """Progress as the TrainJob shows it."""
        obj = self.client.find(TRAIN_JOBS, KEY.name, KEY.namespace)
        return ((obj or {}).get("status") or {}).get("trainerStatus") or {}

    def count(self, result: str) -> float:
        value = self.manager.metrics.registry.get_sample_value(
            "trainer_progress_status_writes_total", {"result": result}
        )
        return value or 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.manager.run)
            await self.manager.wait_for_start()
            await settle()
            yield
            tasks.cancel_scope.cancel()


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_throttle(desk: Desk) -> None:
    """The first message is written at once, later ones at most once per interval, and always the newest."""
    async with desk.open():
        for percentage in range(10):
            desk.report(percentage)
            await settle()
            assert desk.written == [0]
            await desk.clock.advance(0.1)
        await desk.clock.advance(INTERVAL - 1.0 - 0.01)
        assert desk.written == [0]
        await desk.clock.advance(0.01)
        assert desk.written == [0, 9]
        await desk.clock.advance(100)
        assert desk.written == [0, 9]
        desk.report(50)
        await settle()
        assert desk.written == [0, 9, 50]


async def test_flush_is_limited(desk: Desk) -> None:
    """Only the last word of a run is written out of turn more than once per interval."""
    async with desk.open():
        for percentage in range(4):
            desk.report(percentage)
            desk.writer.flush(KEY)
            await desk.clock.advance(1)
        assert desk.written == [0]
        await desk.clock.advance(1)
        assert desk.written == [0, 3]
        desk.report(4)
        desk.writer.flush(KEY)
        await settle()
        assert desk.written == [0, 3, 4]
        desk.report(5)
        desk.writer.flush(KEY, is_last=True)
        await settle()
        assert desk.written == [0, 3, 4, 5]


async def test_conflict(desk: Desk) -> None:
    """A write that meets another one is repeated: it may have been the last."""
    desk.client.faults.fail(statuses.conflict(TRAIN_JOBS, KEY.name), verb="apply", times=1)
    async with desk.open():
        desk.report(100)
        await settle()
        await desk.clock.advance(1)
        assert desk.shown["progressPercentage"] == 100


async def test_request(desk: Desk) -> None:
    """The progress is applied to the status alone, by a field manager of its own, to this very TrainJob."""
    async with desk.open():
        desk.report(7)
        await settle()
    (write,) = desk.client.requests_of("apply")
    assert (write.resource, write.subresource, write.field_manager) == (TRAIN_JOBS, "status", FIELD_MANAGER)
    assert write.body["metadata"] == {"name": "digits", "namespace": "team-a", "uid": desk.uid}
    assert list(write.body["status"]) == ["trainerStatus"]


async def test_failure(desk: Desk) -> None:
    """A write that fails is repeated with what is newest by then."""
    desk.client.faults.fail(statuses.internal_error("etcd is down"), verb="apply", times=2)
    async with desk.open():
        desk.report(1)
        await settle()
        desk.percentage = 2
        await desk.clock.advance(1)
        assert desk.shown["progressPercentage"] == 2
        assert (desk.count("error"), desk.count("success")) == (2, 1)


async def test_refusal(desk: Desk) -> None:
    """A progress that the API server never takes is not sent again and again; the next one is."""
    desk.client.faults.fail(
        statuses.invalid("TrainJob", TRAIN_JOBS.group, KEY.name, [FieldError("", "status is wrong")]),
        verb="apply",
        times=1,
    )
    async with desk.open():
        desk.report(1)
        await settle()
        await desk.clock.advance(600)
        assert desk.written == [1]
        desk.report(2)
        await settle()
        assert desk.shown["progressPercentage"] == 2


async def test_message_after_a_closed_account(desk: Desk) -> None:
    """A message that arrives after the end was written is shown without what remains."""
    async with desk.open():
        desk.report(40)
        await settle()
        obj = desk.client.objects(TRAIN_JOBS)[0]
        desk.client.add(obj | {"status": obj["status"] | COMPLETE})
        await settle()
        desk.writer.close(KEY)
        await desk.clock.advance(INTERVAL)
        desk.report(100)
        await desk.clock.advance(INTERVAL)
        assert desk.written == [40, 40, 100]
        assert REMAINING.isdisjoint(desk.shown)


async def test_nothing_is_kept_after_the_end(desk: Desk) -> None:
    """Of a TrainJob that has ended and is shown as it was, nothing stays in memory."""

    def status(_: ShownProgress) -> TrainerStatus:
        return desk.status(now)

    now = Instant.of(desk.clock.now())
    kept = weakref.ref(status)
    async with desk.open():
        desk.writer.submit(KEY, desk.uid, status, now)
        del status
        await settle()
        assert kept() is not None
        desk.writer.close(KEY)
        await desk.clock.advance(INTERVAL)
        assert kept() is None


async def test_deletion_during_the_last_write(desk: Desk) -> None:
    """A TrainJob that goes away while its last progress is written is no error, and nothing of it stays."""
    async with desk.open():
        desk.report(40)
        await settle()
        obj = desk.client.objects(TRAIN_JOBS)[0]
        desk.client.add(obj | {"status": obj["status"] | COMPLETE})
        await settle()
        held = desk.client.faults.hold(verb="apply", answers=True)
        desk.writer.close(KEY)
        await desk.clock.advance(INTERVAL)
        assert held.waiting
        desk.writer.forget(KEY)
        held.release()
        await settle()
        assert not desk.writer.has_state_of(KEY)
        labels = {"controller": "trainjob-progress-status"}
        errors = desk.manager.metrics.registry.get_sample_value("controller_runtime_reconcile_errors_total", labels)
        assert (desk.count("success"), errors) == (2, 0)


@pytest.mark.parametrize("end", ["Complete", "Failed"])
@pytest.mark.parametrize(
    "remaining",
    [
        pytest.param({"estimatedRemainingTimeSummary": "1 minute", "estimatedRemainingSeconds": 60}, id="both"),
        pytest.param({"estimatedRemainingSeconds": 0}, id="zero"),
    ],
)
async def test_end_seen_by_another_manager(end: str, remaining: Object) -> None:
    """A manager that finds a TrainJob ended takes back what remains, too, and only that."""
    desk = Desk()
    shown = {"progressPercentage": 40, "lastUpdatedTime": "2026-01-01T00:00:00Z"} | remaining
    obj = desk.client.objects(TRAIN_JOBS)[0]
    desk.client.add(obj | {"status": {"conditions": [{"type": end, "status": "True", "reason": "Done"}]}})
    applied = {name: obj[name] for name in ("apiVersion", "kind")} | {
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        "status": {"trainerStatus": shown},
    }
    await desk.client.apply(TRAIN_JOBS, applied, field_manager=FIELD_MANAGER, subresource="status")
    async with desk.open():
        desk.writer.refresh(KEY)
        await settle()
        assert desk.shown == {"progressPercentage": 40, "lastUpdatedTime": "2026-01-01T00:00:00Z"}


async def test_end_of_what_the_released_trainer_has_written(desk: Desk) -> None:
    """No time remains, although it belongs to another field manager; who has reported the rest does not matter."""
    time = "2026-01-01T00:00:00Z"
    progress = {"progressPercentage": 50, "estimatedRemainingSeconds": 60, "lastUpdatedTime": time}
    posted = train_job() | {"status": {"trainerStatus": progress}}
    peer = desk.client.peer()
    await peer.apply(TRAIN_JOBS, posted, field_manager="trainer-status", force=True, subresource="status")
    await peer.patch(TRAIN_JOBS, KEY.name, {"status": COMPLETE}, KEY.namespace, subresource="status")
    async with desk.open():
        desk.writer.refresh(KEY)
        await settle()
        assert desk.shown == {"progressPercentage": 50, "lastUpdatedTime": time}
        writes = len(desk.client.requests)
        desk.writer.refresh(KEY)
        await settle()
        assert len(desk.client.requests) == writes


async def test_lag(desk: Desk) -> None:
    """The lag is measured from the log's time to the answer of the API server."""
    async with desk.open():
        desk.report(1)
        await settle()
        desk.report(2)
        await desk.clock.advance(INTERVAL)
    assert desk.manager.metrics.registry.get_sample_value("trainer_progress_lag_seconds_count") == 2
    assert desk.manager.metrics.registry.get_sample_value("trainer_progress_lag_seconds_sum") == pytest.approx(INTERVAL)


@pytest.mark.parametrize(
    ("shown", "stall", "expected"),
    [
        pytest.param(None, None, None, id="never stalled"),
        pytest.param(None, "x", ("True", "NoProgress", "x"), id="begins"),
        pytest.param(("True", "NoProgress", "x"), None, ("False", "StallEnded", "x"), id="ends"),
        pytest.param(("Unknown", "", ""), "y", ("True", "NoProgress", "y"), id="what is no condition is replaced"),
    ],
)
async def test_condition_stalled(
    desk: Desk, shown: tuple[str, str, str] | None, stall: str | None, expected: tuple[str, str, str] | None
) -> None:
    """It is written with the progress, keeps what was reported, and is written only when it changes."""
    obj = desk.client.objects(TRAIN_JOBS)[0]
    since = {"lastTransitionTime": "2025-01-01T00:00:00Z", "observedGeneration": 1}
    before = (
        [{"type": "Stalled", **dict(zip(("status", "reason", "message"), shown, strict=True)), **since}]
        if shown
        else []
    )
    desk.client.add(obj | {"status": {"conditions": before}})
    desk.stall = stall
    async with desk.open():
        desk.writer.refresh(KEY)
        await settle()
        stored = desk.client.objects(TRAIN_JOBS)[0]
        found = find_condition(stored, "Stalled")
        assert (found and (found["status"], found["reason"], found["message"])) == expected
        assert len(desk.client.requests_of("apply")) == (0 if shown == expected else 1)
        if found and shown and found["status"] == shown[0]:
            assert found["lastTransitionTime"] == "2025-01-01T00:00:00Z"
