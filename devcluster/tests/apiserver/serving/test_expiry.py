"""The end of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from trainer.kube.objects import ObjectKey, name_of
from trainer.kube.resource import EVENTS
from trainer.kube.testing.clock import ManualClock
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.registry import Registry
from trainer_devcluster.apiserver.serving.expiry import expire_events
from trainer_devcluster.apiserver.storage.storage import Partition, Storage

if TYPE_CHECKING:
    from pathlib import Path


async def test_events_live_for_an_hour_after_they_were_last_seen(tmp_path: Path) -> None:
    """Old events go; one that was repeated lately stays."""
    clock, storage = ManualClock(), Storage()
    created = "2026-01-01T00:00:00Z"
    for name, last in (("old", created), ("repeated", "2026-01-01T00:30:00Z"), ("undated", None)):
        metadata = {"name": name, "namespace": "ns", "creationTimestamp": created}
        storage.create(Partition.of(EVENTS), ObjectKey("ns", name), {"metadata": metadata, "lastTimestamp": last})
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            continued = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:30:00.000000Z"}}
            metadata = {"name": "series", "namespace": "ns", "creationTimestamp": created}
            storage.create(Partition.of(EVENTS), ObjectKey("ns", "series"), {"metadata": metadata, **continued})
            tasks.start_soon(expire_events, Backend(storage, Registry(), clock, tmp_path, ""))
            await clock.wait_for_sleepers()
            await clock.advance(3600)
            assert len(storage.snapshot(Partition.of(EVENTS))) == 4
            await clock.advance(120)
            tasks.cancel_scope.cancel()
    assert [name_of(event) for event in storage.snapshot(Partition.of(EVENTS))] == ["repeated", "series"]
