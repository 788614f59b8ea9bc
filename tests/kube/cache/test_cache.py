"""The informers of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kube.objects import job, pod
from trainer.kube.cache.cache import Cache
from trainer.kube.metrics import Metrics
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import JOBS, PODS
from trainer.kube.selection import Selection
from trainer.kube.testing import FakeClient, ManualClock, settle

if TYPE_CHECKING:
    from tests.kube.conftest import Background


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(pod("a", labels={"app": "x"}), pod("b"), job("j"), clock=clock)


@pytest.fixture
def cache(client: FakeClient, clock: ManualClock) -> Cache:
    return Cache(client, clock=clock)


async def test_each_selection_is_watched_once(cache: Cache, client: FakeClient, background: Background) -> None:
    """Whoever asks for the same gets the same informer, before and after the start."""
    pods = cache.informer(PODS)
    assert cache.informer(PODS) is pods
    background(cache.run())
    await cache.wait_for_sync()
    labelled = cache.informer(PODS, Selection(label_selector="app=x"))
    assert labelled is not pods
    await labelled.wait_for_sync()
    assert [request.verb for request in client.requests] == ["watch", "watch"]
    assert len(cache.informers) == 2
    assert len(labelled.lister.list()) == 1


async def test_own_writes_reach_every_informer_that_selects_them(cache: Cache) -> None:
    """The answer to a write shows in each cache of its resource, and in no other."""
    everything = cache.informer(PODS).lister
    labelled = cache.informer(PODS, Selection(label_selector="app=x")).lister
    jobs = cache.informer(JOBS).lister
    cache.wrote(PODS, pod("new", uid="u", resourceVersion="9"))
    assert len(everything.list()) == 1
    assert labelled.list() == jobs.list() == []
    assert cache.known_uid(PODS, ObjectKey("ns", "new")) == "u"
    assert cache.known_uid(JOBS, ObjectKey("ns", "new")) == ""
    cache.deleted(PODS, ObjectKey("ns", "new"), "u", None)
    assert everything.list() == []


async def test_answers_of_another_kind_are_no_objects_of_the_cache(cache: Cache) -> None:
    """A Scale or a Binding that answers a write to a subresource is not taken for the object."""
    lister = cache.informer(PODS).lister
    cache.wrote(PODS, {"kind": "Scale", "metadata": {"name": "a", "namespace": "ns", "resourceVersion": "9"}})
    assert lister.list() == []


async def test_cache_runs_once(cache: Cache, background: Background) -> None:
    """A second run is refused."""
    background(cache.run())
    await settle()
    with pytest.raises(RuntimeError, match="started before"):
        await cache.run()


async def test_removed_informer_ends(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """Its watch, handlers and series are over, those of other selections go on, and who asks again gets a new one."""
    metrics = Metrics()
    cache = Cache(client, clock=clock, metrics=metrics)
    background(cache.run())
    labelled = Selection(label_selector="app=x")
    removed, kept = cache.informer(PODS), cache.informer(PODS, labelled)
    await cache.wait_for_sync()
    cache.remove(PODS)
    cache.remove(PODS)
    client.add(pod("c", labels={"app": "x"}))
    await settle()
    assert len(removed.lister.list()) == len(kept.lister.list()) == 2
    assert cache.informers == (kept,)
    everything = {"resource": "pods", "selection": ""}
    assert metrics.registry.get_sample_value("trainer_kube_cache_objects", everything) is None

    again = cache.informer(PODS)
    assert again is not removed
    await again.wait_for_sync()
    assert len(again.lister.list()) == 3


async def test_informer_may_be_removed_before_it_runs(cache: Cache, client: FakeClient, background: Background) -> None:
    """It never asks the server for anything, whether the cache runs by then or not."""
    cache.informer(PODS)
    cache.remove(PODS)
    background(cache.run())
    await settle()
    cache.informer(PODS)
    cache.remove(PODS)
    await settle()
    assert client.requests == []


async def test_malformed_selector_is_refused(cache: Cache) -> None:
    """A selector that the server would refuse is refused at once."""
    with pytest.raises(ValueError, match="selector"):
        cache.informer(PODS, Selection(label_selector="=="))


async def test_series_tell_how_the_watch_is(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """Objects, bytes, event age, lists, events and restarts by reason are there from the start and count."""
    metrics = Metrics()
    cache = Cache(client, clock=clock, metrics=metrics)
    cache.informer(PODS, Selection(namespace="ns"))

    def sample(name: str, **labels: str) -> float | None:
        labels |= {"resource": "pods", "selection": "namespace=ns"}
        return metrics.registry.get_sample_value(f"trainer_kube_{name}", labels)

    assert sample("watch_restarts_total", reason="silent") == 0
    background(cache.run())
    await cache.wait_for_sync()
    await settle()
    assert sample("cache_objects") == 2
    assert (sample("cache_bytes") or 0) > 100
    assert sample("lists_total") == 1
    assert sample("watch_events_total") == 3
    await clock.advance(89)
    assert sample("watch_event_age_seconds") == 89
    await clock.advance(1)
    assert sample("watch_restarts_total", reason="silent") == 1
