"""What the watches of a fake send, and what faults do to them."""

from __future__ import annotations

import pytest

from packages.kube_testing.tests.conftest import Follow
from tests.kube.objects import job, pod
from trainer.kube.client import INITIAL_EVENTS_END, WatchOptions
from trainer.kube.errors import GoneError, InvalidError, KubeError, ServerTimeoutError, TransportError
from trainer.kube.resource import JOBS, PODS
from trainer.kube.selection import Selection
from trainer_kube_testing import FakeClient, StreamingLists, settle, statuses

STREAMING = WatchOptions(send_initial_events=True)


@pytest.fixture
def client() -> FakeClient:
    return FakeClient(pod("a"))


async def test_streaming_list(client: FakeClient, follow: Follow) -> None:
    """The initial events end with a marked bookmark, and changes follow."""
    client.add(pod("b"))
    watch = follow(client, options=STREAMING)
    await settle()
    client.add(pod("c"))
    await settle()
    assert watch.seen == ["ADDED a", "ADDED b", "BOOKMARK", "ADDED c"]
    metadata = watch.events[2].object["metadata"]
    assert metadata["resourceVersion"] == "2"
    assert metadata["annotations"] == {INITIAL_EVENTS_END: "true"}


async def test_streaming_list_of_the_future(client: FakeClient) -> None:
    """A version that is yet to come is refused as too large."""
    with pytest.raises(ServerTimeoutError) as refused:
        async with client.watch(PODS, options=WatchOptions("9", send_initial_events=True)):
            pass
    assert refused.value.has_cause("ResourceVersionTooLarge")


async def test_streaming_lists_refused(client: FakeClient) -> None:
    """A server may know streaming lists and have them switched off."""
    client.faults.streaming_lists = StreamingLists.REFUSED
    with pytest.raises(InvalidError, match="sendInitialEvents: Forbidden"):
        async with client.watch(PODS, options=STREAMING):
            pass


async def test_streaming_lists_ignored(client: FakeClient, follow: Follow) -> None:
    """A server that is older than streaming lists sends what exists and marks no end."""
    client.faults.streaming_lists = StreamingLists.IGNORED
    watch = follow(client, options=STREAMING)
    await settle()
    assert watch.seen == ["ADDED a"]


async def test_metadata_only(client: FakeClient, follow: Follow) -> None:
    """A watch for metadata is sent PartialObjectMetadata."""
    client.add(pod("b", labels={"x": "y"}) | {"spec": {"nodeName": "n"}})
    watch = follow(client, selection=Selection(metadata_only=True))
    await settle()
    sent = watch.events[0].object
    assert sent["kind"] == "PartialObjectMetadata"
    assert sent["metadata"]["labels"] == {"x": "y"}
    assert "spec" not in sent


async def test_watches_share_the_encoded_object(client: FakeClient, follow: Follow) -> None:
    """An event is encoded once, however many watch."""
    watches = [follow(client), follow(client)]
    client.add(pod("b"))
    await settle()
    first, second = (watch.events[0].raw for watch in watches)
    assert first is second


async def test_forgotten_version(client: FakeClient, follow: Follow) -> None:
    """After a compaction older versions are gone, while an open watch goes on."""
    before = follow(client)
    await settle()
    client.add(pod("b"))
    client.compact()
    after = follow(client)
    client.add(pod("c"))
    await settle()
    assert isinstance(after.error, GoneError)
    assert before.seen == ["ADDED b", "ADDED c"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(None, None, id="cleanly"),
        pytest.param(statuses.expired(), GoneError, id="error-event"),
        pytest.param(TransportError("reset"), TransportError, id="broken"),
    ],
)
async def test_dropped(
    client: FakeClient, follow: Follow, error: KubeError | None, expected: type[KubeError] | None
) -> None:
    """A test decides how watches end; what was due comes first."""
    watch = follow(client)
    await settle()
    client.add(pod("b"))
    assert client.faults.drop_watches(error) == 1
    await settle()
    assert watch.seen == ["ADDED b"]
    assert watch.has_ended
    assert type(watch.error) is (expected or type(None))


async def test_silent(client: FakeClient, follow: Follow) -> None:
    """A half-open connection never says anything again, not even that it ended; a new watch does."""
    watch = follow(client)
    await settle()
    client.faults.silence_watches()
    client.add(pod("b"))
    client.faults.drop_watches()
    later = follow(client)
    await settle()
    assert watch.seen == []
    assert not watch.has_ended
    assert later.seen == ["ADDED b"]


async def test_bookmarks(client: FakeClient, follow: Follow) -> None:
    """Bookmarks come when the test wants them, with the version that the watch has reached."""
    watch = follow(client)
    await settle()
    client.add(job("j"))
    client.faults.send_bookmarks()
    await settle()
    assert watch.seen == ["BOOKMARK"]
    assert watch.events[0].object["metadata"]["resourceVersion"] == "2"


async def test_held_and_released_one_by_one(client: FakeClient, follow: Follow) -> None:
    """Held changes come in the order of the server, counted over all watches."""
    pods, jobs = follow(client), follow(client, JOBS)
    client.faults.hold_watches()
    client.add(pod("b"))
    client.add(job("j"))
    client.add(pod("c"))
    await settle()
    assert pods.seen == jobs.seen == []
    assert len((await client.list(PODS)).items) == 3
    assert client.faults.release_watches(1) == 2
    await settle()
    assert (pods.seen, jobs.seen) == (["ADDED b"], [])
    assert client.faults.release_watches(1) == 1
    await settle()
    assert (pods.seen, jobs.seen) == (["ADDED b"], ["ADDED j"])
    assert client.faults.release_watches() == 0
    client.add(pod("d"))
    await settle()
    assert pods.seen == ["ADDED b", "ADDED c", "ADDED d"]


async def test_changes_that_nobody_watches_are_not_counted(client: FakeClient, follow: Follow) -> None:
    """A released change is one that somebody sees."""
    watch = follow(client, selection=Selection("ns"))
    client.faults.hold_watches()
    client.add(job("j"))
    client.add(pod("elsewhere", "other"))
    client.add(pod("b"))
    await settle()
    assert client.faults.release_watches(1) == 0
    await settle()
    assert watch.seen == ["ADDED b"]


async def test_dropped_while_held(client: FakeClient, follow: Follow) -> None:
    """What is held is not due: a drop loses it, and the next watch finds it."""
    watch = follow(client)
    await settle()
    client.faults.hold_watches(PODS)
    client.add(pod("b"))
    client.faults.drop_watches()
    await settle()
    assert (watch.seen, watch.has_ended) == ([], True)
    client.faults.release()
    later = follow(client)
    await settle()
    assert later.seen == ["ADDED b"]
