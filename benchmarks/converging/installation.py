"""What a manager needs in a cluster, installed for a measurement and removed after it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio

from benchmarks.converging.load import runtime
from trainer.api.crds import crds
from trainer.api.trainingruntime import TRAINING_RUNTIMES
from trainer.cli.errors import CommandError
from trainer.cli.installation import install_definitions
from trainer.cli.local.manager import register_webhooks, wait_for_admission
from trainer.kube.client import Client, ListOptions
from trainer.kube.errors import ApiError, NotFoundError
from trainer.kube.objects import name_of
from trainer.kube.resource import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from trainer.kube.rest.http import HttpClient
from trainer.workloads import JOBSETS

HOST: Final = "127.0.0.1"
_WEBHOOKS: Final = {
    MUTATING_WEBHOOK_CONFIGURATIONS: "defaulter.trainer.kubeflow.org",
    VALIDATING_WEBHOOK_CONFIGURATIONS: "validator.trainer.kubeflow.org",
}
_REACHED_SECONDS: Final = 5.0
"""Until an API server that has got the configurations uses them."""


@asynccontextmanager
async def definitions(client: Client) -> AsyncIterator[None]:
    """Our CustomResourceDefinitions, of which those are removed afterwards that were not there.

    Raises:
        RuntimeError: the cluster has no JobSets, or another manager.
    """
    try:
        await client.list_page(JOBSETS, options=ListOptions(limit=1))
    except NotFoundError as error:
        raise RuntimeError("the cluster has no JobSets: install the CRD of JobSet, and no controller of it") from error
    for resource, name in _WEBHOOKS.items():
        if await _exists(client, resource, name):
            raise RuntimeError(f"the cluster has a manager: remove it, with its {resource.kind} {name}")
    names = [name_of(definition) for definition in crds()]
    missing = [name for name in names if not await _exists(client, CUSTOM_RESOURCE_DEFINITIONS, name)]
    try:
        if missing:
            await install_definitions(client)
        yield
    finally:
        with anyio.CancelScope(shield=True):
            for name in missing:
                await client.delete(CUSTOM_RESOURCE_DEFINITIONS, name)


def free_port() -> int:
    """A port of this machine at which nobody listens."""
    with socket.create_server((HOST, 0)) as free:
        port: int = free.getsockname()[1]
    return port


@asynccontextmanager
async def webhooks(client: Client, port: int) -> AsyncIterator[None]:
    """Webhook configurations that lead to this port of this machine."""
    try:
        await register_webhooks(client, port)
        yield
    finally:
        with anyio.CancelScope(shield=True):
            for resource, name in _WEBHOOKS.items():
                await client.delete(resource, name)


async def reaches_webhooks(client: HttpClient, namespace: str) -> bool:
    """Whether the API server gets answers of the manager of this machine, which serves its webhooks."""
    path, body = TRAINING_RUNTIMES.path(namespace), runtime(namespace)
    try:
        await wait_for_admission(client)
    except CommandError:
        return False
    with anyio.move_on_after(_REACHED_SECONDS):
        while True:
            try:
                await client.request("POST", path, params={"dryRun": "All"}, body=body)
            except ApiError:
                await anyio.sleep(0.2)
            else:
                return True
    return False


async def _exists(client: Client, resource: Resource, name: str) -> bool:
    try:
        await client.get(resource, name)
    except NotFoundError:
        return False
    return True
