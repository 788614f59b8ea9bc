"""The first roles and bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from devcluster.tests.apiserver.http_client import MERGE, api_for
from trainer.kube.objects import name_of
from trainer_devcluster.apiserver.authorization.bootstrap_roles import AUTOUPDATE, bootstrap_objects
from trainer_devcluster.apiserver.server import ServerOptions, serve
from trainer_devcluster.apiserver.serving.role_bootstrap import completed

if TYPE_CHECKING:
    from pathlib import Path

    from devcluster.tests.apiserver.http_client import Api
    from trainer.kube.objects import Object

RBAC = "/apis/rbac.authorization.k8s.io/v1"
OBJECTS = {(obj["kind"], name_of(obj)): obj for obj in bootstrap_objects()}
EDIT = OBJECTS["ClusterRole", "system:aggregate-to-edit"]
VIEWERS = OBJECTS["ClusterRoleBinding", "system:public-info-viewer"]


def with_metadata(obj: Object, **metadata: object) -> Object:
    return obj | {"metadata": {**obj["metadata"], **metadata}}


@pytest.mark.parametrize(
    ("live", "wanted", "expected"),
    [
        pytest.param(EDIT, EDIT, EDIT, id="complete"),
        pytest.param(EDIT | {"rules": None}, EDIT | {"rules": EDIT["rules"][:0]}, EDIT | {"rules": None}, id="none"),
        pytest.param(
            EDIT | {"rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]},
            EDIT,
            EDIT | {"rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]},
            id="more than enough",
        ),
        pytest.param(
            EDIT | {"rules": EDIT["rules"][1:2]},
            EDIT | {"rules": EDIT["rules"][1:2] + EDIT["rules"][3:4]},
            EDIT | {"rules": EDIT["rules"][1:2] + EDIT["rules"][3:4]},
            id="a rule is missing",
        ),
        pytest.param(
            with_metadata(EDIT, labels={"a": "b"}),
            EDIT,
            with_metadata(EDIT, labels={**EDIT["metadata"]["labels"], "a": "b"}),
            id="labels are missing",
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


async def test_they_are_stored(api: Api) -> None:
    """A fresh server has all of them, marked as its own."""
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        listed = (await api("GET", f"{RBAC}/{kind.lower()}s")).body["items"]
        assert sorted(map(name_of, listed)) == sorted(name for known, name in OBJECTS if known == kind)
        for obj in listed:
            assert obj["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
            assert obj["metadata"]["annotations"] == {"rbac.authorization.kubernetes.io/autoupdate": "true"}
            assert [entry["manager"] for entry in obj["metadata"]["managedFields"]] == ["kube-apiserver"]
    shown = await api("GET", f"{RBAC}/clusterroles/system%3Adiscovery")
    assert (shown.code, shown.body["metadata"]["name"]) == (200, "system:discovery")


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
