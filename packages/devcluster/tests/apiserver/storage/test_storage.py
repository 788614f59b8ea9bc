"""The storage of the dev API server."""

from __future__ import annotations

import anyio
import pytest

from packages.devcluster.tests.apiserver.builders import PARTITION, config_map, key, put, remove
from trainer.kube.merge_patch import writable_copy
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


def test_changes_since_tell_what_happened_in_order() -> None:
    """The history has additions, modifications and deletions with the state before each."""
    storage = Storage()
    start = storage.revision
    put(storage, "a", "1")
    put(storage, "a", "2")
    remove(storage, "a")
    changes = storage.changes_since(PARTITION, start)
    assert [change.type for change in changes] == ["ADDED", "MODIFIED", "DELETED"]
    assert [change.previous and change.previous["data"]["value"] for change in changes] == [None, "1", "2"]
    assert storage.changes_since(PARTITION, changes[1].revision) == changes[2:]


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


def test_a_new_storage_knows_nothing_of_an_old_one() -> None:
    """Resource versions from before its start are forgotten ones, for lists and watches alike."""
    storage = Storage(revision=1000)
    assert int(put(storage, "a")["metadata"]["resourceVersion"]) == 1001
    assert len(storage.changes_since(PARTITION, 1000)) == 1
    with pytest.raises(CompactedError):
        storage.changes_since(PARTITION, 999)
    with pytest.raises(CompactedError):
        storage.snapshot(PARTITION, 999)


async def test_waiters_are_woken_by_changes() -> None:
    """An event of a partition is set by its next change, and a revision can be waited for."""
    storage = Storage()
    changed, other = storage.changed(PARTITION), storage.changed(OTHER)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(storage.wait_for_revision, storage.revision + 2)
        with anyio.fail_after(5):
            await anyio.lowlevel.checkpoint()
            put(storage, "a", "1")
            put(storage, "a", "2")
            await changed.wait()
    assert not other.is_set()


def test_stored_objects_are_not_touched_by_later_writes() -> None:
    """Readers keep what they have read; a writable copy shares nothing with it."""
    storage = Storage()
    read = put(storage, "a", "1")
    copy = writable_copy(read)
    copy["data"]["value"] = "changed"
    put(storage, "a", "2")
    assert read["data"]["value"] == "1"
