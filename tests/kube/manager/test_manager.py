"""Manager: start order, failures and shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import anyio
import anyio.lowlevel
import pytest
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from tests.kube.objects import job, pod
from trainer.kube.controller.controller import Controller
from trainer.kube.election.leader_election import LeaderElectionOptions
from trainer.kube.errors import (
    CacheSyncError,
    ForbiddenError,
    LeadershipLostError,
    NotFoundError,
    ShutdownError,
)
from trainer.kube.manager.manager import Group, Manager, ManagerOptions
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import EVENTS, JOBS, LEASES, PODS, Resource
from trainer_kube_testing import FakeClient, ManualClock, settle

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(job("a"), pod("p"), clock=clock)


@pytest.fixture
def manager(client: FakeClient, clock: ManualClock) -> Manager:
    return Manager(client, clock=clock)


async def test_runnables_start_after_the_caches(manager: Manager, client: FakeClient, background: Background) -> None:
    """When anything of ours runs, every informer knows its objects."""
    seen: list[int] = []
    readiness = [manager.is_ready]

    async def runnable() -> None:
        seen.append(len(manager.informer(PODS).lister.list()) + len(manager.informer(JOBS).lister.list()))

    manager.informer(PODS)
    manager.informer(JOBS)
    manager.add(runnable, name="count")
    background(manager.run())
    await manager.wait_for_start()
    await settle()
    readiness.append(manager.is_ready)
    assert readiness == [False, True]
    assert seen == [2]


async def test_late_informers_and_runnables_start_at_once(manager: Manager, background: Background) -> None:
    """What is added to a running manager runs too."""
    background(manager.run())
    await manager.wait_for_start()
    ran = anyio.Event()

    async def runnable() -> None:
        ran.set()

    manager.add(runnable, name="late")
    await manager.informer(PODS).wait_for_sync()
    await ran.wait()
    assert len(manager.informer(PODS).lister.list()) == 1


async def test_missing_caches_stop_the_manager_with_the_reason(clock: ManualClock) -> None:
    """A resource that cannot be listed within the time is named together with the remedy; others are not."""
    client = FakeClient(resources=[WIDGETS], clock=clock)
    manager = Manager(client, clock=clock)
    manager.informer(PODS)
    manager.informer(WIDGETS)
    for _ in range(20):
        client.faults.fail(NotFoundError(404, "not found"), resource=WIDGETS)
    running = asyncio.create_task(manager.run())
    await clock.advance(119)
    assert not running.done()
    await clock.advance(2)
    with pytest.raises(CacheSyncError) as raised:
        await running
    assert str(raised.value).startswith("widgets.example.com")
    assert "install the Widget CRD" in str(raised.value)
    assert "pods" not in str(raised.value)


async def test_first_failure_stops_everything_and_is_raised(manager: Manager) -> None:
    """Others are cancelled, get to clean up, and do not hide the cause with failures of their own."""
    cleaned: list[str] = []

    async def failing() -> None:
        await settle()
        raise OSError("disk full")

    async def other() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cleaned.append("other")
            raise RuntimeError("while stopping")

    manager.add(failing, name="failing")
    manager.add(other, name="other")
    with capture_logs() as logs, pytest.raises(OSError, match="disk full"):
        await manager.run()
    assert cleaned == ["other"]
    assert [entry["runnable"] for entry in logs if entry["log_level"] == "error"] == ["failing", "other"]


async def test_failure_inside_a_task_group_is_raised_as_itself(manager: Manager) -> None:
    """The caller sees what went wrong, not how many task groups it came through."""

    async def fail() -> None:
        raise OSError("disk full")

    async def grouped() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)

    manager.add(grouped, name="grouped")
    with pytest.raises(OSError, match="disk full"):
        await manager.run()


async def test_failure_of_a_cancelled_manager_is_only_logged(manager: Manager) -> None:
    """What fails while it is being stopped does not turn a clean end into an error."""

    async def failing() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise RuntimeError("while stopping")

    manager.add(failing, name="failing")
    running = asyncio.create_task(manager.run())
    await manager.wait_for_start()
    await settle()
    with capture_logs() as logs:
        running.cancel()
        await asyncio.wait([running])
    assert running.cancelled()
    assert [entry["runnable"] for entry in logs if entry["log_level"] == "error"] == ["failing"]


async def test_runnable_that_others_cancel_is_a_failure(manager: Manager) -> None:
    """A runnable that awaited a cancelled task does not end unnoticed."""

    async def runnable() -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task

    manager.add(runnable, name="runnable")
    with pytest.raises(RuntimeError, match="runnable was cancelled from within"):
        await manager.run()


async def test_nothing_is_added_to_a_manager_that_stops(manager: Manager) -> None:
    """Nothing would run for long; `run` returns when the last group has ended."""
    ending = anyio.Event()
    manager.add(ending.wait, name="slow", group=Group.OTHERS, stop=lambda: None)
    running = asyncio.create_task(manager.run())
    await manager.wait_for_start()
    manager.stop()
    await settle()
    for group in Group:
        with pytest.raises(RuntimeError, match="late cannot be added"):
            manager.add(anyio.sleep_forever, name="late", group=group)
    ending.set()
    await running


async def test_runnable_that_returns_before_it_has_started(manager: Manager) -> None:
    """It has nothing to do, so nobody waits for it, also where others of its group take longer."""

    async def nothing() -> None:
        """Nothing."""

    manager.add(anyio.sleep_forever, name="slow", group=Group.OTHERS, started=settle)
    manager.add(nothing, name="nothing", group=Group.OTHERS, started=anyio.sleep_forever)
    running = asyncio.create_task(manager.run())
    await manager.wait_for_start()
    manager.stop()
    await running


class Recorder:
    """Runnables that tell in which order they start and end."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        self.steps: list[str] = []

    def add(self, name: str, group: Group) -> None:
        async def run() -> None:
            self.steps.append(f"+{name}")
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await settle()
                self.steps.append(f"-{name}")

        self.manager.add(run, name=name, group=group)


async def test_groups_start_and_stop_in_order(client: FakeClient, clock: ManualClock) -> None:
    """Servers before webhooks, caches, others and leaders; each group ends before the next one is stopped."""
    manager = Manager(client, clock=clock, options=ManagerOptions(leader_election=LEASE))
    recorder = Recorder(manager)
    for group in reversed(Group):
        recorder.add(group.name, group)
        recorder.add(f"{group.name}2", group)
    running = asyncio.create_task(manager.run())
    await settle()
    running.cancel()
    await asyncio.wait([running])
    starts = [step[1:] for step in recorder.steps if step[0] == "+" and not step.endswith("2")]
    ends = [step[1:] for step in recorder.steps if step[0] == "-" and not step.endswith("2")]
    assert starts == [group.name for group in Group]
    assert ends == ["OTHERS", "LEADER_ELECTION", "CACHES", "WEBHOOKS", "HTTP_SERVERS", "LEASE", "EVENTS"]
    assert len(recorder.steps) == 4 * len(Group)


async def test_runnables_that_can_stop_are_asked_first(manager: Manager, clock: ManualClock) -> None:
    """They finish what they do, for as long as the grace period lasts."""
    steps: list[str] = []
    stopping = anyio.Event()

    async def run() -> None:
        await stopping.wait()
        await clock.sleep(29)
        steps.append("finished")

    manager.add(run, name="diligent", stop=stopping.set)
    running = asyncio.create_task(manager.run())
    await manager.wait_for_start()
    running.cancel()
    await clock.advance(28)
    assert not running.done()
    await clock.advance(2)
    await asyncio.wait([running])
    assert running.cancelled()
    assert steps == ["finished"]


async def test_runnable_that_cannot_be_asked_is_cancelled(manager: Manager) -> None:
    """When its `stop` fails, that is logged, and nobody waits for the grace period."""

    def stop() -> None:
        raise OSError("broken pipe")

    manager.add(anyio.sleep_forever, name="broken", stop=stop)
    running = asyncio.create_task(manager.run())
    await manager.wait_for_start()
    await settle()
    with capture_logs() as logs:
        manager.stop()
        await settle()
    assert running.done()
    assert [entry["runnable"] for entry in logs if entry["log_level"] == "error"] == ["broken"]
    await running


@pytest.mark.parametrize("grace", [30.0, 2.0])
async def test_overrun_of_the_grace_period_is_an_error(client: FakeClient, clock: ManualClock, grace: float) -> None:
    """What did not end is cancelled and named."""
    manager = Manager(client, clock=clock, options=ManagerOptions(graceful_shutdown_timeout=grace))
    manager.add(anyio.sleep_forever, name="deaf", stop=lambda: None)
    manager.add(anyio.sleep_forever, name="obedient")
    running = asyncio.create_task(manager.run())
    await manager.wait_for_start()
    running.cancel()
    await clock.advance(grace - 0.1)
    assert not running.done()
    await clock.advance(0.1)
    with pytest.raises(ShutdownError, match=f"did not stop within {grace:g} s: deaf$"):
        await running


@pytest.mark.parametrize("grace", [0, None, -1.0])
async def test_no_grace_and_all_of_it(client: FakeClient, clock: ManualClock, grace: float | None) -> None:
    """With a grace period of 0 everything is cancelled at once, without one the manager waits; neither is an error."""
    manager = Manager(client, clock=clock, options=ManagerOptions(graceful_shutdown_timeout=grace))
    ending = anyio.Event()
    manager.add(ending.wait, name="slow", stop=lambda: None)
    running = asyncio.create_task(manager.run())
    await manager.wait_for_start()
    manager.stop()
    await clock.advance(3600)
    assert running.done() == (grace == 0)
    ending.set()
    await running


async def test_second_cancellation_hastens(manager: Manager) -> None:
    """It cancels what the first one only asked to end; nothing is left behind."""
    cleaned: list[str] = []

    async def deaf() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cleaned.append("deaf")

    manager.add(deaf, name="deaf", stop=lambda: None)
    running = asyncio.create_task(manager.run())
    await manager.wait_for_start()
    running.cancel()
    await settle()
    assert not running.done()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert cleaned == ["deaf"]


async def test_cancel_scope_stops_in_order(manager: Manager) -> None:
    """Cancellation by a task group is one like any other: it does not reach the groups all at once."""
    recorder = Recorder(manager)
    recorder.add("servers", Group.HTTP_SERVERS)
    recorder.add("controllers", Group.LEADER_ELECTION)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await manager.wait_for_start()
        await settle()
        tasks.cancel_scope.cancel()
    assert recorder.steps == ["+servers", "+controllers", "-controllers", "-servers"]


async def test_failure_during_start_stops_what_has_started(manager: Manager) -> None:
    """Groups after the failed one are never started."""
    recorder = Recorder(manager)
    recorder.add("servers", Group.HTTP_SERVERS)
    recorder.add("others", Group.OTHERS)

    async def fail() -> None:
        raise OSError("address in use")

    manager.add(fail, name="webhook", group=Group.WEBHOOKS, started=anyio.sleep_forever)
    with pytest.raises(OSError, match="address in use"):
        await manager.run()
    assert recorder.steps == ["+servers", "-servers"]


LEASE = LeaderElectionOptions("lease", "ns", identity="me")


async def test_leaders_write_and_others_wait(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """Controllers start with leadership, and the client of the manager refuses writes until then."""
    client.add(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "lease", "namespace": "ns"},
            "spec": {"holderIdentity": "other", "leaseDurationSeconds": 15},
        }
    )
    manager = Manager(client, clock=clock, options=ManagerOptions(leader_election=LEASE))
    reconciled: list[str] = []

    async def reconcile(key: ObjectKey) -> None:
        await manager.client.patch(JOBS, key.name, {"metadata": {"labels": {"a": "b"}}}, key.namespace)
        reconciled.append(key.name)

    Controller("test", manager, reconcile).reconciles(JOBS)
    background(manager.run())
    await clock.advance(10)
    leadership = [manager.is_leader]
    assert manager.is_ready
    assert reconciled == []
    with pytest.raises(LeadershipLostError):
        await manager.client.create(PODS, pod("new"))
    assert await manager.api_reader.create(PODS, pod("new"))
    await clock.advance(6)
    leadership.append(manager.is_leader)
    assert leadership == [False, True]
    assert reconciled[:1] == ["a"]


@pytest.mark.parametrize("is_stopping", [False, True])
async def test_lost_lease_stops_everything_at_once(client: FakeClient, clock: ManualClock, is_stopping: bool) -> None:
    """Without a lease there is no grace, also while stopping: what runs could write nothing, and another may begin."""
    manager = Manager(client, clock=clock, options=ManagerOptions(leader_election=LEASE))
    manager.add(anyio.sleep_forever, name="slow", stop=lambda: None)
    running = asyncio.create_task(manager.run())
    await clock.advance(3)
    assert manager.is_leader
    if is_stopping:
        manager.stop()
        await clock.advance(0.5)
        assert not running.done()
    [lease] = client.objects(LEASES)
    client.add(lease | {"spec": lease["spec"] | {"holderIdentity": "other"}})
    await clock.advance(2)
    assert running.done()
    with pytest.raises(LeadershipLostError, match="ns/lease has been taken by other"):
        await running


async def test_lease_is_released_after_the_last_write(client: FakeClient, clock: ManualClock) -> None:
    """A controller's last write still passes the fence, then the lease is given back, and events come last."""
    manager = Manager(client, clock=clock, options=ManagerOptions(leader_election=LEASE))
    stopping = anyio.Event()

    async def run() -> None:
        await stopping.wait()
        await clock.sleep(20)
        await manager.client.create(PODS, pod("last"))

    manager.add(run, name="writer", stop=stopping.set)
    running = asyncio.create_task(manager.run())
    await settle()
    manager.stop()
    await clock.advance(25)
    await running
    [lease] = client.objects(LEASES)
    assert lease["spec"]["holderIdentity"] == ""
    writes = [(request.verb, request.resource) for request in client.requests_of("create", "update")]
    last = writes.index(("create", PODS))
    assert writes[last:] == [("create", PODS), ("update", LEASES), ("create", EVENTS)]
    assert {event["message"] for event in client.objects(EVENTS)} == {"me became leader", "me stopped leading"}


async def test_manager_runs_once(manager: Manager, background: Background) -> None:
    """Informers cannot be started again."""
    background(manager.run())
    await manager.wait_for_start()
    with pytest.raises(RuntimeError, match="runs once"):
        await manager.run()


@pytest.fixture
async def served(client: FakeClient, clock: ManualClock, unused_tcp_port: int) -> AsyncIterator[Served]:
    """A manager with an endpoint, and a client of that endpoint."""
    manager = Manager(client, clock=clock, options=ManagerOptions(health_bind=("127.0.0.1", unused_tcp_port)))
    async with aiohttp.ClientSession(f"http://127.0.0.1:{unused_tcp_port}") as session:
        yield Served(manager, session)


@dataclass
class Served:
    manager: Manager
    session: aiohttp.ClientSession

    async def get(self, path: str) -> tuple[int, str]:
        """Ask as soon as the server listens."""
        with anyio.fail_after(10):
            while True:
                try:
                    async with self.session.get(path) as response:
                        return response.status, await response.text()
                except aiohttp.ClientConnectorError:
                    await anyio.lowlevel.checkpoint()


async def test_endpoint_tells_health(
    client: FakeClient, served: Served, clock: ManualClock, background: Background
) -> None:
    """Live at once, ready when the caches are; metrics are elsewhere."""

    async def reconcile(_: ObjectKey) -> None:
        """Nothing."""

    Controller("test", served.manager, reconcile).reconciles(JOBS)
    for _ in range(3):
        client.faults.fail(ForbiddenError(403, "not yet"), resource=JOBS)
    background(served.manager.run())
    assert await served.get("/healthz") == (200, "ok")
    status, text = await served.get("/readyz")
    assert status == 500
    assert "[-]informers failed: reason withheld\n" in text
    await clock.advance(60)
    assert await served.get("/readyz") == (200, "ok")
    assert (await served.get("/metrics"))[0] == 404


async def test_checks_of_users(served: Served, background: Background) -> None:
    """Health and readiness ask also what was added, each for itself."""

    async def fail() -> None:
        raise OSError("certificate expired")

    served.manager.add_health_check("disk", fail)
    served.manager.add_ready_check("webhook", fail)
    background(served.manager.run())
    await served.manager.wait_for_start()
    assert await served.get("/healthz/disk") == (500, "[-]disk failed: reason withheld\n")
    assert await served.get("/readyz/webhook") == (500, "[-]webhook failed: reason withheld\n")
    assert await served.get("/readyz?exclude=webhook") == (200, "ok")


async def test_probes_are_answered_while_stopping(served: Served) -> None:
    """Not ready, but alive, until the last controller has ended."""
    ending = anyio.Event()
    served.manager.add(ending.wait, name="slow", stop=lambda: None)
    running = asyncio.create_task(served.manager.run())
    await served.manager.wait_for_start()
    served.manager.stop()
    assert (await served.get("/readyz/manager"))[0] == 500
    assert await served.get("/healthz") == (200, "ok")
    ending.set()
    await running
    with pytest.raises(aiohttp.ClientConnectorError):
        await served.session.get("/healthz")
