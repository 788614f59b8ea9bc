"""Soak: many objects, random changes and random faults; at the end everything must be as if nothing had gone wrong."""

from __future__ import annotations

import os
import random as global_random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from trainer.kube import Controller, Manager, ManagerOptions
from trainer.kube.errors import AlreadyExistsError, KubeError, NotFoundError
from trainer.kube.objects import Object, ObjectKey, controller_reference, key_of, resource_version_of, uid_of
from trainer.kube.resource import CONFIG_MAPS, SECRETS
from trainer_kube_testing import FakeClient, ManualClock, eventually, no_stray_tasks, settle

OBJECTS = 200
STEPS = 1500
NAMESPACES = ("one", "two", "three")


class Mirror:
    """A controller that keeps one Secret beside each ConfigMap, and whose reconciles fail now and then."""

    def __init__(self, manager: Manager, random: Random) -> None:
        self._client = manager.client
        self._random = random
        self._config_maps = manager.informer(CONFIG_MAPS).lister
        self._secrets = manager.informer(SECRETS).lister
        self._running: Counter[ObjectKey] = Counter()
        self.seen: dict[ObjectKey, str] = {}
        """Resource version that the last reconcile of a key has seen; "" for none."""
        self.stale_reads: list[ObjectKey] = []
        """Keys whose Secret showed as older than what had just been written."""
        self.most_at_once: int = 0
        self.reconciles = 0
        self.is_calm = False
        controller = Controller("mirror", manager, self._reconcile, max_concurrent_reconciles=10)
        controller.reconciles(CONFIG_MAPS).owns(SECRETS)

    async def _reconcile(self, key: ObjectKey) -> None:
        with self._counted(key):
            config_map = self._config_maps.get(key)
            self.seen[key] = "" if config_map is None else resource_version_of(config_map)
            for _ in range(self._random.randrange(3)):
                await anyio.lowlevel.checkpoint()
            if config_map is not None:
                await self._write(config_map)
            self._stumble()

    async def _write(self, config_map: Object) -> None:
        key = key_of(config_map)
        present = self._secrets.get(key)
        if present is not None and present["data"] == config_map["data"]:
            return
        metadata = {"name": key.name, "namespace": key.namespace, "ownerReferences": [controller_reference(config_map)]}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": config_map["data"]}
        try:
            written = await self._client.apply(SECRETS, secret, field_manager="mirror", force=True)
        except NotFoundError:
            return
        shown = self._secrets.get(key)
        if shown is not None and int(resource_version_of(shown)) < int(resource_version_of(written)):
            # Raised here, it would be one more failure that the controller repeats.
            self.stale_reads.append(key)

    def _stumble(self) -> None:
        if self.is_calm:
            return
        draw = self._random.random()
        if draw < 0.02:
            raise RuntimeError("a bug in the reconcile")
        if draw < 0.03:
            raise KubeError("the server did not like it")

    @contextmanager
    def _counted(self, key: ObjectKey) -> Iterator[None]:
        self.reconciles += 1
        self._running[key] += 1
        self.most_at_once = max(self.most_at_once, self._running[key])
        try:
            yield
        finally:
            self._running[key] -= 1


def config_map(number: int, value: str) -> dict[str, Any]:
    """One of the objects; each has its namespace."""
    metadata = {"name": f"o{number}", "namespace": NAMESPACES[number % len(NAMESPACES)]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


async def change_something(random: Random, others: FakeClient) -> None:
    """One random create, update or delete by somebody else."""
    obj = config_map(random.randrange(OBJECTS), str(random.random()))
    key, data = key_of(obj), obj["data"]
    with suppress(AlreadyExistsError, NotFoundError):
        match random.choice(("create", "create", "update", "update", "update", "delete", "vandalise")):
            case "create":
                await others.create(CONFIG_MAPS, obj)
            case "update":
                await others.patch(CONFIG_MAPS, key.name, {"data": data}, key.namespace)
            case "delete":
                await others.delete(CONFIG_MAPS, key.name, key.namespace)
            case "vandalise":
                await others.patch(SECRETS, key.name, {"data": data}, key.namespace)


@pytest.mark.parametrize("seed", range(int(os.environ.get("SOAK_SEEDS", "3"))))
async def test_everything_is_right_in_the_end(seed: int) -> None:
    """Cache equals server, every key was reconciled after its last change, none twice at once, and no task is left."""
    random = Random(seed)
    # Pauses are drawn from the generator of the process.
    global_random.seed(seed)
    clock = ManualClock()
    client = FakeClient(*(config_map(number, "at first") for number in range(OBJECTS)), clock=clock)
    others = client.peer()
    manager = Manager(client, clock=clock, options=ManagerOptions(cache_sync_timeout=1e9))
    mirror = Mirror(manager, random)

    async with no_stray_tasks(), anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        client.faults.chaos(random, rate=0.05)
        for _ in range(STEPS):
            await change_something(random, others)
            if random.random() < 0.1:
                await clock.advance(random.random() * 10)
            elif random.random() < 0.3:
                await settle()
        client.faults.calm()
        mirror.is_calm = True

        def settled() -> bool:
            wanted = {key_of(obj): resource_version_of(obj) for obj in others.objects(CONFIG_MAPS)}
            seen = {key: version for key, version in mirror.seen.items() if version}
            return seen == wanted and _cached(manager) == _stored(others) and _mirrored(others)

        await eventually(settled, clock=clock, within=3000)
        tasks.cancel_scope.cancel()

    assert mirror.most_at_once == 1
    assert mirror.stale_reads == []
    assert mirror.reconciles > STEPS / 4
    # A run in which nothing went wrong would prove nothing.
    assert len(client.faults.injected) > 8
    assert sum(client.faults.injected.values()) > 50


def _mirrored(server: FakeClient) -> bool:
    secrets = {key_of(obj): obj["data"] for obj in server.objects(SECRETS)}
    return all(secrets.get(key_of(obj)) == obj["data"] for obj in server.objects(CONFIG_MAPS))


def _stored(server: FakeClient) -> dict[tuple[str, ObjectKey], tuple[str, str]]:
    return {
        (resource.plural, key_of(obj)): (uid_of(obj), resource_version_of(obj))
        for resource in (CONFIG_MAPS, SECRETS)
        for obj in server.objects(resource)
    }


def _cached(manager: Manager) -> dict[tuple[str, ObjectKey], tuple[str, str]]:
    return {
        (resource.plural, key_of(obj)): (uid_of(obj), resource_version_of(obj))
        for resource in (CONFIG_MAPS, SECRETS)
        for obj in manager.informer(resource).lister.list()
    }
