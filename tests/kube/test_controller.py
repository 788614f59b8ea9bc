"""Controller: from changes to calls of the reconcile function."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import anyio
import pytest
import structlog
from structlog.testing import capture_logs

from tests.kube.objects import job, owned_by, pod
from trainer.kube.controller import Controller, Result, TerminalError
from trainer.kube.errors import ConflictError, InternalError
from trainer.kube.manager import Manager
from trainer.kube.objects import ObjectKey, controller_reference
from trainer.kube.resource import CONFIG_MAPS, JOBS, PODS
from trainer.kube.testing import FakeClient, ManualClock, settle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.kube.conftest import Background
    from trainer.kube.objects import Object

A = ObjectKey("ns", "a")


class Reconciler:
    """A reconcile function that plays a script, then succeeds."""

    def __init__(self, *script: Result | BaseException | Callable[[], Awaitable[None]] | None) -> None:
        self._script = list(script)
        self.keys: list[ObjectKey] = []

    async def __call__(self, key: ObjectKey) -> Result | None:
        self.keys.append(key)
        step = self._script.pop(0) if self._script else None
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, Result) or step is None:
            return step
        await step()
        return None


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(job("a"), clock=clock)


@pytest.fixture
def manager(client: FakeClient, clock: ManualClock) -> Manager:
    return Manager(client, clock=clock)


def sample(manager: Manager, name: str, **labels: str) -> float:
    value = manager.metrics.registry.get_sample_value(f"controller_runtime_{name}", {"controller": "test"} | labels)
    assert value is not None
    return value


async def start(manager: Manager, background: Background) -> None:
    background(manager.run())
    await manager.wait_for_start()
    await settle()


async def test_existing_objects_are_reconciled_once_workers_start(manager: Manager, background: Background) -> None:
    """The initial list leads to one reconcile per object, after all informers have synced."""
    reconciler = Reconciler()
    Controller("test", manager, reconciler).reconciles(JOBS).owns(PODS)
    await start(manager, background)
    assert reconciler.keys == [A]
    assert sample(manager, "reconcile_total", result="success") == 1
    assert sample(manager, "reconcile_total", result="error") == 0


async def test_changes_of_owned_and_watched_objects_lead_to_reconciles(
    manager: Manager, client: FakeClient, background: Background
) -> None:
    """Owned objects map to their controller owner, watched ones through the map function."""
    reconciler = Reconciler()
    controller = Controller("test", manager, reconciler).reconciles(JOBS).owns(PODS)
    controller.watches(CONFIG_MAPS, lambda obj: [ObjectKey("ns", obj["data"]["job"])])
    await start(manager, background)
    reconciler.keys.clear()
    owner = await client.get(JOBS, "a", "ns")
    await client.create(PODS, pod("p", ownerReferences=[controller_reference(owner)]))
    await settle()
    await client.create(PODS, pod("q", ownerReferences=[owned_by("JobSet", "x", "jobset.x-k8s.io/v1alpha2")]))
    await client.create(CONFIG_MAPS, {"metadata": {"name": "c", "namespace": "ns"}, "data": {"job": "b"}})
    await settle()
    assert reconciler.keys == [A, ObjectKey("ns", "b")]


async def test_deletion_is_reconciled(manager: Manager, client: FakeClient, background: Background) -> None:
    """A reconcile also learns that its object is gone."""
    reconciler = Reconciler()
    Controller("test", manager, reconciler).reconciles(JOBS)
    await start(manager, background)
    await client.delete(JOBS, "a", "ns")
    await settle()
    assert reconciler.keys == [A, A]


def generation_changed(old: Object | None, new: Object | None) -> bool:
    return old is None or new is None or old["metadata"]["generation"] != new["metadata"]["generation"]


async def test_predicate_filters_changes(manager: Manager, client: FakeClient, background: Background) -> None:
    """Changes that the predicate does not want cause no reconcile."""
    reconciler = Reconciler()
    Controller("test", manager, reconciler).reconciles(JOBS, predicate=generation_changed)
    await start(manager, background)
    await client.patch(JOBS, "a", {"metadata": {"labels": {"x": "y"}}}, "ns")
    await settle()
    assert len(reconciler.keys) == 1
    await client.patch(JOBS, "a", {"spec": {"suspend": True}}, "ns")
    await settle()
    assert len(reconciler.keys) == 2


async def test_failure_is_logged_counted_and_retried_with_backoff(
    manager: Manager, background: Background, clock: ManualClock
) -> None:
    """Each failure of a key doubles its pause; the traceback is logged with the identity of the reconcile."""
    reconciler = Reconciler(ValueError("first"), ValueError("second"))
    Controller("test", manager, reconciler).reconciles(JOBS)
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logs:
        await start(manager, background)
    [entry] = [entry for entry in logs if entry["log_level"] == "error"]
    assert entry["exc_info"] is True
    assert (entry["controller"], entry["namespace"], entry["name"]) == ("test", "ns", "a")
    assert entry["reconcile_id"]
    assert clock.sleeping[0] == pytest.approx(0.005)
    await clock.advance(0.006)
    assert len(reconciler.keys) == 2
    assert clock.sleeping[0] == pytest.approx(0.01, abs=0.002)
    await clock.advance(0.02)
    assert len(reconciler.keys) == 3
    assert clock.sleeping[0] > 100
    assert sample(manager, "reconcile_errors_total") == 2
    assert sample(manager, "reconcile_total", result="error") == 2
    assert sample(manager, "reconcile_total", result="success") == 1


@pytest.mark.parametrize(
    ("error", "level"),
    [
        pytest.param(ConflictError(409, "the object has been modified"), "info", id="stale copy, part of normal life"),
        pytest.param(InternalError(500, "etcd is away"), "warning", id="refusal of the API server"),
    ],
)
async def test_api_error_is_retried_without_a_traceback(
    manager: Manager, background: Background, clock: ManualClock, error: Exception, level: str
) -> None:
    """What the API server said is logged, not where in the reconcile it said so."""
    reconciler = Reconciler(error)
    Controller("test", manager, reconciler).reconciles(JOBS)
    with capture_logs() as logs:
        await start(manager, background)
    [entry] = [entry for entry in logs if entry["event"].startswith("reconcile")]
    assert (entry["log_level"], entry["error"]) == (level, str(error))
    assert "exc_info" not in entry
    await clock.advance(1)
    assert len(reconciler.keys) == 2


async def test_terminal_error_is_not_retried(
    manager: Manager, background: Background, client: FakeClient, clock: ManualClock
) -> None:
    """Only a change of the object leads to the next attempt."""
    reconciler = Reconciler(TerminalError("nothing to be done"))
    Controller("test", manager, reconciler).reconciles(JOBS)
    await start(manager, background)
    await clock.advance(2000)
    assert len(reconciler.keys) == 1
    assert sample(manager, "terminal_reconcile_errors_total") == 1
    assert sample(manager, "reconcile_errors_total") == 1
    await client.patch(JOBS, "a", {"metadata": {"labels": {"x": "y"}}}, "ns")
    await settle()
    assert len(reconciler.keys) == 2


async def test_requeue_after_repeats_later_and_resets_the_backoff(
    manager: Manager, background: Background, clock: ManualClock
) -> None:
    """A success that asks for another look gets it at its time."""
    reconciler = Reconciler(ValueError("x"), Result(requeue_after=60), ValueError("x"))
    Controller("test", manager, reconciler).reconciles(JOBS)
    await start(manager, background)
    await clock.advance(1)
    assert len(reconciler.keys) == 2
    await clock.advance(58)
    assert len(reconciler.keys) == 2
    await clock.advance(clock.sleeping[0])
    assert len(reconciler.keys) == 3
    assert clock.sleeping[0] == pytest.approx(0.005)
    assert sample(manager, "reconcile_total", result="requeue_after") == 1


async def test_enqueue_by_hand(manager: Manager, background: Background, clock: ManualClock) -> None:
    """Others may ask for a reconcile, now or later."""
    reconciler = Reconciler()
    controller = Controller("test", manager, reconciler)
    await start(manager, background)
    controller.enqueue(A)
    controller.enqueue(ObjectKey("ns", "b"), after=5)
    await settle()
    assert reconciler.keys == [A]
    await clock.advance(5)
    assert reconciler.keys == [A, ObjectKey("ns", "b")]


async def test_one_key_is_never_reconciled_twice_at_once(
    manager: Manager, background: Background, client: FakeClient, clock: ManualClock
) -> None:
    """With several workers different keys run together and the same key does not; changes meanwhile are not lost."""
    running: Counter[ObjectKey] = Counter()
    most_at_once = 0
    rounds: Counter[ObjectKey] = Counter()

    async def reconcile(key: ObjectKey) -> None:
        nonlocal most_at_once
        running[key] += 1
        assert running[key] == 1
        most_at_once = max(most_at_once, running.total())
        await clock.sleep(10)
        running[key] -= 1
        rounds[key] += 1

    client.add(job("b"))
    client.add(job("c"))
    Controller("test", manager, reconcile, max_concurrent_reconciles=2).reconciles(JOBS)
    await start(manager, background)
    await client.patch(JOBS, "a", {"metadata": {"labels": {"x": "1"}}}, "ns")
    await client.patch(JOBS, "a", {"metadata": {"labels": {"x": "2"}}}, "ns")
    await clock.advance(100)
    assert most_at_once == 2
    assert rounds == {A: 2, ObjectKey("ns", "b"): 1, ObjectKey("ns", "c"): 1}
    assert sample(manager, "max_concurrent_reconciles") == 2
    assert sample(manager, "active_workers") == 0


async def test_slow_reconcile_is_cancelled_and_retried(
    manager: Manager, background: Background, clock: ManualClock
) -> None:
    """The reconcile timeout counts as a failure of its own kind."""
    reconciler = Reconciler(anyio.sleep_forever)
    Controller("test", manager, reconciler, reconcile_timeout=30).reconciles(JOBS)
    await start(manager, background)
    await clock.advance(29)
    assert sample(manager, "reconcile_timeouts_total") == 0
    await clock.advance(2)
    assert len(reconciler.keys) == 2
    assert sample(manager, "reconcile_timeouts_total") == 1
    assert sample(manager, "reconcile_errors_total") == 1


async def test_shutdown_is_no_failure(manager: Manager, background: Background) -> None:
    """A reconcile that is cancelled because everything stops is neither logged nor counted as failed."""
    Controller("test", manager, Reconciler(anyio.sleep_forever)).reconciles(JOBS)
    with capture_logs() as logs:
        running = background(manager.run())
        await manager.wait_for_start()
        await settle()
        running.cancel()
        await asyncio.wait([running])
    assert running.cancelled()
    assert not [entry for entry in logs if entry["log_level"] in {"error", "warning"}]
    assert sample(manager, "reconcile_errors_total") == 0


async def test_stray_cancellation_does_not_end_the_worker(
    manager: Manager, background: Background, clock: ManualClock
) -> None:
    """A reconcile that awaited something cancelled by others is retried like any failure."""
    reconciler = Reconciler(asyncio.CancelledError())
    Controller("test", manager, reconciler).reconciles(JOBS)
    await start(manager, background)
    await clock.advance(1)
    assert reconciler.keys == [A, A]


async def test_fresh_changes_pass_the_initial_backlog(
    manager: Manager, background: Background, client: FakeClient, clock: ManualClock
) -> None:
    """After a start with many objects a user's change does not wait for all of them."""
    order: list[str] = []

    async def reconcile(key: ObjectKey) -> None:
        order.append(key.name)
        await clock.sleep(1)

    for name in "bcd":
        client.add(job(name))
    Controller("test", manager, reconcile).reconciles(JOBS)
    await start(manager, background)
    await client.create(JOBS, job("new"))
    await clock.advance(10)
    assert order == ["a", "new", "b", "c", "d"]


def test_wrong_construction_is_refused(manager: Manager) -> None:
    """Mistakes in wiring show when the program starts."""

    async def reconcile(_: ObjectKey) -> None:
        """Nothing."""

    controller = Controller("test", manager, reconcile)
    with pytest.raises(ValueError, match="call reconciles"):
        controller.owns(PODS)
    controller.reconciles(JOBS)
    with pytest.raises(ValueError, match=r"already reconciles jobs\.batch"):
        controller.reconciles(PODS)
    with pytest.raises(ValueError, match="two controllers named 'test'"):
        Controller("test", manager, reconcile)
    with pytest.raises(ValueError, match="at least 1"):
        Controller("other", manager, reconcile, max_concurrent_reconciles=0)
