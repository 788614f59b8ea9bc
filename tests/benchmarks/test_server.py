from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
import pytest
from aiohttp.test_utils import TestServer

from benchmarks.server.control import Control, Disturbance, Emission, Reset
from benchmarks.server.http import Server
from benchmarks.server.objects import SENT_AT, can, config_map, pod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainer.kube import Object

PODS = "/api/v1/pods"


class _Client:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.control = Control(url, session)
        self._session = session
        self._url = url

    async def list(self, **query: str) -> Object:
        async with self._session.get(self._url + PODS, params=query) as response:
            page: Object = await response.json()
            return page

    @asynccontextmanager
    async def watch(self, **query: str) -> AsyncIterator[AsyncIterator[Object]]:
        async with self._session.get(self._url + PODS, params={"watch": "true"} | query) as response:
            yield _events(response)


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[Object]:
    async for line in response.content:
        event: Object = msgspec.json.decode(line)
        yield event


async def _take(events: AsyncIterator[Object], count: int) -> list[Object]:
    return [await anext(events) for _ in range(count)]


def _version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


@asynccontextmanager
async def _serving(reset: Reset) -> AsyncIterator[_Client]:
    async with TestServer(Server().app()) as server, aiohttp.ClientSession() as session:
        client = _Client(session, str(server.make_url("")).rstrip("/"))
        await client.control.reset(reset)
        yield client


async def test_lists_come_in_pages() -> None:
    """Limit and continue give each object once, at one resource version."""
    async with _serving(Reset("pods", 5)) as client:
        first = await client.list(limit="3", resourceVersion="0")
        second = await client.list(limit="3", **{"continue": first["metadata"]["continue"]})
    assert [len(first["items"]), len(second["items"])] == [3, 2]
    assert "continue" not in second["metadata"]
    assert len({item["metadata"]["uid"] for item in first["items"] + second["items"]}) == 5
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


async def test_lists_from_the_watch_cache_ignore_the_limit() -> None:
    """The switch makes lists at version 0 whole, and only those."""
    async with _serving(Reset("pods", 5, ignores_limit_at_zero=True)) as client:
        assert len((await client.list(limit="3", resourceVersion="0"))["items"]) == 5
        assert len((await client.list(limit="3"))["items"]) == 3


async def test_watch_shows_what_changes_after_its_version() -> None:
    """A watch from a list's version yields each later change, also one from before it was opened."""
    async with _serving(Reset("pods", 2)) as client:
        listed = await client.list()
        version = await client.control.emit(Emission(3))
        async with client.watch(resourceVersion=listed["metadata"]["resourceVersion"]) as events:
            seen = await _take(events, 3)
    assert [event["type"] for event in seen] == ["MODIFIED"] * 3
    assert [_version(event["object"]) for event in seen] == [version - 2, version - 1, version]
    assert [event["object"]["kind"] for event in seen] == ["Pod"] * 3


async def test_watch_from_the_beginning_shows_all_objects() -> None:
    """Without a version a watch begins with what exists, then shows objects that appear."""
    async with _serving(Reset("pods", 3, visible=2)) as client, client.watch() as events:
        initial = await _take(events, 2)
        await client.control.emit(Emission(1, adds=True))
        [added] = await _take(events, 1)
    assert [event["type"] for event in initial] == ["ADDED", "ADDED"]
    assert added["type"] == "ADDED"
    assert len({event["object"]["metadata"]["uid"] for event in (*initial, added)}) == 3


async def test_streamed_list_ends_with_the_annotated_bookmark() -> None:
    """sendInitialEvents gives all objects and then a bookmark with initial-events-end."""
    async with (
        _serving(Reset("pods", 2, streams_lists=True)) as client,
        client.watch(sendInitialEvents="true") as events,
    ):
        *objects, bookmark = await _take(events, 3)
    assert [event["type"] for event in objects] == ["ADDED", "ADDED"]
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_streamed_list_is_refused_where_the_server_is_older() -> None:
    """sendInitialEvents is Invalid by default."""
    async with _serving(Reset("pods", 1)) as client, client.watch(sendInitialEvents="true") as events:
        assert (await anext(events))["code"] == 422


@pytest.mark.parametrize("orderly", [pytest.param(True, id="ended"), pytest.param(False, id="dropped")])
async def test_disturbance_ends_watches_and_hides_a_change(orderly: bool) -> None:
    """No open watch shows the change; one that goes on from the last version does."""
    async with _serving(Reset("pods", 2)) as client:
        start = (await client.list())["metadata"]["resourceVersion"]
        async with client.watch(resourceVersion=start) as events:
            await client.control.wait_for_watch()
            disturbed = await client.control.disturb(Disturbance(is_orderly=orderly))
            with pytest.raises(StopAsyncIteration if orderly else aiohttp.ClientPayloadError):
                await anext(events)
        async with client.watch(resourceVersion=start) as events:
            assert _version((await anext(events))["object"]) == disturbed.version


async def test_compaction_expires_watches() -> None:
    """A watch from before the compaction gets a 410 event, one from a new list does not."""
    async with _serving(Reset("pods", 2)) as client:
        start = (await client.list())["metadata"]["resourceVersion"]
        await client.control.disturb(Disturbance(compacts=True))
        async with client.watch(resourceVersion=start) as events:
            expired = await anext(events)
        async with client.watch(resourceVersion=(await client.list())["metadata"]["resourceVersion"]) as events:
            await client.control.emit(Emission(1))
            assert (await anext(events))["type"] == "MODIFIED"
    assert (expired["type"], expired["object"]["code"], expired["object"]["reason"]) == ("ERROR", 410, "Expired")


@pytest.mark.parametrize(
    ("build", "low", "high", "managed"),
    [pytest.param(pod, 7_800, 8_300, 0.45, id="pod"), pytest.param(config_map, 900, 1_200, 0.3, id="ConfigMap")],
)
def test_canned_objects_weigh_as_real_ones(build: Any, low: int, high: int, managed: float) -> None:
    """Size and share of managedFields are those that the tables speak of, and the gaps are filled."""
    encoded = can(7, build).encode(1234, 5678)
    metadata = msgspec.json.decode(encoded)["metadata"]
    assert low <= len(encoded) <= high
    assert len(msgspec.json.encode(metadata["managedFields"])) / len(encoded) == pytest.approx(managed, abs=0.04)
    assert metadata["resourceVersion"] == "1234"
    assert metadata["annotations"] == {SENT_AT: "5678"}
