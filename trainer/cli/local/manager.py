"""The controller manager of `trainer up` and `trainer demo`: its webhooks, and its ServiceAccount.

The API server of the dev cluster reaches the webhooks by URL, on a free port of the loopback interface. What they check
and what the manager may do is in config/, as for every other cluster.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from anyio.to_thread import run_sync

from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.errors import CommandError
from trainer.cli.manifests import FIELD_MANAGER, manifests
from trainer.cli.operate.manager import manager_command
from trainer.cli.processes.contexts import write_kubeconfig
from trainer.configuration.configuration import Configuration, render_configuration
from trainer.configuration.sections import (
    HealthConfiguration,
    MetricsAuthConfiguration,
    MetricsConfiguration,
    WebhookConfiguration,
)
from trainer.framework.startup.discovery import PluginsConfiguration
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock, move_on_after
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import (
    CONFIG_MAPS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    SECRETS,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from trainer.plugins.progress_reporter import ProgressReporter
from trainer.v1alpha1.discovery import Version

_HOST: Final = "127.0.0.1"
_IMAGE: Final = "trainer-operator"
"""Image of the manager; the dev cluster pulls no images, and its containers have this package."""
_TRUSTED_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.05
ACCOUNT: Final = "trainer-controller-manager"
NAMESPACE: Final = "trainer-system"
"""Namespace of the manager's ServiceAccount, lease and certificates, as in config/default."""
_TOKEN_SECONDS: Final = 365 * 24 * 3600
"""Every start of the manager makes a new token; on a laptop it does not run for a year."""
_RBAC: Final = "rbac.authorization.k8s.io"
_IDENTITY: Final = {
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
"""Kinds that say who the manager is and what it may do, in the order in which they are applied."""
_PUBLIC_NAMESPACE: Final = "kubeflow-system"
_PUBLIC: Final = {CONFIG_MAPS.kind: CONFIG_MAPS} | {kind: _IDENTITY[kind] for kind in ("Role", "RoleBinding")}
"""Kinds from which clients of v1alpha1 learn the version of the manager."""
_WEBHOOKS: Final = {
    resource.kind: resource for resource in (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS)
}


async def prepare_manager(
    client: Client,
    admin: Path,
    *,
    kubeconfig: Path,
    configuration: Path,
    metrics_port: int = 0,
    version: Version = "v2alpha1",
) -> list[str]:
    """Apply the webhooks and the identity of a manager and write its files; returns its command line.

    `client` and `admin` are client and kubeconfig of the administrator. The metrics are for everybody on this machine.
    """
    # The manager fails if another process takes one of the ports meanwhile.
    with socket.create_server((_HOST, 0)) as free, socket.create_server((_HOST, 0)) as other:
        port, health_port = (int(each.getsockname()[1]) for each in (free, other))
    await run_sync(write_configuration, configuration, port, health_port, metrics_port)
    await register_webhooks(client, port, version)
    await give_identity(client, admin, kubeconfig, version)
    return manager_command(kubeconfig, configuration)


def write_configuration(file: Path, port: int, health_port: int, metrics_port: int = 0) -> None:
    """Write the configuration file of a manager that serves webhooks and probes on ports of this machine."""
    webhook = WebhookConfiguration(host=_HOST, port=port, hosts=[_HOST])
    plugins = PluginsConfiguration(configuration={ProgressReporter.name: {"image": _IMAGE}})
    health = HealthConfiguration(health_probe_bind_address=f"{_HOST}:{health_port}")
    servers = {"webhook": webhook, "health": health}
    configuration = Configuration().without_servers().model_copy(update={**servers, "plugins": plugins})
    if metrics_port:
        metrics = MetricsConfiguration(
            bind_address=f"{_HOST}:{metrics_port}",
            secure_serving=False,
            auth=MetricsAuthConfiguration(enabled=False),
        )
        configuration = configuration.model_copy(update={"metrics": metrics})
    file.write_text(render_configuration(configuration), encoding="utf-8")


async def register_webhooks(client: Client, port: int, version: Version = "v2alpha1") -> None:
    """Apply the webhook configurations; until the manager serves them, TrainJobs and runtimes are refused."""
    for obj in await run_sync(_manifests, _WEBHOOKS):
        for webhook in obj["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"].replace(TRAIN_JOBS.version, version)
            webhook["clientConfig"] = {"url": f"https://{_HOST}:{port}{path}"}
            for rule in webhook["rules"]:
                rule["apiVersions"] = [version]
            if version != TRAIN_JOBS.version:  # the conditions name fields of this one
                webhook.pop("matchConditions", None)
        await client.apply(_WEBHOOKS[obj["kind"]], obj, field_manager=FIELD_MANAGER, force=True)


async def wait_for_admission(client: Client, clock: Clock | None = None) -> None:
    """Wait until the API server trusts the webhooks of a manager that serves them."""
    clock = clock or SystemClock()
    async with move_on_after(clock, _TRUSTED_SECONDS) as scope:
        for obj in await run_sync(_manifests, _WEBHOOKS):
            while not _is_trusted(await client.get(_WEBHOOKS[obj["kind"]], name_of(obj))):
                await clock.sleep(_POLL_SECONDS)
    if scope.cancelled_caught:
        raise CommandError(
            f"the manager has not made the API server trust its webhooks within {_TRUSTED_SECONDS:.0f} s"
        )


def _is_trusted(configuration: Object) -> bool:
    return all((webhook.get("clientConfig") or {}).get("caBundle") for webhook in configuration.get("webhooks") or [])


async def give_identity(client: Client, admin: Path, file: Path, version: Version = "v2alpha1") -> None:
    """Apply the ServiceAccount of the manager with its roles, and write its kubeconfig, with mode 0600.

    `client` and `admin` are client and kubeconfig of the administrator.
    """
    namespace = {"apiVersion": "v1", "kind": NAMESPACES.kind, "metadata": {"name": NAMESPACE}}
    await client.apply(NAMESPACES, namespace, field_manager=FIELD_MANAGER, force=True)
    for obj in await run_sync(_manifests, _IDENTITY):
        resource = _IDENTITY[obj["kind"]]
        if resource.namespaced:
            obj["metadata"]["namespace"] = NAMESPACE
        if version == "v1alpha1" and obj["kind"] == "ClusterRole" and name_of(obj) == ACCOUNT:
            obj["rules"] += await run_sync(_further_rules)
        await client.apply(resource, obj, field_manager=FIELD_MANAGER, force=True)
    request: Object = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    answer = await client.create(SERVICE_ACCOUNTS, request, subresource="token")
    await run_sync(_write_kubeconfig, admin, file, answer["status"]["token"])


async def publish_version(client: Client) -> None:
    """Apply the ConfigMap in which the SDK of v1alpha1 looks for the version of the manager, for everybody to read."""
    namespace = {"apiVersion": "v1", "kind": NAMESPACES.kind, "metadata": {"name": _PUBLIC_NAMESPACE}}
    await client.apply(NAMESPACES, namespace, field_manager=FIELD_MANAGER, force=True)
    for obj in await run_sync(manifests, "v1alpha1/roles"):
        if obj["kind"] in _PUBLIC:
            obj["metadata"]["namespace"] = _PUBLIC_NAMESPACE
            await client.apply(_PUBLIC[obj["kind"]], obj, field_manager=FIELD_MANAGER, force=True)


def _further_rules() -> list[Object]:
    """The rules that config/v1alpha1/rbac adds to the role of the manager."""
    (kustomization,) = manifests("v1alpha1/rbac")
    patches = [operation for patch in kustomization["patches"] for operation in yaml.safe_load(patch["patch"])]
    return [operation["value"] for operation in patches]


def _manifests(kinds: Mapping[str, Resource]) -> list[Object]:
    """The objects of these kinds in config/rbac and config/webhook, in the order of the kinds."""
    found = [obj for room in ("rbac", "webhook") for obj in manifests(room) if obj["kind"] in kinds]
    order = list(kinds)
    return sorted(found, key=lambda obj: (order.index(obj["kind"]), name_of(obj)))


def _write_kubeconfig(admin: Path, file: Path, token: str) -> None:
    document: Any = yaml.safe_load(admin.read_text(encoding="utf-8"))
    document["users"] = [{"name": ACCOUNT, "user": {"token": token}}]
    document["contexts"][0]["context"] |= {"user": ACCOUNT, "namespace": NAMESPACE}
    document["current-context"] = document["contexts"][0]["name"]
    write_kubeconfig(file, document)
