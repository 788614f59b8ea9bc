"""The page about `trainer.kube`, and the controller and the webhook that it shows."""

from __future__ import annotations

import base64
import importlib.util
import re
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import yaml

from trainer.kube import Manager, ObjectKey, WebhookServerOptions
from trainer.kube.resource import CONFIG_MAPS, EVENTS, NAMESPACES, VALIDATING_WEBHOOK_CONFIGURATIONS
from trainer_kube_testing import FakeClient, ManualClock, eventually, settle

DOCS = Path(__file__).parents[2] / "docs"


def load_example(name: str = "team_info") -> Any:
    """The module of an example."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks() -> list[str]:
    """Code blocks of the page."""
    return re.findall(r"```python\n(.*?)```", (DOCS / "kube.md").read_text(), re.DOTALL)


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def test_page_shows_the_example_as_it_is() -> None:
    """What readers copy is what is tested; it is about fifty lines."""
    example = (DOCS / "team_info.py").read_text()
    assert blocks()[0] == example
    assert len(example.splitlines()) <= 52


async def test_the_test_that_the_page_shows() -> None:
    """The test for readers runs as it stands on the page."""
    names: dict[str, Any] = {"TeamInfo": load_example().TeamInfo}
    exec(compile(blocks()[1], "docs/kube.md", "exec"), names)
    await names["test_team_is_named"]()


async def test_example_mends_and_follows() -> None:
    """It writes the ConfigMap, corrects it, follows the label to its end, records events, and leaves others alone."""
    client = FakeClient(namespace("a", team="blue"), namespace("b"))
    manager = Manager(client)
    load_example().TeamInfo(manager)

    def team() -> str | None:
        found = client.find(CONFIG_MAPS, "team-info", "a")
        return None if found is None else found["data"]["team"]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await eventually(lambda: team() == "blue", within=5)
        client.remove(CONFIG_MAPS, "team-info", "a")
        await eventually(lambda: team() == "blue", within=5)
        await client.patch(NAMESPACES, "a", {"metadata": {"labels": {"team": "red"}}})
        await eventually(lambda: team() == "red", within=5)
        await eventually(lambda: len(client.objects(EVENTS)) >= 2, within=5)
        await client.patch(CONFIG_MAPS, "team-info", {"data": {"theirs": "stays"}}, "a")
        await settle()
        assert len(client.requests_of("apply")) == 3
        await client.create(NAMESPACES, namespace("c", team="green"))
        await eventually(lambda: client.find(CONFIG_MAPS, "team-info", "c") is not None, within=5)
        await client.patch(NAMESPACES, "c", {"metadata": {"labels": {"team": None}}})
        await eventually(lambda: client.find(CONFIG_MAPS, "team-info", "c") is None, within=5)
        tasks.cancel_scope.cancel()
    assert [obj["metadata"]["namespace"] for obj in client.objects(CONFIG_MAPS)] == ["a"]


def test_page_shows_the_webhook_as_it_is() -> None:
    """What readers copy is what is tested."""
    example = (DOCS / "team_names.py").read_text()
    assert blocks()[2] == example
    assert len(example.splitlines()) <= 52


async def test_webhook_is_trusted_and_decides() -> None:
    """With the page's configuration and the CA bundle in it, an API server gets answers by the name of the Service."""
    manifest, _ = re.findall(r"```yaml\n(.*?)```", (DOCS / "kube.md").read_text(), re.DOTALL)
    client = FakeClient(yaml.safe_load(manifest))
    manager = Manager(client)
    server = load_example("team_names").add_webhook(manager, WebhookServerOptions(host="127.0.0.1", port=0))

    def webhook() -> dict[str, Any]:
        found = client.find(VALIDATING_WEBHOOK_CONFIGURATIONS, "team-names")
        assert found is not None
        [webhook] = found["webhooks"]
        assert "caBundle" in webhook["clientConfig"]
        return dict(webhook["clientConfig"])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await server.wait_for_start()
        trusted = await eventually(webhook, within=5)
        refused, warned, allowed = [
            await ask(server.address[1], trusted, namespace("a", **labels))
            for labels in ({"team": "green"}, {}, {"team": "blue"})
        ]
        tasks.cancel_scope.cancel()
    text = 'metadata.labels.team: Unsupported value: "green": supported values: "blue", "red"'
    assert (refused["allowed"], refused["status"]["message"]) == (False, text)
    assert warned["warnings"] == ["without the label team nobody looks after this namespace"]
    assert allowed == {"uid": "1", "allowed": True}


def test_page_shows_the_controller_of_an_optional_kind_as_it_is() -> None:
    """What readers copy is what is tested."""
    example = (DOCS / "scrape.py").read_text()
    assert blocks()[3] == example
    assert len(example.splitlines()) <= 52


async def test_optional_kind_that_is_installed_later() -> None:
    """The controller waits for the operator, writes what is due once it is there, corrects it, and lives without it."""
    example = load_example("scrape")
    labels = {"metrics-port": "http"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "ns", "labels": labels}}
    clock = ManualClock()
    client = FakeClient(service, clock=clock)
    manager = Manager(client, clock=clock)
    example.Scrape(manager)
    monitors = example.SERVICE_MONITORS

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await manager.wait_for_start()
        await settle()
        assert client.requests_of("apply") == []
        for _ in range(2):
            client.serve(monitors)
            await eventually(lambda: client.find(monitors, "a", "ns"), clock=clock, within=60)
            await client.patch(monitors, "a", {"spec": {"endpoints": []}}, "ns")
            await settle()
            [written] = client.objects(monitors)
            assert written["spec"] == {"selector": {"matchLabels": labels}, "endpoints": [{"port": "http"}]}
            client.withdraw(monitors)
            await clock.advance(60)
            assert manager.cache.problem is None
        tasks.cancel_scope.cancel()


def test_page_shows_the_reader_of_logs_as_it_is() -> None:
    """What readers copy is what is tested."""
    example = (DOCS / "log_errors.py").read_text()
    assert blocks()[4] == example
    assert len(example.splitlines()) <= 52


async def test_errors_in_a_log() -> None:
    """The reader tells each error once, through a broken connection, until the pod has ended."""
    clock = ManualClock()
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}}
    client = FakeClient(pod, clock=clock)
    log = client.log("p", "ns", "c")
    reported: list[str] = []

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            load_example("log_errors").tell_errors, client, ObjectKey("ns", "p"), "c", reported.append, clock
        )
        await settle()
        log.write(b"starting\nERROR: no disk\nstill ")
        await eventually(lambda: len(reported) == 1, clock=clock, within=60)
        client.faults.drop_logs()
        log.write(b"here\nERROR: no power\n")
        await eventually(lambda: len(reported) == 2, clock=clock, within=60)
        log.write(b"ERROR: good bye")
        log.end()
        client.add(pod | {"status": {"phase": "Failed"}})
        await eventually(lambda: len(reported) == 3, clock=clock, within=60)
    assert [line.partition(" ")[2] for line in reported] == ["ERROR: no disk", "ERROR: no power", "ERROR: good bye"]


async def ask(port: int, trusted: dict[str, Any], obj: dict[str, Any]) -> dict[str, Any]:
    """What the webhook of a client configuration answers to the creation of a namespace."""
    service = trusted["service"]
    context = ssl.create_default_context(cadata=base64.b64decode(trusted["caBundle"]).decode())
    request = {
        "uid": "1",
        "operation": "CREATE",
        "kind": {"version": "v1", "kind": "Namespace"},
        "resource": {"version": "v1", "resource": "namespaces"},
        "object": obj,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    name = f"{service['name']}.{service['namespace']}.svc"
    url = f"https://127.0.0.1:{port}{service['path']}?timeout=5s"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json=review, ssl=context, server_hostname=name) as answer,
    ):
        response: dict[str, Any] = (await answer.json())["response"]
        return response
