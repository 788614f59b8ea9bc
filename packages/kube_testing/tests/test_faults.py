"""What a test can make of the requests of a fake."""

from __future__ import annotations

import pytest

from packages.kube_testing.tests.conftest import Follow
from tests.kube.conftest import Background
from tests.kube.objects import job, pod
from trainer.kube.client import WatchOptions
from trainer.kube.errors import KubeError, TooManyRequestsError, TransportError
from trainer.kube.resource import JOBS, PODS
from trainer_kube_testing import WRITES, FakeClient, settle, statuses
from trainer_kube_testing.faults import Match


@pytest.fixture
def client() -> FakeClient:
    return FakeClient(pod("a"), job("a"))


async def fails(client: FakeClient, name: str = "a") -> bool:
    """Whether reading a pod fails."""
    try:
        await client.get(PODS, name, "ns")
    except KubeError:
        return True
    return False


async def test_so_many_times(client: FakeClient) -> None:
    """A fault meets so many requests after those it skips, and counts them."""
    fault = client.faults.fail(statuses.unavailable(), times=2, skip=1)
    assert [await fails(client) for _ in range(5)] == [False, True, True, False, False]
    assert fault.hits == 2
    assert fault.is_over


@pytest.mark.parametrize(
    ("match", "meets"),
    [
        pytest.param({}, True, id="all"),
        pytest.param({"verb": "patch"}, True, id="verb"),
        pytest.param({"verb": "create"}, False, id="another-verb"),
        pytest.param({"verb": WRITES}, True, id="verbs"),
        pytest.param({"resource": PODS}, True, id="resource"),
        pytest.param({"resource": JOBS}, False, id="another-resource"),
        pytest.param({"namespace": "ns", "name": "a"}, True, id="object"),
        pytest.param({"namespace": "other"}, False, id="another-namespace"),
        pytest.param({"name": "b"}, False, id="another-name"),
        pytest.param({"subresource": "status"}, True, id="subresource"),
        pytest.param({"subresource": ""}, False, id="no-subresource"),
        pytest.param({"verb": "patch", "name": "b"}, False, id="all-of-them"),
    ],
)
async def test_meant_for(client: FakeClient, match: Match, meets: bool) -> None:
    """A fault meets the requests that agree with all it names."""
    fault = client.faults.fail(statuses.unavailable(), **match)
    if meets:
        with pytest.raises(KubeError):
            await client.patch(PODS, "a", {}, "ns", subresource="status")
    else:
        await client.patch(PODS, "a", {}, "ns", subresource="status")
    assert fault.hits == int(meets)


async def test_earlier_faults_come_first(client: FakeClient) -> None:
    """One request meets one failure; the next request meets the next."""
    client.faults.fail(statuses.too_many_requests(retry_after=20))
    client.faults.fail(TransportError("reset"))
    with pytest.raises(TooManyRequestsError) as shed:
        await client.get(PODS, "a", "ns")
    assert shed.value.retry_after_seconds == 20
    with pytest.raises(TransportError):
        await client.get(PODS, "a", "ns")


async def test_lost_answer(client: FakeClient) -> None:
    """The write is done, but its author cannot know."""
    client.faults.lose_answer(verb=WRITES, skip=1)
    await client.create(PODS, pod("b"))
    with pytest.raises(TransportError):
        await client.create(PODS, pod("c"))
    assert [obj["metadata"]["name"] for obj in client.objects(PODS)] == ["a", "b", "c"]


async def test_lost_answer_of_a_refusal(client: FakeClient) -> None:
    """A refusal is an answer, too."""
    client.faults.lose_answer()
    with pytest.raises(TransportError):
        await client.get(PODS, "missing", "ns")


@pytest.mark.parametrize(
    ("answers", "while_held"), [pytest.param(False, ["a"], id="requests"), pytest.param(True, ["a", "b"], id="answers")]
)
async def test_held(client: FakeClient, background: Background, answers: bool, while_held: list[str]) -> None:
    """Requests wait before they are carried out, answers after it, until they are released."""
    hold = client.faults.hold(verb="create", answers=answers)
    creation = background(client.create(PODS, pod("b")))
    await settle()
    assert (hold.waiting, creation.done()) == (1, False)
    assert [obj["metadata"]["name"] for obj in client.objects(PODS)] == while_held
    assert not await fails(client)
    hold.release()
    await settle()
    assert creation.done()
    await client.create(PODS, pod("c"))


async def test_released_one_by_one(client: FakeClient, background: Background) -> None:
    """The request that has waited longest goes first; later ones are still held."""
    hold = client.faults.hold(verb="create")
    tasks = [background(client.create(PODS, pod(name))) for name in "bcd"]
    await settle()
    hold.release(2)
    await settle()
    assert [task.done() for task in tasks] == [True, True, False]
    background(client.create(PODS, pod("e")))
    await settle()
    assert hold.waiting == 2
    client.faults.release()
    await settle()
    assert hold.waiting == 0
    assert len(client.objects(PODS)) == 5


async def test_cancelled_while_held(client: FakeClient, background: Background) -> None:
    """A client that gives up leaves nothing behind: the request is never carried out."""
    hold = client.faults.hold(verb="create")
    creation = background(client.create(PODS, pod("b")))
    await settle()
    creation.cancel()
    await settle()
    assert hold.waiting == 0
    hold.release()
    await settle()
    assert client.find(PODS, "b", "ns") is None


async def test_refused_connections(client: FakeClient, follow: Follow) -> None:
    """A server that is down breaks watches and answers nothing."""
    watch = follow(client, options=WatchOptions("2"))
    await settle()
    client.faults.refuse_connections()
    await settle()
    assert isinstance(watch.error, TransportError)
    assert await fails(client)
    client.faults.accept_connections()
    assert not await fails(client)


async def test_partition(client: FakeClient, background: Background, follow: Follow) -> None:
    """A partition swallows requests and watches without a word; delayed requests arrive when it heals."""
    watch = follow(client, options=WatchOptions("2"))
    await settle()
    client.faults.partition()
    creation = background(client.create(PODS, pod("b")))
    client.add(pod("c"))
    await settle()
    assert not creation.done()
    client.faults.heal()
    await settle()
    assert creation.done()
    assert client.find(PODS, "b", "ns") is not None
    assert (watch.seen, watch.has_ended) == ([], False)


async def test_clear_takes_everything_back(client: FakeClient, background: Background) -> None:
    """After it the fake behaves."""
    client.faults.fail(statuses.unavailable(), times=None)
    client.faults.hold(verb="create")
    client.faults.hold_watches()
    client.faults.refuse_connections()
    client.faults.clear()
    assert not await fails(client)
    creation = background(client.create(PODS, pod("b")))
    await settle()
    assert creation.done()
