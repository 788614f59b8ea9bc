"""The journal: what survives the end of a process, and what is refused."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devcluster.tests.apiserver.builders import PARTITION, put, remove
from trainer.kube.api_semantics.paging import CompactedError
from trainer_devcluster.apiserver.storage.journal import Journal
from trainer_devcluster.apiserver.storage.storage import Partition, Storage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from trainer.kube.objects import Object

FIRST = 1000


def opened(path: Path, *, compact_bytes: int = 1 << 30, first_revision: int = FIRST) -> tuple[Storage, Journal]:
    storage = Storage(history=1000)
    return storage, Journal.open(path, storage, first_revision, compact_bytes=compact_bytes)


beside_loop = anyio.to_thread.run_sync


@asynccontextmanager
async def running(path: Path, **options: Any) -> AsyncIterator[Storage]:
    """A storage whose changes are written until the context closes."""
    storage, journal = await beside_loop(partial(opened, path, **options))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(journal.run)
        yield storage
        tasks.cancel_scope.cancel()


def objects(storage: Storage) -> dict[Partition, list[Object]]:
    return {partition: storage.snapshot(partition) for partition in storage.state()}


def only(path: Path, prefix: str) -> Path:
    [found] = path.glob(f"{prefix}-*")
    return found


async def test_everything_published_survives(tmp_path: Path) -> None:
    """Objects, deletions, resource versions and the history come back; a new one starts at the version given."""
    async with running(tmp_path) as storage:
        assert storage.revision == FIRST
        put(storage, "a", "1")
        put(storage, "a", "ü")
        put(storage, "gone")
        remove(storage, "gone")
        await storage.published()
        before, revision = objects(storage), storage.revision
        changes = storage.changes_since(PARTITION, FIRST)
    async with running(tmp_path, first_revision=5) as storage:
        assert (objects(storage), storage.revision) == (before, revision)
        again = storage.changes_since(PARTITION, FIRST)
        assert [(c.revision, c.type, c.key, c.object, c.previous) for c in again] == [
            (c.revision, c.type, c.key, c.object, c.previous) for c in changes
        ]
        assert int(put(storage, "b")["metadata"]["resourceVersion"]) == revision + 1
        with pytest.raises(CompactedError):
            storage.changes_since(PARTITION, FIRST - 1)


async def test_nothing_is_told_before_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Watchers and those who wait see a change after the sync; writers see it at once; many share one sync."""
    syncs: list[int] = []
    storage, journal = await beside_loop(opened, tmp_path)
    real = os.fdatasync

    def count(descriptor: int) -> None:
        syncs.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", count)
    for name in "abc":
        put(storage, name)
    assert storage.changes_since(PARTITION, FIRST) == []
    assert (storage.revision, storage.published_revision) == (FIRST + 3, FIRST)
    changed = storage.changed(PARTITION)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(journal.run)
            await storage.published()
            assert changed.is_set()
            assert len(storage.changes_since(PARTITION, FIRST)) == 3
            assert len(syncs) == 1
            tasks.cancel_scope.cancel()


async def test_what_is_pending_at_the_end_is_written(tmp_path: Path) -> None:
    """A server that is stopped writes what no client has seen yet, too."""
    async with running(tmp_path) as storage:
        await anyio.lowlevel.checkpoint()
        put(storage, "a")
    async with running(tmp_path) as storage:
        assert [obj["metadata"]["name"] for obj in storage.snapshot(PARTITION)] == ["a"]


async def test_compaction_bounds_the_disk(tmp_path: Path) -> None:
    """Old changes give way to a snapshot; the state and its resource version survive, and older versions are gone."""
    limit = 20_000
    async with running(tmp_path, compact_bytes=limit) as storage:
        for value in range(500):
            put(storage, "a", "x" * 500 + str(value))
            await storage.published()
        before, revision = objects(storage), storage.revision
        sizes = await beside_loop(lambda: [path.stat().st_size for path in tmp_path.iterdir()])
        assert sum(sizes) < 4 * limit
        assert len(sizes) <= 4
    async with running(tmp_path, compact_bytes=limit) as storage:
        assert (objects(storage), storage.revision) == (before, revision)
        with pytest.raises(CompactedError):
            storage.changes_since(PARTITION, FIRST)


async def test_an_interrupted_compaction_costs_nothing(tmp_path: Path) -> None:
    """Half a snapshot, or files that one has made superfluous, change nothing."""
    async with running(tmp_path, compact_bytes=2000) as storage:
        for value in range(30):
            put(storage, "a", str(value))
            await storage.published()
        before = objects(storage)
    for name in ("snapshot-99999999.new", "snapshot-7", "journal-7"):
        await beside_loop((tmp_path / name).write_bytes, b"rubbish")
    async with running(tmp_path) as storage:
        assert objects(storage) == before
    assert not await beside_loop((tmp_path / "snapshot-99999999.new").exists)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_a_torn_end_is_cut_off(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Wherever the last write stopped, every change before it is there, and writing goes on behind it."""
    path = tmp_path_factory.mktemp("torn")

    async def scenario() -> None:
        sizes = []
        async with running(path) as storage:
            journal = await beside_loop(only, path, "journal")
            for value in range(3):
                sizes.append((await beside_loop(journal.stat)).st_size)
                put(storage, "a", str(value))
                await storage.published()
        content = await beside_loop(journal.read_bytes)
        cut = data.draw(st.integers(min_value=sizes[0], max_value=len(content) - 1))
        rubbish = data.draw(st.sampled_from([b"", b"\0" * 10, b"rubbish\n"]))
        await beside_loop(journal.write_bytes, content[:cut] + rubbish)
        intact = sum(later <= cut for later in sizes[1:])
        async with running(path) as storage:
            assert storage.revision == FIRST + intact
            put(storage, "b")
            await storage.published()
        async with running(path) as storage:
            assert storage.revision == FIRST + intact + 1

    anyio.run(scenario)


def spoil(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))


def contents(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in path.iterdir()}


@pytest.mark.parametrize(
    ("damage", "file", "problem"),
    [
        pytest.param(
            lambda path: spoil(only(path, "journal"), b'"value":"0"', b'"value":"9"'),
            "journal-1000",
            "line 2 is damaged",
            id="middle of the journal",
        ),
        pytest.param(
            lambda path: spoil(only(path, "snapshot"), b"trainer", b"trainee"),
            "snapshot-1000",
            "line 1 is damaged",
            id="snapshot",
        ),
        pytest.param(
            lambda path: only(path, "snapshot").unlink(),
            "journal-1000",
            "the snapshot that it continues is missing",
            id="snapshot missing",
        ),
        pytest.param(
            lambda path: only(path, "journal").rename(path / "journal-1001"),
            "journal-1001",
            "the changes between resource versions 1000 and 1001 are missing",
            id="segment missing",
        ),
        pytest.param(
            lambda path: only(path, "snapshot").rename(path / "snapshot-999"),
            "snapshot-999",
            "it has been renamed",
            id="renamed",
        ),
    ],
)
async def test_damage_is_refused(tmp_path: Path, damage: Callable[[Path], object], file: str, problem: str) -> None:
    """A damaged or missing file stops the start with its name, what is wrong and what to do; nothing is changed."""
    async with running(tmp_path) as storage:
        for value in range(3):
            put(storage, "a", str(value))
            await storage.published()
    await beside_loop(damage, tmp_path)
    before = await beside_loop(contents, tmp_path)
    with pytest.raises(OSError, match="cannot be used") as caught:
        await beside_loop(opened, tmp_path)
    assert caught.value.filename == str(tmp_path / file)
    assert problem in (caught.value.strerror or "")
    assert f"move {tmp_path} away to start with an empty cluster" in (caught.value.strerror or "")
    assert await beside_loop(contents, tmp_path) == before


async def test_a_full_disk_stops_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be written is never told, and the error names the file."""
    storage, journal = await beside_loop(opened, tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", full)
    put(storage, "a")
    with anyio.fail_after(5), pytest.raises(ExceptionGroup) as caught:
        await journal.run()
    [error] = caught.value.exceptions
    assert isinstance(error, OSError)
    assert (error.filename, error.strerror) == (
        str(tmp_path / "journal-1000"),
        "cannot be written: No space left on device",
    )
    assert storage.changes_since(PARTITION, FIRST) == []
