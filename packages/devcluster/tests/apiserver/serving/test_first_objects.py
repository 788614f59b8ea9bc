"""What every namespace starts with, and keeps."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.lowlevel

from packages.devcluster.tests.apiserver.http_client import MERGE, api_for
from trainer.kube.objects import ObjectKey, name_of
from trainer.kube.resource import EVENTS
from trainer_devcluster.apiserver.authorization.bootstrap_roles import AUTOUPDATE
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceRegistry
from trainer_devcluster.apiserver.server import ServerOptions, serve
from trainer_devcluster.apiserver.serving.first_objects import expire_events
from trainer_devcluster.apiserver.storage.storage import Partition, Storage
from trainer_kube_testing.clock import ManualClock

RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def test_restart_puts_them_in_order(tmp_path: Path) -> None:
    """A start brings back what was deleted or taken out, unless the object says that it is not to be updated."""
    options = ServerOptions(tmp_path, persistent=True)
    frozen = {"metadata": {"annotations": {AUTOUPDATE: "false"}}, "rules": []}
    async with serve(options) as server, api_for(server) as api:
        assert (await api("DELETE", f"{RBAC}/clusterrolebindings/system:discovery")).code == 200
        assert (await api("PATCH", f"{RBAC}/clusterroles/system:basic-user", {"rules": []}, MERGE)).code == 200
        assert (await api("PATCH", f"{RBAC}/clusterroles/system:auth-delegator", frozen, MERGE)).code == 200
        untouched = (await api("GET", f"{RBAC}/clusterroles/cluster-admin")).body
    async with serve(options) as server, api_for(server) as api:
        assert (await api("GET", f"{RBAC}/clusterrolebindings/system:discovery")).code == 200
        rules = (await api("GET", f"{RBAC}/clusterroles/system:basic-user")).body["rules"]
        granted = {resource for rule in rules for resource in rule["resources"]}
        assert granted == {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}
        assert not (await api("GET", f"{RBAC}/clusterroles/system:auth-delegator")).body["rules"]
        assert (await api("GET", f"{RBAC}/clusterroles/cluster-admin")).body == untouched


NS = "/api/v1/namespaces/default"


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
            tasks.start_soon(expire_events, Backend(storage, ResourceRegistry(), clock, tmp_path, ""))
            await clock.wait_for_sleepers()
            await clock.advance(3600)
            assert len(storage.snapshot(Partition.of(EVENTS))) == 4
            await clock.advance(120)
            tasks.cancel_scope.cancel()
    assert [name_of(event) for event in storage.snapshot(Partition.of(EVENTS))] == ["repeated", "series"]
