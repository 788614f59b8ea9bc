"""Service accounts of new pods."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.context import make_context
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.pods.service_account import MOUNT_PATH, admit_service_account


def account(name: str = "default", **fields: Any) -> Object:
    return {"kind": "ServiceAccount", "metadata": {"name": name, "namespace": "ns"}, **fields}


def admitted(spec: Object, *accounts: Object) -> Object:
    """The specification of a new pod, after admission."""
    pod = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"containers": [{"name": "c"}], **spec}}
    admit_service_account(pod, make_context(None, *accounts))
    found: Object = pod["spec"]
    return found


def test_volume_of_a_pod() -> None:
    """Token, authority and namespace are in one volume that each container mounts, init containers included."""
    spec = admitted({"initContainers": [{"name": "i"}]}, account())
    [volume] = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert len(volume["name"]) == len("kube-api-access-") + 5
    assert volume["projected"] == {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                    ]
                }
            },
        ],
        "defaultMode": 420,
    }
    mount = {"name": volume["name"], "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    for container in spec["initContainers"] + spec["containers"]:
        assert container["volumeMounts"] == [mount]
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"


@pytest.mark.parametrize(
    ("spec", "of_account", "mounted"),
    [
        pytest.param({}, {}, True, id="by default"),
        pytest.param({}, {"automountServiceAccountToken": False}, False, id="the account declines"),
    ],
)
def test_who_decides(spec: Object, of_account: Object, mounted: bool) -> None:
    """The pod comes before the account."""
    assert ("volumes" in admitted(spec, account(**of_account))) == mounted


def test_own_mount_stays() -> None:
    """A container that mounts something else there keeps it, and a pod without need has no volume."""
    own = {"name": "own", "mountPath": MOUNT_PATH}
    spec = admitted({"containers": [{"name": "c", "volumeMounts": [own]}], "volumes": [{"name": "own"}]}, account())
    assert spec["containers"][0]["volumeMounts"] == [own]
    assert spec["volumes"] == [{"name": "own"}]


def test_once_is_enough() -> None:
    """A pod that was admitted already, such as one that is created again from its YAML, stays as it is."""
    spec = admitted({}, account())
    assert admitted(deepcopy(spec), account()) == spec


def test_another_account() -> None:
    """The pod's own account counts, and gives it its pull secrets unless the pod has some."""
    bot = account("bot", imagePullSecrets=[{"name": "registry"}])
    spec = admitted({"serviceAccountName": "bot"}, bot)
    assert (spec["serviceAccount"], spec["imagePullSecrets"]) == ("bot", [{"name": "registry"}])
    spec = admitted({"serviceAccountName": "bot", "imagePullSecrets": [{"name": "mine"}]}, bot)
    assert spec["imagePullSecrets"] == [{"name": "mine"}]


def test_no_such_account() -> None:
    """A pod of an account that does not exist is refused."""
    with pytest.raises(ApiError) as caught:
        admitted({"serviceAccountName": "bot"}, account())
    assert caught.value.code == 403
    assert caught.value.message == (
        'pods "p" is forbidden: error looking up service account ns/bot: serviceaccount "bot" not found'
    )
