"""Lists in pages and at resource versions."""

from __future__ import annotations

import pytest

from tests.kube.objects import pod
from trainer.kube.client import ListOptions, ObjectList
from trainer.kube.errors import BadRequestError, GoneError, KubeError, ServerTimeoutError
from trainer.kube.objects import name_of
from trainer.kube.resource import PODS
from trainer.kube.selection import EVERYTHING, Selection
from trainer_kube_testing import FakeClient


@pytest.fixture
def client() -> FakeClient:
    """Version 1 has a, 2 has a and b, 3 has b alone, 4 has b and c."""
    client = FakeClient(pod("a"), pod("b"))
    client.remove(PODS, "a", "ns")
    client.add(pod("c"))
    return client


def names(page: ObjectList) -> list[str]:
    return [name_of(obj) for obj in page.items]


@pytest.mark.parametrize(
    ("options", "expected", "version"),
    [
        pytest.param(ListOptions(), ["b", "c"], "4", id="newest"),
        pytest.param(ListOptions("2", limit=5), ["a", "b"], "2", id="exact-with-a-limit"),
    ],
)
async def test_versions(client: FakeClient, options: ListOptions, expected: list[str], version: str) -> None:
    """A list is read at the version that its parameters mean."""
    page = await client.list_page(PODS, EVERYTHING, options)
    assert (names(page), page.resource_version) == (expected, version)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        pytest.param(ListOptions("5"), ServerTimeoutError, id="too-large"),
        pytest.param(ListOptions("1", limit=5), GoneError, id="compacted"),
        pytest.param(ListOptions("x"), BadRequestError, id="no-version"),
        pytest.param(ListOptions("4", continue_token="4-1"), BadRequestError, id="continue-at-a-version"),
        pytest.param(ListOptions(continue_token="4-9"), BadRequestError, id="unknown-token"),
    ],
)
async def test_refusals(client: FakeClient, options: ListOptions, error: type[KubeError]) -> None:
    """A list that cannot be read is refused as a server does."""
    client.compact()
    with pytest.raises(error):
        await client.list_page(PODS, EVERYTHING, options)


async def test_pages_are_of_one_snapshot(client: FakeClient) -> None:
    """Later pages show what was there at the first one, until a compaction forgets it."""
    first = await client.list_page(PODS, EVERYTHING, ListOptions(limit=1))
    client.remove(PODS, "c", "ns")
    options = ListOptions(limit=1, continue_token=first.continue_token)
    second = await client.list_page(PODS, EVERYTHING, options)
    assert (names(first), names(second)) == (["b"], ["c"])
    assert (first.resource_version, second.resource_version) == ("4", "4")
    assert not second.continue_token
    client.compact()
    with pytest.raises(GoneError):
        await client.list_page(PODS, EVERYTHING, options)


async def test_metadata_only(client: FakeClient) -> None:
    """Items are PartialObjectMetadata."""
    page = await client.list_page(PODS, Selection(metadata_only=True))
    assert {item["kind"] for item in page.items} == {"PartialObjectMetadata"}
