"""The page about `trainer.kube` and the controller that it shows."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import anyio

from trainer.kube import Manager
from trainer.kube.resource import CONFIG_MAPS, EVENTS, NAMESPACES
from trainer.kube.testing import FakeClient, eventually, settle

DOCS = Path(__file__).parents[2] / "docs"


def load_example() -> Any:
    """The module of the example."""
    spec = importlib.util.spec_from_file_location("team_info", DOCS / "team_info.py")
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
    """What readers copy is what is tested; it is about forty lines."""
    example = (DOCS / "team_info.py").read_text()
    assert blocks()[0] == example
    assert len(example.splitlines()) <= 50


async def test_the_test_that_the_page_shows() -> None:
    """The test for readers runs as it stands on the page."""
    names: dict[str, Any] = {"TeamInfo": load_example().TeamInfo}
    exec(compile(blocks()[1], "docs/kube.md", "exec"), names)
    await names["test_team_is_named"]()


async def test_example_mends_and_follows() -> None:
    """It writes the ConfigMap, mends it, follows the label to its end, records events, and leaves others alone."""
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
