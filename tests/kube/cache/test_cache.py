"""The informers of a process."""

from __future__ import annotations

import gc
import weakref

import pytest
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from tests.kube.objects import job, pod
from trainer.kube.cache.cache import Cache
from trainer.kube.cache.informer import InformerRemovedError
from trainer.kube.errors import ForbiddenError, GoneError, TransportError
from trainer.kube.metrics import Metrics
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import JOBS, PODS, SECRETS
from trainer.kube.selection import Selection
from trainer_kube_testing import FakeClient, ManualClock, settle, statuses


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(pod("a", labels={"app": "x"}), pod("b"), job("j"), clock=clock)


@pytest.fixture
def cache(client: FakeClient, clock: ManualClock) -> Cache:
    return Cache(client, clock=clock)


async def test_each_selection_is_watched_once(cache: Cache, client: FakeClient, background: Background) -> None:
    """Equal selections share one informer, before and after the start."""
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


async def test_own_writes_reach_no_removed_informer(cache: Cache) -> None:
    """The answer to a write is kept where the informer is, and not where it was."""
    removed = cache.informer(PODS).lister
    cache.remove(PODS)
    again = cache.informer(PODS).lister
    cache.wrote(PODS, pod("new", uid="u", resourceVersion="9"))
    assert removed.list() == []
    assert len(again.list()) == 1


async def test_answers_of_another_kind_are_no_objects_of_the_cache(cache: Cache) -> None:
    """A Scale or a Binding that answers a write to a subresource is not taken for the object."""
    lister = cache.informer(PODS).lister
    with capture_logs() as logs:
        cache.wrote(PODS, {"kind": "Scale", "metadata": {"name": "a", "namespace": "ns", "resourceVersion": "9"}})
    assert lister.list() == []
    assert logs == []


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


async def test_nobody_waits_for_a_removed_informer(cache: Cache, client: FakeClient, background: Background) -> None:
    """Waiting for all goes on without it; who waits for it alone gets an error."""
    client.faults.fail(ForbiddenError(403, "no"), resource=PODS)
    pods = cache.informer(PODS)
    cache.informer(JOBS)
    background(cache.run())
    everything = background(cache.wait_for_sync())
    await settle()
    assert not everything.done()
    cache.remove(PODS)
    await everything
    with pytest.raises(InformerRemovedError, match="the informer of pods was removed before it synced"):
        await pods.wait_for_sync()


@pytest.mark.parametrize("before_start", [True, False], ids=["started-with-the-cache", "started-later"])
async def test_removed_informer_is_freed(
    client: FakeClient, clock: ManualClock, background: Background, before_start: bool
) -> None:
    """Neither the cache nor its series keep the objects of an informer that nobody else keeps."""
    cache = Cache(client, clock=clock, metrics=Metrics())
    if before_start:
        cache.informer(PODS)
    background(cache.run())
    await settle()
    removed = weakref.ref(cache.informer(PODS))
    await cache.wait_for_sync()
    cache.remove(PODS)
    await settle()
    gc.collect()
    assert removed() is None


async def test_cache_does_without_optional_kinds(cache: Cache, client: FakeClient, background: Background) -> None:
    """It syncs and is well; one that somebody else needs is a problem, in whatever order they ask."""
    client.withdraw(SECRETS)
    client.withdraw(JOBS)
    cache.informer(PODS)
    optional = cache.informer(SECRETS, optional=True)
    background(cache.run())
    await cache.wait_for_sync()
    assert cache.problem is None
    assert not optional.is_served

    assert cache.informer(JOBS, optional=True) is cache.informer(JOBS)
    assert cache.informer(JOBS, optional=True) is cache.informer(JOBS)
    await settle()
    assert cache.problem == "jobs.batch is not served by the API server: install the Job CRD"


async def test_malformed_selector_is_refused(cache: Cache) -> None:
    """A selector that the server would refuse is refused at once."""
    with pytest.raises(ValueError, match="unable to parse requirement"):
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
    client.add(pod("c"))
    await settle()
    client.faults.drop_watches()
    await settle()
    assert sample("watch_restarts_total", reason="closed") == 1
    client.faults.drop_watches(GoneError(410, "too old"))
    await clock.advance(1)
    assert sample("watch_restarts_total", reason="gone") == 1
    assert sample("lists_total") == 2
    client.faults.drop_watches(TransportError("reset"))
    await settle()
    assert sample("watch_restarts_total", reason="error") == 1


async def test_what_hinders_several_copies_is_said_once(
    cache: Cache, client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """An unreachable server is one message that names the resources; what concerns one resource stands by itself."""
    cache.informer(PODS)
    cache.informer(JOBS)
    cache.informer(SECRETS)
    client.faults.fail(TransportError("connection refused"), resource=PODS, times=None)
    client.faults.fail(TransportError("connection refused"), resource=JOBS, times=None)
    client.faults.fail(statuses.no_such_resource(), resource=SECRETS, times=None)
    background(cache.run())
    await settle()
    assert cache.problem == (
        "pods, jobs.batch could not be listed or watched: connection refused; "
        "secrets is not served by the API server: install the Secret CRD"
    )
    client.faults.clear()
    await clock.advance(10)
    await cache.wait_for_sync()
    assert cache.problem is None
