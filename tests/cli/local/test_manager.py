"""The webhooks and the identity of a manager on this machine."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import anyio
import pytest
import yaml

from trainer.cli.errors import CommandError
from trainer.cli.local.manager import (
    ACCOUNT,
    NAMESPACE,
    give_identity,
    publish_version,
    register_webhooks,
    wait_for_admission,
    write_configuration,
)
from trainer.configuration.configuration import load_configuration
from trainer.kube.objects import Object
from trainer.kube.resource import (
    CONFIG_MAPS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    SECRETS,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from trainer_devcluster.apiserver.server import kubeconfig
from trainer_kube_testing import FakeClient, ManualClock

BUNDLE = base64.b64encode(b"a certificate").decode()
CONFIGURATIONS = (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS)


def stored(client: FakeClient) -> list[Object]:
    """Both webhook configurations."""
    return [obj for resource in CONFIGURATIONS for obj in client.objects(resource)]


def trust(client: FakeClient) -> None:
    """What the manager does: write its CA bundle into the configurations."""
    for obj in stored(client):
        for webhook in obj["webhooks"]:
            webhook["clientConfig"]["caBundle"] = BUNDLE
        client.add(obj)


def test_configuration(tmp_path: Path) -> None:
    """The file makes a manager serve webhooks and probes on this machine only, with a certificate for its address."""
    write_configuration(tmp_path / "manager.yaml", 4711, 4712)

    configuration = load_configuration(tmp_path / "manager.yaml")
    webhook = configuration.webhook
    assert webhook.enabled
    assert (webhook.host, webhook.port) == ("127.0.0.1", 4711)
    assert webhook.hosts == ["127.0.0.1"]
    assert configuration.metrics.bind_address == "0"
    assert configuration.health.health_probe_bind_address == "127.0.0.1:4712"


def test_metrics(tmp_path: Path) -> None:
    """They are served in the clear on the loopback interface of this machine, where a port is given."""
    write_configuration(tmp_path / "manager.yaml", 4711, 4712, metrics_port=9090)

    metrics = load_configuration(tmp_path / "manager.yaml").metrics
    assert (metrics.bind_address, metrics.secure_serving, metrics.auth.enabled) == ("127.0.0.1:9090", False, False)


async def test_switched_on(client: FakeClient) -> None:
    """The API server gets the webhooks of config/webhook by URL, on the port of the latest manager."""
    await register_webhooks(client, 4711)
    await register_webhooks(client, 4712)

    webhooks = [webhook for obj in stored(client) for webhook in obj["webhooks"]]
    assert len(webhooks) == 7
    for webhook in webhooks:
        action = "mutate" if webhook["name"].startswith("defaulter") else "validate"
        kind = webhook["name"].split(".")[1]
        assert webhook["clientConfig"] == {
            "url": f"https://127.0.0.1:4712/{action}-trainer-kubeflow-org-v2alpha1-{kind}"
        }


async def test_waits_for_trust(client: FakeClient, clock: ManualClock) -> None:
    """Admission works once the manager has written its CA bundle into both configurations."""
    await register_webhooks(client, 4711)

    async def write_bundle() -> None:
        await clock.wait_for_sleepers()
        trust(client)
        await clock.advance(1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write_bundle)
        await wait_for_admission(client, clock)


async def test_trust_that_never_comes(client: FakeClient, clock: ManualClock) -> None:
    """A manager that does not write its CA bundle is reported, not awaited forever."""
    await register_webhooks(client, 4711)

    async def pass_time() -> None:
        await clock.wait_for_sleepers()
        await clock.advance(60)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_time)
        with pytest.raises(CommandError, match="has not made the API server trust its webhooks within 30 s"):
            await wait_for_admission(client, clock)


RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "roles", "Role")
ROLE_BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)


async def test_published_version(client: FakeClient) -> None:
    """The SDK finds the version of the manager where it looks for it, and everybody may read it."""
    await publish_version(client)

    config_map = await client.get(CONFIG_MAPS, "kubeflow-trainer-public", "kubeflow-system")
    assert config_map["data"]["kubeflow_trainer_version"]
    (role,) = client.objects(ROLES)
    (binding,) = client.objects(ROLE_BINDINGS)
    assert role["rules"][0]["resourceNames"] == [config_map["metadata"]["name"]]
    assert [each["name"] for each in binding["subjects"]] == ["system:authenticated"]


async def test_rights_for_v1alpha1(client: FakeClient, tmp_path: Path) -> None:
    """The role has what config/v1alpha1/rbac adds to it."""
    credentials = tmp_path / "kubeconfig"
    credentials.write_text(kubeconfig("https://127.0.0.1:1", "secret", "PEM"))

    await give_identity(client, credentials, tmp_path / "manager.kubeconfig", "v1alpha1")

    rules = (await client.get(CLUSTER_ROLES, ACCOUNT))["rules"]
    assert {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": ["patch"]} in rules


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
