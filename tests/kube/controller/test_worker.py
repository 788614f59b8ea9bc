"""Worker: calls of the reconcile function and their outcomes."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import structlog
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from tests.kube.controller.doubles import Reconciler
from trainer.kube.controller.reconcile import Result
from trainer.kube.controller.worker import Worker
from trainer.kube.errors import (
    ConflictError,
    ForbiddenError,
    InternalError,
    LeadershipLostError,
    NamespaceNotFoundError,
    NamespaceTerminatingError,
    NotFoundError,
    TerminalError,
    TransportError,
)
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.controllers import ControllerMetrics
from trainer.kube.objects import ObjectKey
from trainer.kube.queue.workqueue import LOW_PRIORITY, WorkQueue
from trainer_kube_testing import ManualClock, settle

A = ObjectKey("ns", "a")
B = ObjectKey("ns", "b")
TERMINATING = NamespaceTerminatingError(403, "ns is being terminated")
RESULTS = ("success", "requeue", "requeue_after", "error")


class Bench:
    """A worker with all that it needs."""

    def __init__(self, clock: ManualClock, background: Background) -> None:
        self.clock = clock
        self.queue: WorkQueue[ObjectKey] = WorkQueue("test", clock=clock, metrics=Metrics())
        self.metrics = Metrics()
        self._background = background

    async def start(self, *script: object) -> Reconciler:
        """Have a worker play the script with key A."""
        reconciler = Reconciler(*script)
        worker = Worker(
            reconciler,
            self.queue,
            clock=self.clock,
            metrics=ControllerMetrics(self.metrics, "test"),
            identity={"controller": "test", "controller_group": "batch", "controller_kind": "Job"},
        )
        self.scope = anyio.CancelScope()
        self.task = self._background(self._run(worker))
        self.queue.add(A)
        await settle()
        return reconciler

    async def _run(self, worker: Worker) -> None:
        with self.scope:
            await worker.run()

    def sample(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"controller_runtime_{name}", {"controller": "test"} | labels)

    def results(self) -> dict[str, float]:
        """Results that have been counted."""
        counts = {result: self.sample("reconcile_total", result=result) for result in RESULTS}
        return {result: count for result, count in counts.items() if count}


@pytest.fixture
def bench(clock: ManualClock, background: Background) -> Bench:
    return Bench(clock, background)


@pytest.mark.parametrize(
    ("outcome", "result", "pauses"),
    [
        pytest.param(None, "success", [], id="none"),
        pytest.param(Result(), "success", [], id="empty-result"),
        pytest.param(Result(requeue_after=60), "requeue_after", [60], id="requeue-after"),
        pytest.param(Result(requeue=True), "requeue", [0.005], id="requeue"),
        pytest.param(Result(requeue=True, requeue_after=60), "requeue_after", [60], id="the-given-time-wins"),
        pytest.param(ValueError("x"), "error", [0.005], id="any-exception"),
        pytest.param(InternalError(500, "x"), "error", [0.005], id="api-error"),
        pytest.param(TerminalError("x"), "error", [], id="terminal-error"),
        pytest.param(ExceptionGroup("", [TerminalError("x")]), "error", [], id="terminal-error-of-a-task-group"),
        pytest.param(ExceptionGroup("", [TerminalError("x"), ValueError()]), "error", [0.005], id="not-only-terminal"),
        pytest.param(TERMINATING, "success", [], id="namespace-being-deleted"),
        pytest.param(NamespaceNotFoundError(404, "no ns"), "success", [], id="namespace-that-is-gone"),
        pytest.param(NotFoundError(404, "no pod"), "error", [0.005], id="anything-else-that-is-gone"),
        pytest.param(Result(error=TERMINATING), "success", [], id="namespace-being-deleted-as-a-result"),
        pytest.param(ExceptionGroup("", [TERMINATING, InternalError(500, "x")]), "error", [0.005], id="not-only-that"),
        pytest.param("nonsense", "error", [0.005], id="no-result"),
        pytest.param(Result(error=ValueError("x")), "error", [0.005], id="error"),
        pytest.param(Result(error=TerminalError("x"), requeue_after=60), "error", [60], id="error-with-longest-pause"),
    ],
)
async def test_outcome(bench: Bench, outcome: object, result: str, pauses: list[float]) -> None:
    """Each outcome is counted under its result and leads to the next round at its time, or to none."""
    reconciler = await bench.start(outcome)
    assert bench.results() == {result: 1}
    assert bench.clock.sleeping == pytest.approx(pauses)
    await bench.clock.advance(61)
    assert len(reconciler.keys) == 1 + len(pauses)


async def test_an_error_is_retried_after_the_given_time_at_the_latest(bench: Bench) -> None:
    """The backoff would grow beyond it."""
    reconciler = await bench.start(*(Result(error=ValueError("x"), requeue_after=0.015) for _ in range(4)))
    for pause in (0.005, 0.01, 0.015, 0.015):
        assert bench.clock.sleeping == pytest.approx([pause])
        await bench.clock.advance(pause)
    assert len(reconciler.keys) == 5
    assert bench.results() == {"error": 4, "success": 1}


async def test_requeue_after_zero_repeats_at_once(bench: Bench) -> None:
    """A reconcile may do its work in steps between which others get their turn."""
    reconciler = await bench.start(Result(requeue_after=0))
    assert reconciler.keys == [A, A]
    assert bench.results() == {"requeue_after": 1, "success": 1}


async def test_all_series_exist_before_the_first_reconcile(bench: Bench) -> None:
    """Or else `rate()` would not see the first error."""
    ControllerMetrics(bench.metrics, "test")
    assert [bench.sample("reconcile_total", result=result) for result in RESULTS] == [0, 0, 0, 0]
    names = ("reconcile_errors", "terminal_reconcile_errors", "reconcile_panics")
    assert [bench.sample(f"{name}_total") for name in names] == [0, 0, 0]
    assert bench.sample("reconcile_time_seconds_count") == 0


@pytest.mark.parametrize(
    ("success", "pause"),
    [
        pytest.param(None, 0.005, id="success"),
        pytest.param(Result(requeue_after=1), 0.005, id="requeue-after"),
        pytest.param(Result(requeue=True), 0.02, id="requeue-goes-on-counting"),
    ],
)
async def test_backoff_starts_over_after_success(bench: Bench, success: Result | None, pause: float) -> None:
    """The next failure waits as the first did."""
    await bench.start(ValueError(), success, ValueError())
    await bench.clock.advance(0.005)
    if success is None:
        bench.queue.add(A)
    await bench.clock.advance(bench.clock.sleeping[0] if success else 0)
    assert bench.clock.sleeping == pytest.approx([pause])


async def run_until_idle(worker: Worker) -> None:
    """Work off what is ready, so that afterwards nobody takes keys before all of them are there."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        await settle()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param(Result(requeue_after=1), [A, B, A], id="kept"),
        pytest.param(Result(requeue=True), [A, B, A], id="kept-with-backoff"),
        pytest.param(ValueError(), [A, B, A], id="kept-after-a-failure"),
        pytest.param(Result(requeue_after=1, priority=5), [A, A, B], id="chosen"),
        pytest.param(Result(requeue=True, priority=5), [A, A, B], id="chosen-with-backoff"),
    ],
)
async def test_priority_of_the_next_round(bench: Bench, result: object, expected: list[ObjectKey]) -> None:
    """A key of the initial list stays behind fresh ones unless the result says otherwise."""
    bench.queue.add(A, LOW_PRIORITY)
    reconciler = Reconciler(result)
    worker = Worker(
        reconciler,
        bench.queue,
        clock=bench.clock,
        metrics=ControllerMetrics(bench.metrics, "test"),
        identity={},
    )
    await run_until_idle(worker)
    await bench.clock.advance(1)
    bench.queue.add(B)
    await run_until_idle(worker)
    assert reconciler.keys == expected


async def test_log_events_carry_the_identity_of_the_reconcile(bench: Bench) -> None:
    """Those of the reconcile's own code too; each reconcile has an id of its own."""

    async def act() -> None:
        structlog.get_logger().info("acted")

    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logs:
        await bench.start(act, act)
        bench.queue.add(B)
        await settle()
    first, second = map(dict, logs)
    assert first | {"reconcile_id": ""} == {
        "event": "acted",
        "log_level": "info",
        "controller": "test",
        "controller_group": "batch",
        "controller_kind": "Job",
        "namespace": "ns",
        "name": "a",
        "reconcile_id": "",
    }
    assert second["name"] == "b"
    assert len({first["reconcile_id"], second["reconcile_id"], ""}) == 3


async def test_task_is_named_after_what_it_reconciles(bench: Bench) -> None:
    """The name of a task has the key of its object, so that a task that blocks the event loop can be identified."""
    names: list[str] = []

    async def act() -> None:
        task = asyncio.current_task()
        assert task is not None
        names.append(task.get_name())

    await bench.start(act)
    assert names == ["controller test reconciling ns/a"]


@pytest.mark.parametrize(
    ("error", "level", "text"),
    [
        pytest.param(ConflictError(409, "stale"), "info", "stale", id="stale-copy-part-of-normal-life"),
        pytest.param(InternalError(500, "etcd is away"), "warning", "etcd is away", id="refusal-of-the-api-server"),
        pytest.param(TransportError("no answer"), "warning", "no answer", id="no-answer"),
        pytest.param(TerminalError("no such runtime"), "error", "no such runtime", id="terminal"),
        pytest.param(
            ExceptionGroup("", [ExceptionGroup("", [ForbiddenError(403, "a")]), NotFoundError(404, "b")]),
            "warning",
            "a; b",
            id="several-requests-in-a-task-group",
        ),
    ],
)
async def test_expected_failure_is_logged_without_a_traceback(
    bench: Bench, error: Exception, level: str, text: str
) -> None:
    """What the API server said is logged, not where in the reconcile it said so; it is no crash."""
    with capture_logs() as logs:
        await bench.start(error)
    [entry] = logs
    assert (entry["log_level"], entry["error"]) == (level, text)
    assert "exc_info" not in entry
    assert bench.sample("reconcile_errors_total") == 1
    assert bench.sample("reconcile_panics_total") == 0
    assert bench.sample("terminal_reconcile_errors_total") == (1 if level == "error" else 0)


async def test_namespace_that_is_being_deleted(bench: Bench) -> None:
    """What is for an object that goes with its namespace ends with one line in the log, and is no failure."""
    with capture_logs() as logs:
        await bench.start(TERMINATING)
    [entry] = logs
    assert (entry["log_level"], entry["event"]) == ("info", "gave up the reconcile, its namespace is being deleted")
    assert bench.sample("reconcile_errors_total") == 0


async def test_crash_is_contained_counted_and_logged_with_its_traceback(bench: Bench) -> None:
    """A mistake in a reconcile ends neither the worker nor the backoff of its key."""
    crash = ZeroDivisionError()
    with capture_logs() as logs:
        reconciler = await bench.start(crash, crash)
    [entry] = logs
    assert (entry["log_level"], entry["exc_info"], entry["failures"]) == ("error", crash, 1)
    assert bench.sample("reconcile_panics_total") == 1
    assert bench.sample("reconcile_errors_total") == 1
    await bench.clock.advance(0.005)
    assert bench.clock.sleeping == pytest.approx([0.01])
    await bench.clock.advance(1)
    assert reconciler.keys == [A, A, A]


async def test_what_is_no_result_is_named(bench: Bench) -> None:
    """A reconcile that returns something else gets an error instead of ending the worker."""
    with capture_logs() as logs:
        await bench.start({"requeue": True})
    assert str(logs[0]["exc_info"]) == "the reconcile returned dict instead of Result or None"


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(LeadershipLostError("write refused"), id="alone"),
        pytest.param(
            ExceptionGroup("", [TransportError("no answer"), LeadershipLostError("write refused")]), id="among-others"
        ),
    ],
)
async def test_lost_leadership_is_neither_retried_nor_a_failure(bench: Bench, error: Exception) -> None:
    """The process is about to end; the next leader reconciles the key."""
    with capture_logs() as logs:
        reconciler = await bench.start(error)
    assert [entry["log_level"] for entry in logs] == ["info"]
    assert bench.results() == {}
    assert bench.sample("reconcile_errors_total") == 0
    await bench.clock.advance(2000)
    assert reconciler.keys == [A]


async def test_shutdown_is_no_failure(bench: Bench) -> None:
    """A reconcile that is cancelled because everything stops is not logged, counted or retried."""
    with capture_logs() as logs:
        await bench.start(anyio.sleep_forever)
        bench.scope.cancel()
        await asyncio.wait([bench.task])
    assert logs == []
    assert bench.results() == {}
    assert bench.queue.failures(A) == 0
    assert len(bench.queue) == 0


def cancel_this_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def raise_cancelled() -> None:
    raise asyncio.CancelledError


async def cancel_itself() -> None:
    cancel_this_task()
    await anyio.lowlevel.checkpoint()


async def cancel_itself_and_fail() -> None:
    cancel_this_task()
    raise TransportError("no answer")


async def cancel_itself_and_return() -> None:
    cancel_this_task()


@pytest.mark.parametrize(
    ("reconcile", "rounds"),
    [
        pytest.param(raise_cancelled, 2, id="awaited-something-cancelled"),
        pytest.param(cancel_itself, 2, id="itself"),
        pytest.param(cancel_itself_and_fail, 2, id="itself-and-failed"),
        pytest.param(cancel_itself_and_return, 1, id="itself-and-returned"),
    ],
)
async def test_stray_cancellation_does_not_end_the_worker(
    bench: Bench, reconcile: Callable[[], Awaitable[None]], rounds: int
) -> None:
    """A reconcile that cancels itself, or awaits something cancelled, is retried if that was its end; others go on."""
    reconciler = await bench.start(reconcile)
    await bench.clock.advance(1)
    assert reconciler.keys == [A] * rounds
    bench.queue.add(B)
    await settle()
    assert reconciler.keys[rounds:] == [B]
    bench.scope.cancel()
    await asyncio.wait([bench.task])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"requeue_after": timedelta(seconds=5)}, "requeue_after must be seconds, not", id="timedelta"),
        pytest.param({"requeue_after": "5"}, "requeue_after must be seconds, not '5'", id="text"),
        pytest.param({"requeue_after": math.nan}, "requeue_after must be seconds, not nan", id="no-number"),
        pytest.param({"priority": "high"}, "priority must be an integer, not 'high'", id="priority"),
    ],
)
async def test_wrong_result_is_a_failure_of_the_reconcile(
    bench: Bench, arguments: dict[str, Any], message: str
) -> None:
    """What a type checker would find does not end the worker, and the log names the field."""

    async def answer() -> Result:
        return Result(**arguments)

    with capture_logs() as logs:
        reconciler = await bench.start(answer)
        await bench.clock.advance(1)
    assert message in str(logs[0]["exc_info"])
    assert reconciler.keys == [A, A]
    assert bench.sample("reconcile_panics_total") == 1
