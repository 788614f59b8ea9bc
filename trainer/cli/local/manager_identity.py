"""The ServiceAccount under which a manager on this machine works: what config/rbac allows, and nothing more."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import yaml
from anyio.to_thread import run_sync

from trainer.cli.manifests import FIELD_MANAGER, configuration_directory
from trainer.kube.objects import name_of
from trainer.kube.resource import NAMESPACES, SECRETS, SERVICE_ACCOUNTS, Resource

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.kube.client import Client
    from trainer.kube.objects import Object

ACCOUNT: Final = "trainer-controller-manager"
NAMESPACE: Final = "trainer-system"
"""Where the manager has its ServiceAccount, its lease and its certificates, as with config/default."""

_TOKEN_SECONDS: Final = 365 * 24 * 3600
"""A manager is given a new token whenever it is started; on a laptop it does not run for a year."""
_RBAC: Final = "rbac.authorization.k8s.io"
_RESOURCES: Final = {
    resource.kind: resource
    for resource in (
        SERVICE_ACCOUNTS,
        SECRETS,
        Resource(_RBAC, "v1", "roles", "Role"),
        Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
        Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
        Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    )
}
"""What of config/rbac and config/webhook says who the manager is and what it may do, by kind."""


async def give_identity(client: Client, credentials: Path, file: Path) -> None:
    """Make the ServiceAccount of the manager with its roles, and write a kubeconfig file with a token for it.

    Args:
        client: acts as the administrator.
        credentials: kubeconfig of the administrator; the cluster is taken from it.
        file: the kubeconfig to write, with mode 0600.

    Raises:
        KubeError: the server refuses one of the objects or the token.
    """
    namespace = {"apiVersion": "v1", "kind": NAMESPACES.kind, "metadata": {"name": NAMESPACE}}
    await client.apply(NAMESPACES, namespace, field_manager=FIELD_MANAGER, force=True)
    for obj in await run_sync(_manifests):
        await client.apply(_RESOURCES[obj["kind"]], obj, field_manager=FIELD_MANAGER, force=True)
    request: Object = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    answer = await client.create(SERVICE_ACCOUNTS, request, subresource="token")
    await run_sync(_write_kubeconfig, credentials, file, answer["status"]["token"])


def _manifests() -> list[Object]:
    """Accounts before roles before bindings, each in its namespace."""
    directory = configuration_directory()
    files = [file for room in ("rbac", "webhook") for file in sorted((directory / room).glob("*.yaml"))]
    documents = [document for file in files for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))]
    found = [_in_namespace(document) for document in documents if document and document["kind"] in _RESOURCES]
    order = list(_RESOURCES)
    return sorted(found, key=lambda obj: (order.index(obj["kind"]), name_of(obj)))


def _in_namespace(obj: Object) -> Object:
    if not _RESOURCES[obj["kind"]].namespaced:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "namespace": NAMESPACE}}


def _write_kubeconfig(credentials: Path, file: Path, token: str) -> None:
    document: Any = yaml.safe_load(credentials.read_text(encoding="utf-8"))
    name = document["contexts"][0]["name"]
    document["users"] = [{"name": ACCOUNT, "user": {"token": token}}]
    document["contexts"][0]["context"] |= {"user": ACCOUNT, "namespace": NAMESPACE}
    document["current-context"] = name
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        yaml.safe_dump(document, stream, sort_keys=False)
