"""The storage of the dev API server."""

from __future__ import annotations

import pytest

from packages.devcluster.tests.apiserver.builders import PARTITION, config_map, key, put, remove
from trainer.kube.objects import name_of
from trainer_devcluster.apiserver.storage.storage import (
    INITIAL_REVISION,
    Partition,
    StaleWriteError,
    Storage,
)
from trainer_kube_testing.api_semantics.paging import CompactedError

OTHER = Partition("", "secrets")


def names(storage: Storage, revision: int | None = None) -> list[str]:
    return [name_of(obj) for obj in storage.snapshot(PARTITION, revision)]


@pytest.mark.parametrize("name", [pytest.param("a", id="changed since"), pytest.param("missing", id="gone")])
def test_stale_writers_are_refused(name: str) -> None:
    """Who writes or deletes from an old copy has to read again."""
    storage = Storage()
    old = put(storage, "a", "1")["metadata"]["resourceVersion"]
    put(storage, "a", "2")
    with pytest.raises(StaleWriteError):
        storage.update(PARTITION, key(name), config_map(name), expected=old)
    with pytest.raises(StaleWriteError):
        storage.delete(PARTITION, key(name), expected=old)


def test_snapshot_of_the_past_undoes_later_changes() -> None:
    """A list at a revision shows what was there then."""
    storage = Storage()
    put(storage, "a", "1")
    put(storage, "gone")
    then = storage.revision
    put(storage, "a", "2")
    remove(storage, "gone")
    put(storage, "new")
    assert names(storage, then) == ["a", "gone"]
    assert storage.snapshot(PARTITION, then)[0]["data"]["value"] == "1"
    assert names(storage) == ["a", "new"]


def test_history_is_bounded_per_partition() -> None:
    """Old changes are forgotten and asking for them is an error; quiet partitions keep theirs."""
    storage = Storage(history=2)
    storage.create(OTHER, key("s"), config_map("s"))
    start = storage.revision
    for value in "123":
        put(storage, "a", value)
    with pytest.raises(CompactedError) as caught:
        storage.changes_since(PARTITION, start)
    assert (caught.value.requested, caught.value.oldest) == (start, start + 1)
    with pytest.raises(CompactedError):
        storage.snapshot(PARTITION, start)
    assert len(storage.changes_since(PARTITION, start + 1)) == 2
    assert len(storage.changes_since(OTHER, INITIAL_REVISION)) == 1
