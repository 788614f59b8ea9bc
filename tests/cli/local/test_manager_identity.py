"""The ServiceAccount of a manager on this machine."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import yaml

from trainer.cli.local.manager_identity import ACCOUNT, NAMESPACE, give_identity
from trainer.kube.resource import NAMESPACES, SECRETS, SERVICE_ACCOUNTS, Resource
from trainer_devcluster.apiserver.kubeconfig import kubeconfig

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.kube.testing import FakeClient

RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "roles", "Role")
CLUSTER_ROLE_BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)


async def test_identity(client: FakeClient, tmp_path: Path) -> None:
    """The manager gets its account, its roles and a kubeconfig with a token of its own, for its owner's eyes only."""
    credentials, file = tmp_path / "kubeconfig", tmp_path / "manager.kubeconfig"
    credentials.write_text(kubeconfig("https://127.0.0.1:1", "secret", "PEM"))

    await give_identity(client, credentials, file)
    await give_identity(client, credentials, file)

    assert [obj["metadata"]["name"] for obj in client.objects(NAMESPACES)] == [NAMESPACE]
    assert [obj["metadata"]["namespace"] for obj in client.objects(SERVICE_ACCOUNTS)] == [NAMESPACE]
    assert {obj["metadata"]["namespace"] for obj in client.objects(ROLES)} == {NAMESPACE}
    assert [obj["metadata"]["name"] for obj in client.objects(SECRETS)] == ["trainer-webhook-certificates"]
    for binding in client.objects(CLUSTER_ROLE_BINDINGS):
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}]
    document = yaml.safe_load(file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert document["users"] == [{"name": ACCOUNT, "user": {"token": f"token-of-{NAMESPACE}-{ACCOUNT}"}}]
    assert document["contexts"][0]["context"]["user"] == ACCOUNT
    assert document["contexts"][0]["context"]["namespace"] == NAMESPACE
    assert document["clusters"] == yaml.safe_load(credentials.read_text())["clusters"]
    assert "secret" not in file.read_text()
