"""The controller manager of `trainer up` and `trainer demo`: its webhooks, and its ServiceAccount."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml
from anyio.to_thread import run_sync

from trainer.cli.errors import CommandError
from trainer.cli.manifests import FIELD_MANAGER, configuration_directory
from trainer.configuration.configuration import Configuration, render_configuration
from trainer.configuration.sections import MetricsAuthConfiguration, MetricsConfiguration, WebhookConfiguration
from trainer.kube.clock import SystemClock, move_on_after
from trainer.kube.objects import name_of
from trainer.kube.resource import (
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    SECRETS,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object


_HOST = "127.0.0.1"
_FILES = {MUTATING_WEBHOOK_CONFIGURATIONS: "mutating.yaml", VALIDATING_WEBHOOK_CONFIGURATIONS: "validating.yaml"}
_TRUSTED_SECONDS = 30.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class LocalAdmission:
    """Webhooks on one port of this machine."""

    port: int

    @classmethod
    def on_free_port(cls) -> LocalAdmission:
        """On a port that nobody listens on; the manager tells if somebody was quicker to take it."""
        with socket.create_server((_HOST, 0)) as free:
            return cls(free.getsockname()[1])

    def write_configuration(self, file: Path, *, metrics_port: int = 0) -> None:
        """Write the configuration file of a manager that serves the webhooks.

        Args:
            file: is replaced.
            metrics_port: where it serves its metrics on this machine, to whoever asks. Default: nowhere.
        """
        webhook = WebhookConfiguration(host=_HOST, port=self.port, hosts=[_HOST])
        configuration = Configuration().without_servers().model_copy(update={"webhook": webhook})
        if metrics_port:
            metrics = MetricsConfiguration(
                bind_address=f"{_HOST}:{metrics_port}",
                secure_serving=False,
                auth=MetricsAuthConfiguration(enabled=False),
            )
            configuration = configuration.model_copy(update={"metrics": metrics})
        file.write_text(render_configuration(configuration), encoding="utf-8")

    async def switch_on(self, client: Client) -> None:
        """Have the API server ask the webhooks; until the manager serves them, TrainJobs and runtimes are refused."""
        for resource, configuration in (await run_sync(_configurations)).items():
            await client.apply(resource, self._local(configuration), field_manager=FIELD_MANAGER, force=True)

    def _local(self, configuration: Object) -> Object:
        """With URLs in place of the Service."""
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://{_HOST}:{self.port}{path}"}
        return configuration


async def wait_for_admission(client: Client, clock: Clock | None = None) -> None:
    """Wait until the API server trusts the webhooks of a manager that serves them.

    Raises:
        CommandError: it does not in time.
    """
    clock = clock or SystemClock()
    async with move_on_after(clock, _TRUSTED_SECONDS) as scope:
        for resource, configuration in (await run_sync(_configurations)).items():
            while not _is_trusted(await client.get(resource, name_of(configuration))):
                await clock.sleep(_POLL_SECONDS)
    if scope.cancelled_caught:
        raise CommandError(
            f"the manager has not made the API server trust its webhooks within {_TRUSTED_SECONDS:.0f} s"
        )


def _configurations() -> dict[Resource, Object]:
    directory = configuration_directory() / "webhook"
    return {
        resource: yaml.safe_load((directory / file).read_text(encoding="utf-8")) for resource, file in _FILES.items()
    }


def _is_trusted(configuration: Object) -> bool:
    return all((webhook.get("clientConfig") or {}).get("caBundle") for webhook in configuration.get("webhooks") or [])


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
