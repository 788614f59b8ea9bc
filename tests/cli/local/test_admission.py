"""The webhooks of a manager on this machine."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import anyio
import pytest

from trainer.cli.errors import CommandError
from trainer.cli.local.admission import LocalAdmission, wait_for_admission
from trainer.configuration.configuration import load_configuration
from trainer.kube.resource import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.kube.objects import Object
    from trainer.kube.testing import FakeClient, ManualClock

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
    """The file makes a manager serve the webhooks on this machine only, with a certificate for its address."""
    admission = LocalAdmission.on_free_port()

    admission.write_configuration(tmp_path / "manager.yaml")

    configuration = load_configuration(tmp_path / "manager.yaml")
    webhook = configuration.webhook
    assert webhook.enabled
    assert (webhook.host, webhook.port) == ("127.0.0.1", admission.port)
    assert webhook.hosts == ["127.0.0.1"]
    assert configuration.metrics.bind_address == configuration.health.health_probe_bind_address == "0"


def test_metrics(tmp_path: Path) -> None:
    """They are served in the clear on the loopback interface of this machine, where a port is given."""
    LocalAdmission.on_free_port().write_configuration(tmp_path / "manager.yaml", metrics_port=9090)

    metrics = load_configuration(tmp_path / "manager.yaml").metrics
    assert (metrics.bind_address, metrics.secure_serving, metrics.auth.enabled) == ("127.0.0.1:9090", False, False)


async def test_switched_on(client: FakeClient) -> None:
    """The API server is told the webhooks of config/webhook by URL, on the port of the latest manager."""
    await LocalAdmission(4711).switch_on(client)
    await LocalAdmission(4712).switch_on(client)

    webhooks = [webhook for obj in stored(client) for webhook in obj["webhooks"]]
    assert len(webhooks) == 6
    for webhook in webhooks:
        action = "mutate" if webhook["name"].startswith("defaulter") else "validate"
        kind = webhook["name"].split(".")[1]
        assert webhook["clientConfig"] == {
            "url": f"https://127.0.0.1:4712/{action}-trainer-kubeflow-org-v2alpha1-{kind}"
        }


async def test_waits_for_trust(client: FakeClient, clock: ManualClock) -> None:
    """Admission works once the manager has written its CA bundle into both configurations."""
    await LocalAdmission(4711).switch_on(client)

    async def write_bundle() -> None:
        await clock.wait_for_sleepers()
        trust(client)
        await clock.advance(1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write_bundle)
        await wait_for_admission(client, clock)


async def test_trust_that_never_comes(client: FakeClient, clock: ManualClock) -> None:
    """A manager that does not write its CA bundle is told, not waited for without end."""
    await LocalAdmission(4711).switch_on(client)

    async def pass_time() -> None:
        await clock.wait_for_sleepers()
        await clock.advance(60)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_time)
        with pytest.raises(CommandError, match="has not made the API server trust its webhooks within 30 s"):
            await wait_for_admission(client, clock)
