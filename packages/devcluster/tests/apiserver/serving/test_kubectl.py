"""The real kubectl, where it needs schemas and webhook configurations."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import anyio
import pytest

from packages.devcluster.tests.apiserver.admission.configurations import (
    MUTATING,
    VALIDATING,
    configuration,
    rule,
    webhook,
)
from packages.devcluster.tests.apiserver.custom_resources.test_controller import definition, gadget
from packages.devcluster.tests.apiserver.http_client import Api
from trainer.kube.objects import Object

Kubectl: TypeAlias = Callable[..., Awaitable[str]]
"""Runs kubectl with arguments and objects for its standard input; returns all that it says."""

KUBECTL = Path(sys.executable).parent / "kubectl"


@pytest.fixture
def kubectl(api: Api, tmp_path: Path) -> Kubectl:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(api.server.kubeconfig())
    environment = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(kubeconfig)}

    async def run(*arguments: str, objects: list[Object] | None = None) -> str:
        content = "\n---\n".join(map(json.dumps, objects or [])).encode()
        result = await anyio.run_process([KUBECTL, *arguments], input=content, check=False, env=environment)
        return (result.stdout + result.stderr).decode()

    return run


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="client-side"),
        pytest.param(["--server-side"], id="server-side"),
    ],
)
async def test_apply(kubectl: Kubectl, options: list[str]) -> None:
    """Definitions and webhook configurations are applied, and applied again without a change."""
    hook = webhook(rules=[{**rule("secrets"), "scope": "*"}])
    objects = [definition(), configuration(MUTATING, "m", hook), configuration(VALIDATING, "v", hook)]
    first = await kubectl("apply", *options, "-f", "-", objects=objects)
    again = await kubectl("apply", *options, "-f", "-", objects=objects)
    outcomes = ["serverside-applied"] * 2 if options else ["created", "unchanged"]
    for text, outcome in zip((first, again), outcomes, strict=True):
        assert [line.rpartition(" ")[2] for line in text.splitlines()] == [outcome] * 3, text


async def test_explain(kubectl: Kubectl) -> None:
    """The schemas of custom resources and built-in kinds are there to be read."""
    await kubectl("apply", "-f", "-", objects=[definition()])
    await kubectl("wait", "--for=condition=Established", "crd/gadgets.example.com", "--timeout=10s")
    assert "FIELD: mode <string>" in await kubectl("explain", "gadget.spec.mode")
    assert "FIELD: caBundle <string>" in await kubectl(
        "explain", "validatingwebhookconfiguration.webhooks.clientConfig.caBundle"
    )


async def test_lists_are_validated_and_applied(kubectl: Kubectl) -> None:
    """kubectl finds nothing about the items of a List in the older schema document, and leaves it to the server."""
    await kubectl("apply", "-f", "-", objects=[definition()])
    await kubectl("wait", "--for=condition=Established", "crd/gadgets.example.com", "--timeout=10s")
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    items = {"apiVersion": "v1", "kind": "List", "items": [{**config, "data": {"k": "v"}}, gadget("g", n=1)]}
    assert await kubectl("apply", "-f", "-", objects=[items]) == ("configmap/a created\ngadget.example.com/g created\n")
    wrong = {**items, "items": [{**config, "daat": {}}, gadget("g", colour="red")]}
    text = await kubectl("apply", "-f", "-", objects=[wrong])
    assert 'unknown field "daat"' in text
    assert 'unknown field "spec.colour"' in text
