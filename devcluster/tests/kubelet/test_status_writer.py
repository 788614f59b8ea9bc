"""Bringing statuses to the server."""

from __future__ import annotations

import anyio
import pytest

from devcluster.tests.kubelet.fakes import FakePodApi, make_pod
from trainer.kube.errors import TransportError
from trainer.kube.testing import ManualClock
from trainer_devcluster.kubelet.status_writer import StatusWriter

POD = make_pod("pod", {"name": "main"})


async def test_retries_and_skips() -> None:
    """A failed write is repeated with what is wanted by then, and what was overtaken is never written."""
    api, clock = FakePodApi(), ManualClock()
    writer = StatusWriter(api, clock)
    api.failures = [TransportError("refused"), TransportError("refused")]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        writer.publish(POD, {"phase": "Pending"})
        await clock.wait_for_sleepers()
        writer.publish(POD, {"phase": "Running"})
        writer.publish(POD, {"phase": "Succeeded"})
        await clock.advance(60)
        await writer.flush()
        tasks.cancel_scope.cancel()
    assert api.statuses["pod"] == [{"phase": "Succeeded"}]


async def test_unchanged() -> None:
    """A status that is on the server already is not written again."""
    api = FakePodApi()
    writer = StatusWriter(api, ManualClock())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        for _ in range(2):
            writer.publish(POD, {"phase": "Running"})
            await writer.flush()
        tasks.cancel_scope.cancel()
    assert api.statuses["pod"] == [{"phase": "Running"}]


@pytest.mark.parametrize("published", [False, True], ids=["nothing to write", "pod is gone"])
async def test_flush(published: bool) -> None:
    """Waiting for the last write ends if there is none, or the pod is gone."""
    api = FakePodApi()
    api.deleted.append(POD["metadata"]["uid"])
    writer = StatusWriter(api, ManualClock())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        if published:
            writer.publish(POD, {"phase": "Failed"})
        with anyio.fail_after(10):
            await writer.flush()
        tasks.cancel_scope.cancel()
    assert api.statuses == {}
