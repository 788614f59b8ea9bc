"""The page about a kind of one's own: its controller, its definition and the test that it shows."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.docs.test_kube import DOCS, load_example
from trainer.kube import Manager
from trainer.kube.objects import find_condition
from trainer_kube_testing import FakeClient, ManualClock, eventually, settle

EXAMPLE = load_example("workspaces")


def workspace(**metadata: object) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Workspace",
        "metadata": {"name": "notes", "namespace": "default", **metadata},
        "spec": {"notice": "hello"},
    }


def test_page_shows_the_files_as_they_are() -> None:
    """What readers copy is what is tested."""
    page = (DOCS / "own-kinds.md").read_text()
    shown = re.findall(r"```(?:python|yaml)\n(.*?)```", page, re.DOTALL)
    assert shown[:2] == [(DOCS / "workspaces.yaml").read_text(), (DOCS / "workspaces.py").read_text()]


def test_the_test_that_the_page_shows(tmp_path: Path) -> None:
    """The test for readers runs as it stands on the page."""
    shown = re.findall(r"```python\n(.*?)```", (DOCS / "own-kinds.md").read_text(), re.DOTALL)[1]
    names: dict[str, Any] = {"Workspaces": EXAMPLE.Workspaces, "WORKSPACES": EXAMPLE.WORKSPACES}
    exec(compile(shown, "docs/own-kinds.md", "exec"), names)
    names["test_a_workspace_comes_and_goes"](tmp_path)


async def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """The condition says why, and the folder is tried again after a minute."""
    (tmp_path / "default").write_text("in the way")
    clock = ManualClock()
    client = FakeClient(workspace(), resources=[EXAMPLE.WORKSPACES], clock=clock)
    manager = Manager(client, clock=clock)
    EXAMPLE.Workspaces(manager, tmp_path)

    def ready() -> str | None:
        condition = find_condition(client.find(EXAMPLE.WORKSPACES, "notes", "default") or {}, "Ready")
        return None if condition is None else str(condition["status"])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await eventually(lambda: ready() == "False", within=5)
        found = find_condition(client.find(EXAMPLE.WORKSPACES, "notes", "default") or {}, "Ready")
        assert found is not None
        assert found["message"] == f"{tmp_path / 'default' / 'notes'}: {os.strerror(20)}"
        (tmp_path / "default").unlink()
        await eventually(lambda: ready() == "True", within=90, clock=clock)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("finalizers", "kept"),
    [
        pytest.param(["example.com/folder"], None, id="its own alone"),
        pytest.param(["other.example.com/wait", "example.com/folder"], ["other.example.com/wait"], id="beside another"),
        pytest.param(["other.example.com/wait"], ["other.example.com/wait"], id="another's alone"),
    ],
)
async def test_deletion(tmp_path: Path, finalizers: list[str], kept: list[str] | None) -> None:
    """It removes its folder and its finalizer, leaves those of others, and adds none to what is being deleted."""
    client = FakeClient(workspace(finalizers=finalizers), resources=[EXAMPLE.WORKSPACES])
    await client.delete(EXAMPLE.WORKSPACES, "notes", "default")
    manager = Manager(client)
    EXAMPLE.Workspaces(manager, tmp_path)

    def present() -> list[str] | None:
        found = client.find(EXAMPLE.WORKSPACES, "notes", "default")
        return None if found is None else list(found["metadata"]["finalizers"])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await settle()
        await eventually(lambda: present() == kept, within=5)
        tasks.cancel_scope.cancel()
    assert not (tmp_path / "default").exists()
