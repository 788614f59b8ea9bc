"""The journal: what survives the end of a process, and what is refused."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from packages.devcluster.tests.apiserver.builders import PARTITION, put, remove
from trainer_devcluster.apiserver.storage.journal import Journal
from trainer_devcluster.apiserver.storage.storage import Storage
from trainer_kube_testing.api_semantics.paging import CompactedError

FIRST = 1000
FILE = "objects.sqlite"


def opened(path: Path, *, compact_bytes: int = 1 << 30, first_revision: int = FIRST) -> tuple[Storage, Journal]:
    path.mkdir(exist_ok=True)
    storage = Storage(history=1000)
    return storage, Journal.open(path / FILE, storage, first_revision, compact_bytes=compact_bytes)


beside_loop = anyio.to_thread.run_sync


@asynccontextmanager
async def running(path: Path, **options: Any) -> AsyncIterator[Storage]:
    """A storage whose changes are written until the context closes."""
    storage, journal = await beside_loop(partial(opened, path, **options))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(journal.run)
        yield storage
        tasks.cancel_scope.cancel()


async def test_nothing_is_reported_before_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Watchers and those who wait see a change after it is written; writers see it at once; many share one write."""
    storage, journal = await beside_loop(opened, tmp_path)
    published: list[int] = []
    real = storage.publish

    def publish(revision: int) -> None:
        published.append(revision)
        real(revision)

    monkeypatch.setattr(storage, "publish", publish)
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
            assert published == [FIRST + 3]
            tasks.cancel_scope.cancel()


async def test_compaction_bounds_the_disk(tmp_path: Path) -> None:
    """Old changes are deleted; the state, its resource version and the recent past survive."""
    limit = 20_000
    async with running(tmp_path, compact_bytes=limit) as storage:
        put(storage, "kept")
        put(storage, "gone")
        remove(storage, "gone")
        for value in range(500):
            put(storage, "a", "x" * 500 + str(value))
            await storage.published()
        before, revision = storage.snapshot(PARTITION), storage.revision
    assert (await beside_loop((tmp_path / FILE).stat)).st_size < 6 * limit
    async with running(tmp_path, compact_bytes=limit) as storage:
        assert (storage.snapshot(PARTITION), storage.revision) == (before, revision)
        assert [change.revision for change in storage.changes_since(PARTITION, revision - 5)] == [
            *range(revision - 4, revision + 1)
        ]
        with pytest.raises(CompactedError):
            storage.changes_since(PARTITION, FIRST)


async def test_a_killed_server_loses_nothing_that_was_reported(tmp_path: Path) -> None:
    """What was published is there in a copy of the files made at that moment, whatever was being written next."""
    async with running(tmp_path / "first") as storage:
        for value in range(3):
            put(storage, "a", str(value))
        await storage.published()
        before = storage.snapshot(PARTITION)
        put(storage, "b")
        await beside_loop(shutil.copytree, tmp_path / "first", tmp_path / "second")
    async with running(tmp_path / "second") as storage:
        assert storage.snapshot(PARTITION)[:1] == before


def forget(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM changes WHERE revision = ?", (FIRST + 2,))


def renumber(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 7")


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        pytest.param(forget, "the changes between resource versions 1001 and 1003 are missing", id="change missing"),
        pytest.param(renumber, "its format is 7, this dev cluster reads 1", id="other format"),
    ],
)
async def test_damage_is_refused(tmp_path: Path, damage: Callable[[Path], None], problem: str) -> None:
    """A damaged file stops the start with its name, what is wrong and what to do."""
    async with running(tmp_path) as storage:
        for value in range(3):
            put(storage, "a", str(value))
            await storage.published()
    await beside_loop(damage, tmp_path / FILE)
    with pytest.raises(OSError, match="cannot be used") as caught:
        await beside_loop(opened, tmp_path)
    assert caught.value.filename == str(tmp_path / FILE)
    assert problem in (caught.value.strerror or "")
    assert f"move {tmp_path / FILE} away to start with an empty cluster" in (caught.value.strerror or "")


async def test_a_disk_that_cannot_be_written_stops_the_journal(tmp_path: Path) -> None:
    """What cannot be written is never sent to watchers, and the error names the file."""
    storage, journal = await beside_loop(opened, tmp_path)
    put(storage, "a")
    with contextlib.closing(await beside_loop(other_writer, tmp_path / FILE)):
        with anyio.fail_after(5), pytest.raises(OSError, match="cannot be written: database is locked") as caught:
            await journal.run()
        assert caught.value.filename == str(tmp_path / FILE)
        assert storage.changes_since(PARTITION, FIRST) == []


def other_writer(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    return connection
