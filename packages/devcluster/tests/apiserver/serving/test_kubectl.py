"""The real kubectl, where it needs schemas and webhook configurations."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from packages.devcluster.tests.apiserver.admission.configurations import (
    MUTATING,
    VALIDATING,
    configuration,
    rule,
    webhook,
)
from packages.devcluster.tests.apiserver.admission.webhook_server import always, webhook_server
from packages.devcluster.tests.apiserver.custom_resources.test_controller import definition, gadget

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

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


async def test_access(kubectl: Kubectl) -> None:
    """Roles are made, bound and asked about as on any cluster."""
    await kubectl("create", "role", "reader", "--verb=get,list", "--resource=configmaps,pods/log")
    await kubectl("create", "rolebinding", "readers", "--role=reader", "--user=bob", "--serviceaccount=default:default")
    for who, question, answer in (
        ("bob", ("list", "configmaps"), "yes"),
        ("system:serviceaccount:default:default", ("get", "pods", "--subresource=log"), "yes"),
        ("bob", ("list", "configmaps", "-A"), "no"),
        ("bob", ("delete", "configmaps"), "no"),
        ("bob", ("get", "/healthz"), "yes"),
        ("bob", ("get", "/metrics"), "no"),
    ):
        assert (await kubectl("auth", "can-i", *question, "--as", who)).splitlines()[-1] == answer, question
    listed = (await kubectl("auth", "can-i", "--list", "--as", "bob")).splitlines()
    assert ["configmaps", "[]", "[]", "[get", "list]"] in [line.split() for line in listed]
    refused = await kubectl("get", "secrets", "--as", "bob")
    assert refused == (
        'Error from server (Forbidden): secrets is forbidden: User "bob" cannot list resource "secrets" in API group '
        '"" in the namespace "default"\n'
    )
    assert "Role/reader" in await kubectl("get", "rolebindings", "-o", "wide")
    assert "PolicyRule:" in await kubectl("describe", "clusterrole", "system:basic-user")


async def test_reconciled_roles(kubectl: Kubectl) -> None:
    """`kubectl auth reconcile` finds nothing to do the second time."""
    group = "rbac.authorization.k8s.io"
    envelope = {"apiVersion": f"{group}/v1", "metadata": {"name": "team:x"}}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    objects = [
        {**envelope, "kind": "ClusterRole", "rules": rules},
        {
            **envelope,
            "kind": "ClusterRoleBinding",
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "team:x"},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": "x"}],
        },
    ]
    assert "missing rules added" in await kubectl("auth", "reconcile", "-f", "-", objects=objects)
    again = await kubectl("auth", "reconcile", "-f", "-", objects=objects)
    assert len(again.splitlines()) == 2, again
    assert await kubectl("auth", "can-i", "get", "pods", "--as", "eve", "--as-group", "x") == "yes\n"


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
