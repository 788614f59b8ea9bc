"""Paged lists."""

from __future__ import annotations

import pytest

from tests.kube.objects import pod
from trainer.kube.client import ListOptions, Selection
from trainer.kube.errors import GoneError, InternalError
from trainer.kube.informer import strip_managed_fields
from trainer.kube.objects import name_of
from trainer.kube.pager import PAGE_SIZE, list_all
from trainer.kube.resource import PODS
from trainer.kube.testing import FakeClient

EXPIRED = GoneError(410, "the provided continue parameter is too old", reason="Expired")


@pytest.fixture
def client() -> FakeClient:
    """More pods than fit in two pages."""
    return FakeClient(*(pod(f"p{number:04}") for number in range(2 * PAGE_SIZE + 1)))


async def test_reads_all_pages(client: FakeClient) -> None:
    """All objects come in one list, read in pages; only the first request names a resource version."""
    listed = await list_all(client, PODS, Selection(), resource_version="0")
    assert len(listed.items) == 2 * PAGE_SIZE + 1
    assert listed.resource_version == str(2 * PAGE_SIZE + 1)
    assert [request.body for request in client.requests] == [
        ListOptions(resource_version="0", limit=PAGE_SIZE),
        ListOptions(limit=PAGE_SIZE, continue_token="500"),
        ListOptions(limit=PAGE_SIZE, continue_token="1000"),
    ]


async def test_expired_continue_token_leads_to_one_full_list(client: FakeClient) -> None:
    """A snapshot that is gone half-way is replaced by a whole new one, without duplicates."""
    await client.list_page(PODS)
    client.requests.clear()
    page = await client.list_page(PODS, options=ListOptions(limit=PAGE_SIZE))

    class Expiring:
        """Answers the second page with 410."""

        def __init__(self) -> None:
            self.options: list[ListOptions] = []

        async def list_page(self, resource: object, selection: object, options: ListOptions) -> object:
            self.options.append(options)
            if options.continue_token:
                raise EXPIRED
            return page if options.limit else await client.list_page(PODS)

    source = Expiring()
    listed = await list_all(source, PODS, Selection(), resource_version="0")  # type: ignore[arg-type]
    assert len({name_of(item) for item in listed.items}) == len(listed.items) == 2 * PAGE_SIZE + 1
    assert source.options[-1] == ListOptions(resource_version="0")


@pytest.mark.parametrize("error", [EXPIRED, InternalError(500, "boom")], ids=["gone", "internal"])
async def test_failure_of_the_first_page_is_the_callers(client: FakeClient, error: Exception) -> None:
    """What the first request raises reaches the caller."""
    client.fail_next(error)
    with pytest.raises(type(error)):
        await list_all(client, PODS, Selection())


async def test_transform_applies_to_every_object() -> None:
    """Objects are transformed as they arrive."""
    client = FakeClient(pod("a", managedFields=[{"manager": "m"}]))
    listed = await list_all(client, PODS, Selection(), transform=strip_managed_fields)
    assert "managedFields" not in listed.items[0]["metadata"]
