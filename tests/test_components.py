"""Components of installed distributions in a running manager."""

from __future__ import annotations

from importlib.metadata import EntryPoints
from pathlib import Path

import anyio
import pytest

from tests.configurations import bare
from tests.docs.test_kube import DOCS, blocks, namespace
from tests.framework.plugin_package import installed
from tests.test_servers import RESOURCES, webhooks_only
from trainer.kube.errors import ConfigurationError
from trainer.kube.resource import CONFIG_MAPS, EVENTS, NAMESPACES, VALIDATING_WEBHOOK_CONFIGURATIONS
from trainer.manager import run_manager
from trainer_kube_testing import FakeClient, settle


async def test_manager_runs_what_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The component that the page shows gets its controller run, and the CA bundle into its webhook configuration."""
    (source,) = [block for block in blocks() if "def register(manager" in block]
    monkeypatch.syspath_prepend(DOCS)
    webhook = {"name": "team-names.example.com", "clientConfig": {}}
    kind = VALIDATING_WEBHOOK_CONFIGURATIONS
    webhooks = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "team-names"}}
    client = FakeClient(
        namespace("a", team="blue"),
        webhooks | {"webhooks": [webhook]},
        resources=(*RESOURCES, NAMESPACES, CONFIG_MAPS, EVENTS),
    )
    with installed(tmp_path, group="trainer.components", teams=(source, "register")):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_manager, client, webhooks_only("127.0.0.1"))
            with anyio.fail_after(5):
                while not client.objects(CONFIG_MAPS):
                    await settle()
                while "caBundle" not in str(client.find(kind, "team-names")):
                    await settle()
            tasks.cancel_scope.cancel()


async def test_broken_component_keeps_the_manager_from_starting(tmp_path: Path) -> None:
    """A manager that would silently lack a component does not start, and sends nothing."""
    client = FakeClient(resources=RESOURCES)
    with (
        installed(tmp_path, group="trainer.components", teams=("import no_such_library", "register")),
        pytest.raises(ConfigurationError, match=r"component teams \(acme-trainer 1.2.0\) cannot be imported"),
    ):
        await run_manager(client, bare())
    assert client.requests == []


async def test_component_that_the_configuration_names_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager that shall serve v1 jobs and cannot does not start, and the message names the remedy."""
    monkeypatch.setattr("trainer.components.entry_points", lambda group: EntryPoints())
    client = FakeClient(resources=RESOURCES)
    with pytest.raises(
        ConfigurationError, match=r"controllers.v1.enabled: .* pip install 'trainer-operator\[v1-jobs\]'"
    ):
        await run_manager(client, bare(controllers={"v1": {"enabled": True}}))
    assert client.requests == []
