"""The file of the audit log: nothing is lost, and no more waits for the disk than may."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import anyio
import pytest
import structlog.testing

from trainer_devcluster.apiserver.audit import AuditLog
from trainer_kube_testing import settle


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["number"] for line in path.read_text().splitlines()]


async def test_events_are_written_in_order_until_the_end(tmp_path: Path) -> None:
    """Those that come while it is stopped are written before it ends."""
    path = tmp_path / "audit.log"
    with AuditLog.opened(path) as log:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(log.run)
            log.add({"number": 1})
            while not path.read_bytes():
                await settle()
            log.add({"number": 2})
            tasks.cancel_scope.cancel()
            log.add({"number": 3})
    assert numbers(path) == [1, 2, 3]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_servers_share_a_file(tmp_path: Path) -> None:
    """What another server has written stays."""
    path = tmp_path / "audit.log"
    path.write_text('{"number": 0}\n')
    with AuditLog.opened(path) as one, AuditLog.opened(path) as other:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.run)
            tasks.start_soon(other.run)
            one.add({"number": 1})
            other.add({"number": 2})
            await settle()
            tasks.cancel_scope.cancel()
    assert sorted(numbers(path)) == [0, 1, 2]


async def test_requests_wait_for_room(tmp_path: Path) -> None:
    """While as many events wait for the disk as may, nobody gets in; then everybody does."""
    path = tmp_path / "audit.log"
    entered: list[str] = []

    async def enter(log: AuditLog) -> None:
        await log.wait_for_room()
        entered.append("in")

    with AuditLog.opened(path, limit=2) as log:
        log.add({"number": 1})
        await log.wait_for_room()
        log.add({"number": 2})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(enter, log)
            tasks.start_soon(enter, log)
            await settle()
            assert entered == []
            tasks.start_soon(log.run)
            while len(entered) < 2:
                await settle()
            tasks.cancel_scope.cancel()
    assert numbers(path) == [1, 2]


async def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log says how many events are lost, and the next ones are written."""
    path = tmp_path / "audit.log"
    write, is_full = os.write, True

    def fail(descriptor: int, text: memoryview) -> int:
        if is_full:
            raise OSError(28, "No space left on device")
        return write(descriptor, text)

    with AuditLog.opened(path) as log, structlog.testing.capture_logs() as logged:
        async with anyio.create_task_group() as tasks:
            monkeypatch.setattr(os, "write", fail)
            tasks.start_soon(log.run)
            log.add({"number": 1})
            log.add({"number": 2})
            while not logged:
                await settle()
            is_full = False
            log.add({"number": 3})
            while not path.read_bytes():
                await settle()
            monkeypatch.undo()
            tasks.cancel_scope.cancel()
    assert [(entry["event"], entry["lost"]) for entry in logged] == [("could not write to the audit log", 2)]
    assert numbers(path) == [3]


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    """The error names it."""
    with pytest.raises(FileNotFoundError, match="missing"), AuditLog.opened(tmp_path / "missing" / "log"):
        pass
