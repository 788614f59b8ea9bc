"""Deletion: who goes at once, who waits for what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainer.kube.client import Propagation
from trainer.kube.objects import Object
from trainer.kube.resource import JOBS, PODS, Resource
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceRegistry
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.kinds import BUILTIN_KINDS
from trainer_devcluster.apiserver.storage.storage import Partition, Storage
from trainer_devcluster.apiserver.wire.params import DeleteParameters
from trainer_devcluster.apiserver.writes.deletion import Deleter
from trainer_kube_testing.clock import ManualClock

RUNNING: Object = {"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 20}, "status": {"phase": "Running"}}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def backend(tmp_path: Path, clock: ManualClock) -> Backend:
    return Backend(Storage(), ResourceRegistry(BUILTIN_KINDS), clock, tmp_path, "")


def target_of(backend: Backend, resource: Resource, name: str) -> Target:
    definition = backend.registry.find(resource.group, resource.version, resource.plural)
    assert definition is not None
    return Target(definition, "delete", "ns" if resource.namespaced else None, name)


def stored(backend: Backend, resource: Resource, metadata: Object, **fields: Any) -> Target:
    """Put an object called x into the storage."""
    target = target_of(backend, resource, metadata.setdefault("name", "x"))
    if resource.namespaced:
        metadata.setdefault("namespace", "ns")
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"uid": "u", **metadata}, **fields}
    backend.storage.create(Partition.of(resource), target.key, obj)
    return target


def current(backend: Backend, target: Target) -> Object | None:
    return backend.storage.get(Partition.of(target.definition.resource), target.key)


@pytest.mark.parametrize(("propagation", "warnings"), [(None, 1), (Propagation.BACKGROUND, 0), (Propagation.ORPHAN, 0)])
def test_default_of_jobs_is_warned_about(backend: Backend, propagation: Propagation | None, warnings: int) -> None:
    """Who deletes a Job without a policy learns that its pods stay."""
    target = stored(backend, JOBS, {})
    assert len(Deleter(backend).delete(target, DeleteParameters(propagation=propagation)).warnings) == warnings


async def test_grace_period_can_be_shortened_but_not_prolonged(backend: Backend, clock: ManualClock) -> None:
    """Later deletions of a terminating pod only move the deadline forward; zero ends it."""
    target, deleter = stored(backend, PODS, {}, **RUNNING), Deleter(backend)
    deleter.delete(target, DeleteParameters())
    await clock.advance(2)
    shorter = deleter.delete(target, DeleteParameters(5)).answer["metadata"]
    assert (shorter["deletionTimestamp"], shorter["deletionGracePeriodSeconds"]) == ("2026-01-01T00:00:07Z", 5)
    assert deleter.delete(target, DeleteParameters(60)).answer["metadata"] == shorter
    deleter.delete(target, DeleteParameters(0))
    assert current(backend, target) is None
