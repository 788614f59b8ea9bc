"""Paged lists."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tests.kube.objects import pod
from trainer.kube.client import ListOptions, ObjectList, RawJson
from trainer.kube.errors import GoneError, InternalError
from trainer.kube.objects import Object, name_of
from trainer.kube.pager import PAGE_BYTES, PAGE_SIZE, collect, list_all
from trainer.kube.resource import PODS
from trainer.kube.selection import Selection
from trainer_kube_testing import FakeClient

EXPIRED = GoneError(410, "the provided continue parameter is too old", reason="Expired")


def page(objects: list[Object], resource_version: str, continue_token: str = "") -> ObjectList:
    return ObjectList([msgspec.json.encode(obj) for obj in objects], resource_version, continue_token)


def decode(raw: RawJson) -> Object:
    return msgspec.json.decode(raw, type=dict)


@pytest.fixture
def client() -> FakeClient:
    """More pods than fit in two pages."""
    return FakeClient(*(pod(f"p{number:04}") for number in range(2 * PAGE_SIZE + 1)))


async def test_reads_all_pages(client: FakeClient) -> None:
    """All objects come in one list, read in pages; only the first request names a resource version."""
    collected = await collect(client, PODS, Selection(), decode, resource_version="0")
    assert len(collected.items) == 2 * PAGE_SIZE + 1
    assert collected.resource_version == str(2 * PAGE_SIZE + 1)
    options: list[ListOptions] = [request.body for request in client.requests]
    assert [(request.resource_version, request.limit) for request in options] == [
        ("0", PAGE_SIZE),
        ("", PAGE_SIZE),
        ("", PAGE_SIZE),
    ]
    assert [bool(request.continue_token) for request in options] == [False, True, True]


async def test_version_that_was_seen_is_listed_at_once(client: FakeClient) -> None:
    """With a limit the server would read that very version, which may be compacted, instead of a newer one."""
    await collect(client, PODS, Selection(), decode, resource_version="7")
    assert [request.body for request in client.requests] == [ListOptions(resource_version="7")]


async def test_objects_that_are_not_admitted(client: FakeClient) -> None:
    """They are dropped as they come, so that no list is longer than what is kept of it."""
    seen: list[str] = []

    def new_filter() -> Callable[[Object], bool]:
        return lambda obj: seen.append(name_of(obj)) or len(seen) <= 2  # type: ignore[func-returns-value]

    collected = await collect(client, PODS, Selection(), decode, new_filter=new_filter)
    assert [name_of(obj) for obj in collected.items] == ["p0000", "p0001"]
    assert len(seen) == 2 * PAGE_SIZE + 1


class Pages:
    """Answers requests one after another, an exception by raising it."""

    def __init__(self, *answers: ObjectList | Exception) -> None:
        self._answers = list(answers)
        self.options: list[ListOptions] = []

    async def list_page(self, resource: object, selection: object, options: ListOptions) -> ObjectList:
        self.options.append(options)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_expired_continue_token_leads_to_one_full_list() -> None:
    """A snapshot that is gone half-way is replaced by a whole new one, without duplicates."""
    source = Pages(page([pod("a")], "5", "token"), EXPIRED, page([pod("a"), pod("b")], "6"))
    collected = await collect(source, PODS, Selection(), decode, resource_version="0")  # type: ignore[arg-type]
    assert [name_of(obj) for obj in collected.items] == ["a", "b"]
    assert collected.resource_version == "6"
    assert source.options[-1] == ListOptions(resource_version="0")


@pytest.mark.parametrize(
    ("size", "limit"),
    [
        pytest.param(100, PAGE_SIZE, id="small-objects"),
        pytest.param(PAGE_BYTES // 20, 19, id="large-objects"),
        pytest.param(2 * PAGE_BYTES, 1, id="larger-than-a-page"),
    ],
)
async def test_pages_of_large_objects_have_fewer(size: int, limit: int) -> None:
    """A page is about four megabytes at most, so that it neither fills the memory nor holds up the loop."""
    large = pod("a") | {"data": "x" * size}
    source = Pages(page([large] * 2, "5", "token"), page([], "5"))
    await collect(source, PODS, Selection(), decode)  # type: ignore[arg-type]
    assert source.options[1].limit == limit


@pytest.mark.parametrize("error", [EXPIRED, InternalError(500, "boom")], ids=["gone", "internal"])
async def test_failure_of_the_first_page_is_the_callers(client: FakeClient, error: Exception) -> None:
    """What the first request raises reaches the caller."""
    client.faults.fail(error)
    with pytest.raises(type(error)):
        await list_all(client, PODS, Selection())
