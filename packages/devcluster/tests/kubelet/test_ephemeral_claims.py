"""Claims of ephemeral volumes, on an API server in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from packages.devcluster.tests.kubelet.fakes import LIMIT, eventually, make_pod, shell
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object
from trainer.kube.resource import PERSISTENT_VOLUME_CLAIMS
from trainer_devcluster.kubelet.claims import EphemeralClaims
from trainer_kube_testing import FakeClient

SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME = {
    "name": "scratch",
    "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}, "name": "ignored"}, "spec": SPEC}},
}


def pod(**fields: Any) -> Object:
    return make_pod("pod", shell("true"), volumes=[{"name": "empty"}, VOLUME]) | fields


@asynccontextmanager
async def running(client: FakeClient) -> AsyncIterator[None]:
    """The controller, until the context ends."""
    manager = Manager(client)
    EphemeralClaims(manager)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        with anyio.fail_after(LIMIT):
            await manager.wait_for_start()
        yield
        tasks.cancel_scope.cancel()


async def test_claim_is_made_once() -> None:
    """Each ephemeral volume has its claim; an existing claim is left as it is."""
    client = FakeClient(pod())
    async with running(client):
        await eventually(lambda: len(client.objects(PERSISTENT_VOLUME_CLAIMS)) == 1)
    async with running(client):
        pass
    [claim] = client.objects(PERSISTENT_VOLUME_CLAIMS)
    assert claim["metadata"]["name"] == "pod-scratch"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_pod_that_has_ended(phase: str) -> None:
    """A pod that has ended needs no claim any more; the others are served meanwhile."""
    other = make_pod("other", shell("true"), volumes=[VOLUME])
    client = FakeClient(pod(status={"phase": phase}), other)
    async with running(client):
        await eventually(lambda: len(client.objects(PERSISTENT_VOLUME_CLAIMS)) == 1)
    [claim] = client.objects(PERSISTENT_VOLUME_CLAIMS)
    assert claim["metadata"]["name"] == "other-scratch"
