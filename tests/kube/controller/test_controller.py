"""Controller: from changes to calls of the reconcile function."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
import structlog
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from tests.kube.controller.doubles import Reconciler
from tests.kube.objects import job, owned_by, pod
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.handlers import Enqueue
from trainer.kube.controller.predicates import generation_changed
from trainer.kube.controller.reconcile import Result
from trainer.kube.errors import CacheSyncError
from trainer.kube.manager.manager import Manager, ManagerOptions
from trainer.kube.objects import ObjectKey, controller_reference
from trainer.kube.resource import CONFIG_MAPS, JOBS, PODS
from trainer_kube_testing import FakeClient, ManualClock, settle

A = ObjectKey("ns", "a")


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(job("a"), clock=clock)


@pytest.fixture
def manager(client: FakeClient, clock: ManualClock) -> Manager:
    return make_manager(client, clock)


def make_manager(client: FakeClient, clock: ManualClock) -> Manager:
    """A manager that does not wait, on a clock that stands still, for reconciles to finish when a test is over."""
    return Manager(client, clock=clock, options=ManagerOptions(graceful_shutdown_timeout=0))


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


async def test_enqueue_by_hand(manager: Manager, background: Background, clock: ManualClock) -> None:
    """Others may ask for a reconcile, now or later."""
    reconciler = Reconciler()
    controller = Controller("test", manager, reconciler).watches_nothing()
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


async def test_fresh_changes_pass_the_initial_backlog(
    manager: Manager, background: Background, client: FakeClient, clock: ManualClock
) -> None:
    """In the storm of a start with thousands of objects a user's change does not wait for all of them."""
    order: list[str] = []

    async def reconcile(key: ObjectKey) -> None:
        order.append(key.name)
        await clock.sleep(1)

    for number in range(3000):
        client.add(job(f"old-{number}"))
    Controller("test", manager, reconcile).reconciles(JOBS)
    await start(manager, background)
    assert len(order) == 1
    await client.create(JOBS, job("new"))
    await client.patch(JOBS, "old-2999", {"metadata": {"labels": {"x": "y"}}}, "ns")
    await clock.advance(3)
    assert order[1:3] == ["new", "old-2999"]
    assert order[3] not in {"new", "old-2999"}
    depth = {"name": "test", "controller": "test", "priority": "-100"}
    assert manager.metrics.registry.get_sample_value("workqueue_depth", depth) == 3001 - 3


class ScriptedSource:
    """A source that records its calls and syncs when the test says so."""

    def __init__(self, name: str, steps: list[str]) -> None:
        self._name = name
        self._steps = steps
        self.synced = anyio.Event()

    async def run(self, enqueue: Enqueue) -> None:
        self._steps.append(f"{self._name} runs")
        enqueue(ObjectKey("ns", self._name))
        try:
            await anyio.sleep_forever()
        finally:
            self._steps.append(f"{self._name} ends")

    async def wait_for_sync(self) -> None:
        await self.synced.wait()

    @property
    def problem(self) -> str:
        return f"{self._name} is late"


async def test_workers_start_after_all_sources_have_synced(manager: Manager, background: Background) -> None:
    """Sources start together, and no key is reconciled before each of them knows what there is."""
    steps: list[str] = []
    sources = [ScriptedSource("first", steps), ScriptedSource("second", steps)]

    async def reconcile(key: ObjectKey) -> None:
        steps.append(f"{key.name} reconciled")

    controller = Controller("test", manager, reconcile)
    for source in sources:
        controller.watches_source(source)
    await start(manager, background)
    assert steps == ["first runs", "second runs"]
    sources[1].synced.set()
    await settle()
    assert len(steps) == 2
    sources[0].synced.set()
    await settle()
    assert steps[2:] == ["first reconciled", "second reconciled"]


async def test_late_source_is_named(manager: Manager, background: Background, clock: ManualClock) -> None:
    """A source that does not sync in time ends the controller, and so the manager, with the reason."""
    sources = [ScriptedSource("prompt", []), ScriptedSource("slow", [])]
    sources[0].synced.set()
    controller = Controller("test", manager, Reconciler())
    controller.watches_source(sources[0]).watches_source(sources[1])
    running = asyncio.create_task(manager.run())
    await manager.wait_for_start()
    await clock.advance(119)
    assert not running.done()
    await clock.advance(1)
    with pytest.raises(CacheSyncError, match=r"^controller 'test' waited 120 s: slow is late$"):
        await running


async def test_controller_starts_without_an_optional_kind(clock: ManualClock, background: Background) -> None:
    """It works, is ready, and reconciles owners of such objects from when their CRD is installed."""
    client = FakeClient(job("a"), clock=clock)
    client.withdraw(PODS)
    manager = make_manager(client, clock)
    reconciler = Reconciler()
    Controller("test", manager, reconciler).reconciles(JOBS).owns(PODS, optional=True)
    await start(manager, background)
    assert reconciler.keys == [A]
    assert manager.cache.problem is None
    client.serve(PODS)
    client.add(pod("p") | {"metadata": pod("p")["metadata"] | {"ownerReferences": [controller_reference(job("a"))]}})
    await clock.advance(40)
    assert reconciler.keys == [A, A]
    client.withdraw(PODS)
    await clock.advance(40)
    assert reconciler.keys == [A, A, A]
    assert manager.cache.problem is None


class Feed:
    """A source that calls a function."""

    problem = ""

    def __init__(self, function: Callable[[Enqueue], Awaitable[None]]) -> None:
        self._function = function

    async def run(self, enqueue: Enqueue) -> None:
        """Call the function."""
        await self._function(enqueue)

    async def wait_for_sync(self) -> None:
        """Return at once."""


async def test_failure_of_a_source_is_raised_as_itself(manager: Manager) -> None:
    """The caller sees what went wrong, not the task group that it came through."""

    async def fail(_: Enqueue) -> None:
        raise OSError("stream broken")

    controller = Controller("test", manager, Reconciler()).watches_source(Feed(fail))
    with pytest.raises(OSError, match="stream broken"):
        await controller.run()


async def test_stop_lets_running_reconciles_finish(manager: Manager, client: FakeClient, clock: ManualClock) -> None:
    """No new key is handed out, ready or delayed; when what runs has ended, `run` returns."""
    finished: list[str] = []

    async def reconcile(key: ObjectKey) -> Result:
        await clock.sleep(10)
        finished.append(key.name)
        return Result(requeue_after=1)

    for name in "bcd":
        client.add(job(name))
    controller = Controller("test", manager, reconcile, max_concurrent_reconciles=2).reconciles(JOBS)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.cache.run)
        running = asyncio.create_task(controller.run())
        await clock.advance(1)
        controller.stop()
        controller.enqueue(A)
        await clock.advance(8)
        assert not running.done()
        await clock.advance(2)
        assert running.done()
        tasks.cancel_scope.cancel()
    assert sorted(finished) == ["a", "b"]
    await running


@pytest.mark.parametrize("synced", [pytest.param(True, id="idle"), pytest.param(False, id="not-yet-synced")])
async def test_stop_ends_a_controller_that_waits(manager: Manager, synced: bool) -> None:
    """Also one that has not begun to reconcile."""
    steps: list[str] = []
    source = ScriptedSource("source", steps)
    if synced:
        source.synced.set()
    controller = Controller("test", manager, Reconciler()).watches_source(source)
    running = asyncio.create_task(controller.run())
    await settle()
    controller.stop()
    await settle()
    assert running.done()
    await running
    assert steps == ["source runs", "source ends"]


async def test_log_events_say_what_is_reconciled(manager: Manager, background: Background) -> None:
    """Group and kind are those of the reconciled resource."""

    async def act() -> None:
        structlog.get_logger().info("acted")

    Controller("test", manager, Reconciler(act)).reconciles(JOBS)
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logs:
        await start(manager, background)
    [entry] = [entry for entry in logs if entry["event"] == "acted"]
    assert (entry["controller"], entry["controller_group"], entry["controller_kind"]) == ("test", "batch", "Job")


async def test_keys_of_another_type_are_refused(manager: Manager, background: Background) -> None:
    """What a type checker would find shows where the key was made, and does not end a worker."""
    keys: list[Any] = ["ns/a"]

    async def feed(enqueue: Enqueue) -> None:
        for key in keys:
            enqueue(key)

    controller = Controller("test", manager, Reconciler()).watches_source(Feed(feed))
    with pytest.raises(TypeError, match="'test' takes keys of type ObjectKey, not 'ns/a'"):
        controller.enqueue(keys[0])
    with pytest.raises(TypeError, match="takes keys of type ObjectKey"):
        await controller.run()


async def test_wrong_construction_is_refused(manager: Manager) -> None:
    """Mistakes in wiring show when the program starts."""

    async def reconcile(_: ObjectKey) -> None:
        """Nothing."""

    controller = Controller("test", manager, reconcile)
    with pytest.raises(ValueError, match="call reconciles"):
        controller.owns(PODS)
    with pytest.raises(ValueError, match=r"'test' watches nothing: call reconciles\(\)"):
        await controller.run()
    controller.reconciles(JOBS)
    with pytest.raises(ValueError, match=r"already reconciles jobs\.batch"):
        controller.reconciles(PODS)
    with pytest.raises(ValueError, match="two controllers named 'test'"):
        Controller("test", manager, reconcile)
    with pytest.raises(ValueError, match="at least 1"):
        Controller("other", manager, reconcile, max_concurrent_reconciles=0)


def test_wiring_needs_no_event_loop() -> None:
    """A program may put its controllers together before it runs anything."""
    keys: list[ObjectKey] = []

    async def reconcile(key: ObjectKey) -> None:
        keys.append(key)
        controller.stop()

    manager = Manager(FakeClient())
    controller = Controller("test", manager, reconcile).watches_nothing()
    controller.enqueue(A)
    anyio.run(controller.run)
    assert keys == [A]


async def test_controller_runs_once(manager: Manager) -> None:
    """Neither a second start nor a late watch goes unnoticed."""
    controller = Controller("test", manager, Reconciler()).watches_nothing()
    controller.stop()
    await controller.run()
    with pytest.raises(RuntimeError, match="started before"):
        await controller.run()
    with pytest.raises(RuntimeError, match="runs already"):
        controller.reconciles(JOBS)
