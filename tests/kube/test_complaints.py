"""What users of other frameworks complain about most, one test for each; ours must not earn it."""

from __future__ import annotations

import gc
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from structlog.testing import capture_logs

from tests.kube.objects import pod
from tests.kube.secure_server import SecureServer
from trainer.kube import (
    CachedObject,
    Controller,
    HttpClient,
    Informer,
    Manager,
    ManagerOptions,
    Metrics,
    ObjectKey,
    TransportError,
)
from trainer.kube.cache.reflector import IDLE
from trainer.kube.manager.loop_lag import LoopLagOptions, LoopLagWatch
from trainer.kube.objects import name_of
from trainer.kube.resource import CONFIG_MAPS, NODES, PODS, SECRETS
from trainer.kube.rest.credentials import TokenFile
from trainer.kube.rest.transport import Endpoint, Transport
from trainer_kube_testing import FakeClient, ManualClock, StreamingLists, eventually, settle, statuses

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kube.conftest import Background
    from trainer.kube.client import ListOptions, WatchOptions


class Recording:
    """A handler that writes down its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:
        self.calls.append(f"add {obj.key.name}")

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        self.calls.append(f"update {new.key.name}")

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:
        self.calls.append(f"delete {obj.key.name}{' unseen' if stale else ''}")


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(pod("a"), pod("b"), clock=clock)


@pytest.fixture
def quiet() -> ManagerOptions:
    return ManagerOptions(loop_lag=None, graceful_shutdown_timeout=0)


async def running(client: FakeClient, clock: ManualClock, background: Background) -> tuple[Informer, Recording]:
    """An informer that has synced, and its handler."""
    informer, handler = Informer(client, PODS, clock=clock), Recording()
    informer.add_handler(handler)
    background(informer.run())
    await informer.wait_for_sync()
    await settle()
    handler.calls.clear()
    return informer, handler


async def test_watch_never_dies_silently(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """1. A connection that hears nothing more is noticed by its silence within 90 s, and nothing is missed."""
    informer, handler = await running(client, clock, background)
    client.faults.silence_watches()
    client.add(pod("c"))
    await clock.advance(IDLE - 1)
    assert handler.calls == []
    assert informer.event_age == IDLE - 1
    await clock.advance(1)
    assert handler.calls == ["add c"]
    assert informer.problem is None


async def test_no_deletion_is_missed(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """2. What was deleted while no watch was open is delivered when the list shows that it is gone."""
    informer, handler = await running(client, clock, background)
    client.faults.refuse_connections()
    await settle()
    client.remove(PODS, "a", "ns")
    client.compact()
    client.faults.accept_connections()
    await clock.advance(60)
    assert handler.calls == ["delete a unseen"]
    assert [name_of(obj) for obj in informer.lister.list()] == ["b"]


async def test_expired_versions_heal(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """3. 410 for the watch and for the version of the list end in a fresh list, without a loop."""
    client.faults.streaming_lists = StreamingLists.REFUSED
    informer, handler = await running(client, clock, background)
    before = len(client.requests)
    client.faults.fail(statuses.expired(), verb="list", times=2)
    client.faults.drop_watches(statuses.expired())
    client.add(pod("c"))
    await clock.advance(5)
    assert handler.calls == ["add c"]
    lists: list[ListOptions] = [request.body for request in client.requests[before:] if request.verb == "list"]
    assert [options.resource_version for options in lists][:2] == ["3", ""]
    assert len(client.requests) - before <= 5
    assert informer.last_error is None


def test_cache_is_small() -> None:
    """4. A pod of 8 KB, nearly half of it managed fields, takes less than 6 KiB in all."""
    gc.collect()
    tracemalloc.start()
    try:
        cached = [CachedObject.compact(_large_pod(number), "v1", "Pod") for number in range(500)]
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size / len(cached) < 6 * 1024


def _large_pod(number: int) -> bytes:
    env = [{"name": f"VARIABLE_{index}", "value": "value" * 8} for index in range(50)]
    fields: dict[str, Any] = {f"f:field-{index}": {} for index in range(190)}
    obj: dict[str, Any] = pod(
        f"pod-{number}",
        uid=f"{number:036}",
        resourceVersion=str(number),
        labels={f"label-{index}": "value" for index in range(6)},
        managedFields=[{"manager": "kubelet", "operation": "Update", "fieldsV1": fields}],
    )
    raw = msgspec.json.encode(obj | {"spec": {"containers": [{"name": "main", "image": "image", "env": env}]}})
    assert 7000 < len(raw) < 8500
    return raw


async def test_reconcile_reads_its_own_writes(
    client: FakeClient, clock: ManualClock, background: Background, quiet: ManagerOptions
) -> None:
    """5. A reconcile that runs again before its write has come back sees it, and does not create the object twice."""
    manager = Manager(client, clock=clock, options=quiet)
    secrets = manager.informer(SECRETS).lister
    rounds = 0

    async def reconcile(key: ObjectKey) -> None:
        nonlocal rounds
        rounds += 1
        if not secrets.list(key.namespace):
            metadata = {"generateName": f"{key.name}-", "namespace": key.namespace}
            await manager.client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata})

    controller = Controller("test", manager, reconcile).reconciles(CONFIG_MAPS)
    background(manager.run())
    await manager.wait_for_start()
    client.faults.hold_watches(SECRETS)
    for _ in range(5):
        controller.enqueue(ObjectKey("ns", "owner"))
        await settle()
    assert rounds == 5
    assert len(client.objects(SECRETS)) == 1


async def test_failing_keys_delay_only_themselves(
    client: FakeClient, clock: ManualClock, background: Background, quiet: ManagerOptions
) -> None:
    """6. While a thousand keys fail over and over, a healthy one is reconciled at once."""
    manager = Manager(client, clock=clock, options=quiet)
    healthy: list[float] = []

    async def reconcile(key: ObjectKey) -> None:
        if key.name != "healthy":
            raise TransportError("always")
        healthy.append(clock.monotonic())

    controller = Controller("test", manager, reconcile, max_concurrent_reconciles=5).watches_nothing()
    background(manager.run())
    await manager.wait_for_start()
    for number in range(1000):
        controller.enqueue(ObjectKey("ns", f"sick-{number}"))
    await clock.advance(10)
    controller.enqueue(ObjectKey("ns", "healthy"))
    await settle()
    assert healthy == [10]


async def test_expired_token_is_read_anew(tmp_path: Path) -> None:
    """7. When the server refuses the token, the file is read again and the request repeated, unseen by the caller."""
    file = tmp_path / "token"
    file.write_text("old")
    server = SecureServer(None)
    server.accepted = {("Bearer old", None)}
    async with server.running() as url, Transport(Endpoint(url), TokenFile(file), user_agent="test") as transport:
        http = HttpClient(transport)
        assert (await http.get(NODES, "n"))["kind"] == "Node"
        server.accepted = {("Bearer new", None)}
        file.write_text("new")
        assert (await http.get(NODES, "n"))["kind"] == "Node"
    assert [authorization for authorization, _ in server.seen] == ["Bearer old", "Bearer old", "Bearer new"]


async def test_blocked_event_loop_is_reported(background: Background) -> None:
    """8. A reconcile that blocks the event loop is named in a warning, with the place where it hangs."""
    watch = LoopLagWatch(LoopLagOptions(interval=0.02, warn_after=0.05), metrics=Metrics())
    with capture_logs() as logs:
        background(watch.run())
        await settle()
        for _ in range(10):
            end = time.perf_counter() + 0.4
            while time.perf_counter() < end:
                pass
            await eventually(lambda: any("stood" in str(entry) or "stands" in str(entry) for entry in logs), within=5)
            # On a machine that is too busy to run the watch itself, it says that the process stood still.
            if any("test_complaints" in str(entry) for entry in logs):
                break
            logs.clear()
    assert any("test_complaints" in str(entry) for entry in logs)


async def test_fresh_changes_pass_the_backlog_of_a_start(
    client: FakeClient, clock: ManualClock, background: Background, quiet: ManagerOptions
) -> None:
    """9. After a start with many objects, one that changes now is reconciled before the rest of them."""
    for number in range(300):
        client.add(pod(f"p{number:03}"))
    manager = Manager(client, clock=clock, options=quiet)
    order: list[str] = []

    async def reconcile(key: ObjectKey) -> None:
        order.append(key.name)
        await clock.sleep(1)

    Controller("test", manager, reconcile).reconciles(PODS)
    background(manager.run())
    await manager.wait_for_start()
    await settle()
    await client.patch(PODS, "p299", {"metadata": {"labels": {"fresh": "true"}}}, "ns")
    await clock.advance(1)
    assert order[1] == "p299"


async def test_failing_server_is_not_hammered(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """10. In an outage an informer asks about twice a minute, and its watches last a random time."""
    informer, _ = await running(client, clock, background)
    client.faults.refuse_connections()
    before = len(client.requests)
    await clock.advance(600)
    assert len(client.requests) - before < 30
    client.faults.accept_connections()
    await clock.advance(120)
    assert informer.problem is None
    options: list[WatchOptions] = [request.body for request in client.requests if request.verb == "watch"]
    assert len({option.timeout_seconds for option in options}) > 3
    assert all(300 <= option.timeout_seconds <= 600 for option in options)


def test_every_complaint_has_its_test() -> None:
    """The list has ten lines, and so has this file."""
    numbered = [test.__doc__ or "" for name, test in globals().items() if name.startswith("test_") and test.__doc__]
    assert sorted(int(text.split(".")[0]) for text in numbered if text[0].isdigit()) == list(range(1, 11))
