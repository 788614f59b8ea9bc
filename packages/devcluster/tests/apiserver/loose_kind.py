"""A custom kind that takes any content, for tests that are about something else."""

from __future__ import annotations

from typing import Any

import anyio

from packages.devcluster.tests.apiserver.http_client import Api

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION_NAME = "loosethings.example.com"
PATH = "/apis/example.com/v1/namespaces/default/loosethings"


def definition() -> dict[str, Any]:
    """Its CustomResourceDefinition."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": "loosethings", "singular": "loosething", "kind": "LooseThing", "listKind": "LooseThingList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION_NAME},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def install(api: Api) -> None:
    """Create the definition and wait until it is served."""
    answer = await api("POST", DEFINITIONS, definition())
    assert answer.code == 201, answer.body
    with anyio.fail_after(5):
        while (await api("GET", PATH)).code != 200:
            pass
