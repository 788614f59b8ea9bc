"""Manager: start order, failures and shutdown."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import anyio
import anyio.lowlevel
import pytest
from structlog.testing import capture_logs

from tests.kube.objects import job, pod
from trainer.kube.client import Selection
from trainer.kube.controller import Controller
from trainer.kube.errors import CacheSyncError, ForbiddenError, KubeError, NotFoundError
from trainer.kube.manager import Manager, ManagerOptions
from trainer.kube.resource import JOBS, PODS, Resource
from trainer.kube.testing import FakeClient, ManualClock, settle

if TYPE_CHECKING:
    from tests.kube.conftest import Background
    from trainer.kube.objects import ObjectKey

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(job("a"), pod("p"), clock=clock)


@pytest.fixture
def manager(client: FakeClient, clock: ManualClock) -> Manager:
    return Manager(client, clock=clock)


def test_informers_are_shared(manager: Manager) -> None:
    """One informer serves all that ask for the same resource and selection."""
    assert manager.informer(PODS) is manager.informer(PODS)
    assert manager.informer(PODS) is not manager.informer(PODS, Selection("ns"))
    assert manager.informer(PODS) is not manager.informer(JOBS)


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


async def test_late_controllers_are_refused(manager: Manager, background: Background) -> None:
    """A controller must be constructed before the manager runs, or it would never be started."""
    background(manager.run())
    await manager.wait_for_start()

    async def reconcile(_: ObjectKey) -> None:
        """Nothing."""

    with pytest.raises(RuntimeError, match="before the manager runs"):
        Controller("late", manager, reconcile)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(
            NotFoundError(404, "the server could not find the requested resource"),
            "widgets.example.com is not served by the API server: install the Widget CRD",
            id="not-served",
        ),
        pytest.param(
            ForbiddenError(403, "widgets is forbidden"),
            "widgets.example.com could not be listed: widgets is forbidden",
            id="forbidden",
        ),
    ],
)
async def test_missing_caches_stop_the_manager_with_the_reason(
    clock: ManualClock, error: KubeError, message: str
) -> None:
    """A resource that cannot be listed within the time is named together with the remedy; others are not."""
    client = FakeClient(resources=[WIDGETS], clock=clock)
    manager = Manager(client, clock=clock)
    manager.informer(PODS)
    manager.informer(WIDGETS)
    for _ in range(20):
        client.fail_next(error, resource=WIDGETS)
    running = asyncio.create_task(manager.run())
    await clock.advance(119)
    assert not running.done()
    await clock.advance(2)
    with pytest.raises(CacheSyncError) as raised:
        await running
    assert str(raised.value) == message


async def test_resource_that_appears_in_time_is_waited_for(clock: ManualClock, background: Background) -> None:
    """A CRD may be installed after the manager has started."""
    client = FakeClient(resources=[WIDGETS], clock=clock)
    manager = Manager(client, clock=clock)
    manager.informer(WIDGETS)
    client.fail_next(NotFoundError(404, "not found"))
    background(manager.run())
    await clock.advance(2)
    assert manager.is_ready


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


async def test_cancellation_is_clean(manager: Manager) -> None:
    """A cancelled manager ends everything and raises nothing else."""
    Controller("test", manager, anyio.sleep_forever).reconciles(JOBS)  # type: ignore[arg-type]
    running = asyncio.create_task(manager.run())
    await manager.wait_for_start()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()


async def test_manager_runs_once(manager: Manager, background: Background) -> None:
    """Informers cannot be started again."""
    background(manager.run())
    await manager.wait_for_start()
    with pytest.raises(RuntimeError, match="runs once"):
        await manager.run()


async def test_endpoint_tells_health_and_metrics(
    client: FakeClient, clock: ManualClock, background: Background, unused_tcp_port: int
) -> None:
    """Live at once, ready when the caches are, metrics under their standard names from the first scrape."""
    manager = Manager(client, clock=clock, options=ManagerOptions(http_bind=("127.0.0.1", unused_tcp_port)))

    async def reconcile(_: ObjectKey) -> None:
        """Nothing."""

    Controller("test", manager, reconcile).reconciles(JOBS)
    client.fail_next(ForbiddenError(403, "not yet"))
    background(manager.run())
    async with aiohttp.ClientSession(f"http://127.0.0.1:{unused_tcp_port}") as session:

        async def get(path: str) -> tuple[int, str]:
            async with session.get(path) as response:
                return response.status, await response.text()

        with anyio.fail_after(10):
            while True:
                try:
                    assert await get("/healthz") == (200, "ok")
                    break
                except aiohttp.ClientConnectionError:
                    await anyio.lowlevel.checkpoint()
        assert (await get("/readyz"))[0] == 500
        await clock.advance(2)
        assert await get("/readyz") == (200, "ok")
        status, text = await get("/metrics")
    assert status == 200
    assert 'controller_runtime_reconcile_total{controller="test",result="success"} 1.0' in text
    assert 'controller_runtime_reconcile_errors_total{controller="test"} 0.0' in text
