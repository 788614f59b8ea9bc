"""What every namespace starts with, and keeps."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from packages.devcluster.tests.apiserver.http_client import MERGE, Api, api_for
from trainer.kube.objects import Object, ObjectKey, name_of
from trainer.kube.resource import EVENTS
from trainer_devcluster.apiserver.authorization.bootstrap_roles import AUTOUPDATE, bootstrap_objects
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceRegistry
from trainer_devcluster.apiserver.server import ServerOptions, serve
from trainer_devcluster.apiserver.serving.first_objects import completed, expire_events
from trainer_devcluster.apiserver.storage.storage import Partition, Storage
from trainer_kube_testing.clock import ManualClock

RBAC = "/apis/rbac.authorization.k8s.io/v1"
OBJECTS = {(obj["kind"], name_of(obj)): obj for obj in bootstrap_objects()}
EDIT = OBJECTS["ClusterRole", "system:aggregate-to-edit"]
VIEWERS = OBJECTS["ClusterRoleBinding", "system:public-info-viewer"]


@pytest.mark.parametrize(
    ("live", "wanted", "expected"),
    [
        pytest.param(EDIT, EDIT, EDIT, id="complete"),
        pytest.param(
            EDIT | {"rules": EDIT["rules"][1:2]},
            EDIT | {"rules": EDIT["rules"][1:2] + EDIT["rules"][3:4]},
            EDIT | {"rules": EDIT["rules"][1:2] + EDIT["rules"][3:4]},
            id="a rule is missing",
        ),
        pytest.param(
            VIEWERS | {"subjects": VIEWERS["subjects"][1:]},
            VIEWERS,
            VIEWERS | {"subjects": [*VIEWERS["subjects"][1:], VIEWERS["subjects"][0]]},
            id="a subject is missing",
        ),
    ],
)
def test_completed(live: Object, wanted: Object, expected: Object) -> None:
    """What is missing is put back, what is more stays."""
    assert completed(wanted, live) == expected


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
            tasks.start_soon(expire_events, Backend(storage, ResourceRegistry(), clock, tmp_path, ""))
            await clock.wait_for_sleepers()
            await clock.advance(3600)
            assert len(storage.snapshot(Partition.of(EVENTS))) == 4
            await clock.advance(120)
            tasks.cancel_scope.cancel()
    assert [name_of(event) for event in storage.snapshot(Partition.of(EVENTS))] == ["repeated", "series"]
