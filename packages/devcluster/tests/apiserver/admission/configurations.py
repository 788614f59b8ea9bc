"""Webhook configurations that the tests of admission share."""

from __future__ import annotations

from typing import Any

from packages.devcluster.tests.apiserver.admission.webhook_server import WebhookServer
from packages.devcluster.tests.apiserver.http_client import Api
from trainer.kube.objects import Object

GROUP = "admissionregistration.k8s.io"
MUTATING = f"/apis/{GROUP}/v1/mutatingwebhookconfigurations"
VALIDATING = f"/apis/{GROUP}/v1/validatingwebhookconfigurations"
KINDS = {MUTATING: "MutatingWebhookConfiguration", VALIDATING: "ValidatingWebhookConfiguration"}


def rule(resources: str = "configmaps", operations: str = "CREATE,UPDATE,DELETE", group: str = "") -> Object:
    """A rule; names are separated by commas."""
    return {
        "operations": operations.split(","),
        "apiGroups": [group],
        "apiVersions": ["*"],
        "resources": resources.split(","),
    }


def webhook(name: str = "check", *, path: str = "", server: WebhookServer | None = None, **fields: Any) -> Object:
    """A webhook `<name>.example.com` for config maps at the path `/<name>` of a server."""
    url = f"{server.url if server else 'https://127.0.0.1:1'}{path or f'/{name}'}"
    client: Object = {"url": url}
    if server is not None:
        client["caBundle"] = server.certificate.ca_bundle
    return {
        "name": f"{name}.example.com",
        "clientConfig": client,
        "rules": [rule()],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }


def configuration(path: str, name: str, *webhooks: Object) -> Object:
    """A configuration as clients send it."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": KINDS[path],
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }


async def configure(api: Api, path: str, *webhooks: Object, name: str = "hooks") -> None:
    """Store a configuration."""
    answer = await api("POST", path, configuration(path, name, *webhooks))
    assert answer.code == 201, answer.body
