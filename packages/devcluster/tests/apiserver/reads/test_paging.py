"""Lists in pages."""

from __future__ import annotations

from functools import partial

import pytest

from packages.devcluster.tests.apiserver.builders import PARTITION, put, remove
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object, key_of, name_of
from trainer_devcluster.apiserver.storage.storage import Storage
from trainer_kube_testing.api_semantics.paging import Lists, Page


def everything(_: Object) -> bool:
    return True


def names(page: Page[Object]) -> list[str]:
    return [name_of(obj) for obj in page.items]


def lists(storage: Storage) -> Lists[Object]:
    return Lists(partial(storage.snapshot, PARTITION), key_of, lambda: storage.revision)


@pytest.fixture
def storage() -> Storage:
    storage = Storage(history=8)
    for name in "abcde":
        put(storage, name)
    return storage


def test_pages_are_consistent_while_objects_change(storage: Storage) -> None:
    """The second page continues the list as it was when the first was read."""
    first = lists(storage).first_page(everything, 2)
    remove(storage, "c")
    put(storage, "bb")
    second = lists(storage).next_page(everything, 2, first.continue_token)
    last = lists(storage).next_page(everything, 2, second.continue_token)
    assert [names(page) for page in (first, second, last)] == [["a", "b"], ["c", "d"], ["e"]]
    assert [page.remaining for page in (first, second, last)] == [3, 1, None]
    assert first.revision == second.revision == last.revision
    assert last.continue_token == ""


def test_forgotten_pages_offer_an_inconsistent_rest(storage: Storage) -> None:
    """A token older than the history is refused with one for the rest of the present state."""
    token = lists(storage).first_page(everything, 2).continue_token
    for value in range(10):
        put(storage, "z", str(value))
    with pytest.raises(ApiError) as caught:
        lists(storage).next_page(everything, 2, token)
    assert (caught.value.code, caught.value.status_reason) == (410, "Expired")
    rest = lists(storage).next_page(everything, 0, caught.value.status["metadata"]["continue"])
    assert names(rest) == ["c", "d", "e", "z"]
    assert rest.revision == storage.revision


@pytest.mark.parametrize(
    "token",
    [
        pytest.param("garbage", id="not base64"),
        pytest.param("eyJ2IjoxfQ", id="fields missing"),
        pytest.param("W10", id="not an object"),
        pytest.param("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6IngiLCJzdGFydCI6ImEvYiJ9", id="revision not a number"),
    ],
)
def test_malformed_tokens_are_bad_requests(storage: Storage, token: str) -> None:
    """A token that is not ours is answered with 400."""
    with pytest.raises(ApiError) as caught:
        lists(storage).next_page(everything, 2, token)
    assert caught.value.code == 400
