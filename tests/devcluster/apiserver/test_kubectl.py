"""The real kubectl, as far as it needs schemas and webhook configurations."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from tests.devcluster.apiserver.admission.configurations import MUTATING, VALIDATING, configuration, rule, webhook
from tests.devcluster.apiserver.admission.webhook_server import always, webhook_server
from tests.devcluster.apiserver.test_crd import definition, gadget

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from tests.devcluster.apiserver.http_client import Api
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


async def test_what_users_read_of_webhooks(kubectl: Kubectl, tmp_path: Path) -> None:
    """Denials and warnings come out as in a real cluster."""
    await kubectl("apply", "-f", "-", objects=[definition()])
    await kubectl("wait", "--for=condition=Established", "crd/gadgets.example.com", "--timeout=10s")
    async with webhook_server(tmp_path) as server:
        hook = webhook(server=server, rules=[rule("gadgets", group="example.com")])
        await kubectl("apply", "-f", "-", objects=[configuration(VALIDATING, "v", hook)])
        server.answers["/check"] = always(allowed=True, warnings=["think twice"])
        assert "Warning: think twice" in await kubectl("apply", "-f", "-", objects=[gadget("a")])
        server.answers["/check"] = always(allowed=False, status={"code": 403, "message": "spec.n: Forbidden: no"})
        denied = await kubectl("apply", "-f", "-", objects=[gadget("b")])
        assert 'admission webhook "check.example.com" denied the request: spec.n: Forbidden: no' in denied


async def test_autoscalers(kubectl: Kubectl) -> None:
    """They are made, checked and shown as in a real cluster, and anything with a scale can be their target."""
    await kubectl("apply", "-f", "-", objects=[definition()])
    await kubectl("wait", "--for=condition=Established", "crd/gadgets.example.com", "--timeout=10s")
    await kubectl("create", "-f", "-", objects=[gadget("a")])
    assert (
        await kubectl("autoscale", "gadget/a", "--min=1", "--max=4")
        == "horizontalpodautoscaler.autoscaling/a autoscaled\n"
    )
    header, row = (line.split() for line in (await kubectl("get", "hpa")).splitlines())
    assert header == ["NAME", "REFERENCE", "TARGETS", "MINPODS", "MAXPODS", "REPLICAS", "AGE"]
    assert row[:-1] == ["a", "Gadget/a", "cpu:", "<unknown>/80%", "1", "4", "0"]
    refused = await kubectl("patch", "hpa", "a", "--type=merge", "-p", '{"spec": {"maxReplicas": 0}}')
    assert "spec.maxReplicas: Invalid value: 0: must be greater than 0" in refused
    assert await kubectl("scale", "gadget/a", "--replicas=3") == "gadget.example.com/a scaled\n"
    assert await kubectl("get", "gadget", "a", "-o", "jsonpath={.spec.n}") == "3"
    assert "FIELD: maxReplicas <integer>" in await kubectl("explain", "hpa.spec.maxReplicas")
