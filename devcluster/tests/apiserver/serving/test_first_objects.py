"""What every namespace starts with, and keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from trainer.kube.objects import ObjectKey, name_of
from trainer.kube.resource import EVENTS
from trainer.kube.testing.clock import ManualClock
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.resource_definition import Registry
from trainer_devcluster.apiserver.serving.first_objects import expire_events
from trainer_devcluster.apiserver.storage.storage import Partition, Storage

if TYPE_CHECKING:
    from pathlib import Path

    from devcluster.tests.apiserver.http_client import Api

NS = "/api/v1/namespaces/default"


@pytest.mark.parametrize("name", ["configmaps/kube-root-ca.crt", "serviceaccounts/default"])
async def test_deleted_first_objects_come_back(api: Api, name: str) -> None:
    """Pods can go on to start after somebody has deleted what a namespace starts with."""
    path = f"{NS}/{name}"
    before = (await api("GET", path)).body
    assert (await api("DELETE", path)).code == 200
    with anyio.fail_after(10):
        while (await api("GET", path)).code == 404:
            await anyio.lowlevel.checkpoint()
    after = (await api("GET", path)).body
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after.get("data") == before.get("data")


async def test_first_objects_go_with_their_namespace(api: Api) -> None:
    """They do not come back in a namespace that is being deleted."""
    await api("POST", "/api/v1/namespaces", {"metadata": {"name": "leaving"}})
    await api("DELETE", "/api/v1/namespaces/leaving")
    assert (await api("DELETE", "/api/v1/namespaces/leaving/configmaps/kube-root-ca.crt")).code == 200
    # Two answers of the server later, what follows a change has happened.
    for _ in range(2):
        assert (await api("GET", "/api/v1/namespaces/leaving/configmaps/kube-root-ca.crt")).code == 404


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
