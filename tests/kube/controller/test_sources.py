"""Sources of keys."""

from __future__ import annotations

import asyncio

import pytest

from tests.kube.conftest import Background
from tests.kube.controller.doubles import Keys
from tests.kube.objects import job
from trainer.kube.cache.informer import Informer
from trainer.kube.controller.handlers import own_key
from trainer.kube.controller.sources import Availability, Kind
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import ObjectKey
from trainer.kube.queue.workqueue import LOW_PRIORITY
from trainer.kube.resource import JOBS
from trainer_kube_testing import FakeClient, ManualClock, settle, statuses


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(job("a"), job("b"), clock=clock)


@pytest.fixture
def informer(client: FakeClient, clock: ManualClock) -> Informer:
    return Informer(client, JOBS, clock=clock)


@pytest.mark.parametrize("late", [pytest.param(False, id="before-the-informer"), pytest.param(True, id="after-it")])
async def test_kind_enqueues_what_exists_and_then_what_changes(
    informer: Informer, client: FakeClient, background: Background, late: bool
) -> None:
    """It has synced once everything that existed is enqueued, no matter when it starts."""
    keys = Keys()
    source = Kind(informer, own_key)
    if late:
        background(informer.run())
        await informer.wait_for_sync()
    background(source.run(keys))
    if not late:
        background(informer.run())
    await source.wait_for_sync()
    assert sorted(keys.calls) == [("ns/a", LOW_PRIORITY), ("ns/b", LOW_PRIORITY)]
    await client.create(JOBS, job("c"))
    await settle()
    assert keys.calls[2:] == [("ns/c", 0)]


async def test_kind_ends_cleanly(informer: Informer, client: FakeClient, background: Background) -> None:
    """A source that was cancelled enqueues nothing more."""
    keys = Keys()
    source = Kind(informer, own_key)
    running = asyncio.create_task(source.run(keys))
    background(informer.run())
    await source.wait_for_sync()
    running.cancel()
    await asyncio.wait([running])
    keys.calls.clear()
    await client.create(JOBS, job("c"))
    await settle()
    assert keys.calls == []


async def test_kind_waits_for_a_crd_that_is_installed_later(
    informer: Informer, client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """Until then it names what is missing."""
    for _ in range(3):
        client.faults.fail(NotFoundError(404, "the server could not find the requested resource"), resource=JOBS)
    keys = Keys()
    source = Kind(informer, own_key)
    background(source.run(keys))
    background(informer.run())
    await settle()
    assert source.problem == "jobs.batch is not served by the API server: install the Job CRD"
    assert keys.calls == []
    await clock.advance(30)
    await source.wait_for_sync()
    assert len(keys.calls) == 2


async def test_availability_enqueues_when_an_optional_kind_comes_or_goes(
    client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """What its function names by then, with low priority; nothing for what was known at the start."""
    client.withdraw(JOBS)
    informer = Informer(client, JOBS, clock=clock, optional=True)
    names = ["x", "y"]
    keys = Keys()
    source = Availability(informer, lambda: [ObjectKey("ns", name) for name in names])
    running = background(source.run(keys))
    background(informer.run())
    await source.wait_for_sync()
    await settle()
    assert keys.calls == []
    client.serve(JOBS)
    await clock.advance(40)
    assert keys.calls == [("ns/x", LOW_PRIORITY), ("ns/y", LOW_PRIORITY)]
    names[:] = ["z"]
    client.withdraw(JOBS)
    await clock.advance(40)
    assert keys.calls[2:] == [("ns/z", LOW_PRIORITY)]
    running.cancel()
    await settle()
    client.serve(JOBS)
    await clock.advance(40)
    assert len(keys.calls) == 3


async def test_availability_waits_for_a_clear_answer(
    client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """It is not known whether a kind is served while the server answers neither this nor that."""
    client.faults.fail(statuses.unavailable(), resource=JOBS)
    informer = Informer(client, JOBS, clock=clock, optional=True)
    source = Availability(informer, list)
    waiting = background(source.wait_for_sync())
    background(informer.run())
    await settle()
    assert not waiting.done()
    assert source.problem.startswith("jobs.batch could not be listed or watched: the server is currently unable")
    await clock.advance(2)
    assert waiting.done()
    assert source.problem == ""
