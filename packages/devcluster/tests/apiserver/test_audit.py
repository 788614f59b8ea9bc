"""The file of the audit log: nothing is lost, and no more waits for the disk than may."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import pytest
import structlog.testing

from trainer_devcluster.apiserver import audit
from trainer_devcluster.apiserver.audit import AuditLog
from trainer_kube_testing import settle


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["number"] for line in path.read_text().splitlines()]


async def test_requests_wait_for_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While as many events wait for the disk as may, nobody gets in; then everybody does."""
    path = tmp_path / "audit.log"
    entered: list[str] = []

    async def enter(log: AuditLog) -> None:
        await log.wait_for_room()
        entered.append("in")

    monkeypatch.setattr(audit, "PENDING_EVENTS", 2)
    with AuditLog.opened(path) as log:
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
