"""Deletion: who goes at once, who waits for what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainer.kube.client import Propagation
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS, JOBS, NAMESPACES, PODS, Resource
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceRegistry
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.kinds import BUILTIN_KINDS
from trainer_devcluster.apiserver.storage.storage import Partition, Storage
from trainer_devcluster.apiserver.wire.params import DeleteParameters
from trainer_devcluster.apiserver.writes.deletion import Deleter, is_finished
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


@pytest.mark.parametrize(
    ("resource", "finalizers", "propagation", "expected"),
    [
        pytest.param(
            CONFIG_MAPS, ["orphan", "a.b/c"], Propagation.FOREGROUND, ["a.b/c", "foregroundDeletion"], id="changed mind"
        ),
        pytest.param(CONFIG_MAPS, ["a.b/c", "orphan"], Propagation.BACKGROUND, ["a.b/c"], id="background"),
        pytest.param(CONFIG_MAPS, ["orphan"], None, ["orphan"], id="unset keeps what is there"),
        pytest.param(JOBS, [], None, ["orphan"], id="jobs orphan by default"),
    ],
)
def test_propagation_becomes_finalizers(
    backend: Backend, resource: Resource, finalizers: list[str], propagation: Propagation | None, expected: list[str]
) -> None:
    """Finalizers say what the garbage collector does with dependents."""
    target = stored(backend, resource, {"finalizers": finalizers})
    Deleter(backend).delete(target, DeleteParameters(propagation=propagation))
    obj = current(backend, target)
    assert obj is not None
    assert obj["metadata"]["finalizers"] == expected


@pytest.mark.parametrize(("propagation", "warnings"), [(None, 1), (Propagation.BACKGROUND, 0), (Propagation.ORPHAN, 0)])
def test_default_of_jobs_is_warned_about(backend: Backend, propagation: Propagation | None, warnings: int) -> None:
    """Who deletes a Job without a policy learns that its pods stay."""
    target = stored(backend, JOBS, {})
    assert len(Deleter(backend).delete(target, DeleteParameters(propagation=propagation)).warnings) == warnings


@pytest.mark.parametrize(
    ("fields", "parameters", "seconds"),
    [
        pytest.param(RUNNING, DeleteParameters(), 20, id="the pod's own grace period"),
        pytest.param(RUNNING, DeleteParameters(0), None, id="at once"),
        pytest.param({"spec": {}}, DeleteParameters(), None, id="never scheduled"),
    ],
)
def test_pods_get_time_to_end(
    backend: Backend, fields: Object, parameters: DeleteParameters, seconds: int | None
) -> None:
    """A scheduled pod that runs is marked with its deadline; any other goes at once, with its last state as answer."""
    target = stored(backend, PODS, {}, **fields)
    answer = Deleter(backend).delete(target, parameters).answer
    assert answer["kind"] == "Pod"
    assert (current(backend, target) is None) is (seconds is None)
    assert answer["metadata"].get("deletionGracePeriodSeconds") == seconds
    if seconds is not None:
        assert answer["metadata"]["deletionTimestamp"] == f"2026-01-01T00:00:{seconds:02d}Z"


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


def test_finalizers_hold_a_pod_whose_grace_period_is_over(backend: Backend) -> None:
    """The kubelet's last deletion leaves a pod that the Job controller has still to count."""
    target, deleter = (
        stored(backend, PODS, {"finalizers": ["batch.kubernetes.io/job-tracking"]}, **RUNNING),
        Deleter(backend),
    )
    deleter.delete(target, DeleteParameters())
    deleter.delete(target, DeleteParameters(0))
    obj = current(backend, target)
    assert obj is not None
    assert obj["metadata"]["deletionGracePeriodSeconds"] == 0
    obj = {**obj, "metadata": {name: value for name, value in obj["metadata"].items() if name != "finalizers"}}
    assert is_finished(target.definition, obj)


def test_namespaces_wait_for_their_content(backend: Backend) -> None:
    """A namespace becomes Terminating until the finalizer of its specification is gone."""
    target = stored(backend, NAMESPACES, {}, spec={"finalizers": ["kubernetes"]}, status={"phase": "Active"})
    answer = Deleter(backend).delete(target, DeleteParameters()).answer
    assert answer["status"]["phase"] == "Terminating"
    assert "deletionGracePeriodSeconds" not in answer["metadata"]
    assert not is_finished(target.definition, answer)
    assert is_finished(target.definition, {**answer, "spec": {}})


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        pytest.param(DeleteParameters(uid="other"), 409, id="another incarnation"),
        pytest.param(DeleteParameters(resource_version="999"), 409, id="changed since"),
        pytest.param(DeleteParameters(uid="u"), None, id="this one"),
    ],
)
def test_preconditions(backend: Backend, parameters: DeleteParameters, code: int | None) -> None:
    """A deletion can insist on the object that the caller has seen."""
    target = stored(backend, CONFIG_MAPS, {})
    if code is None:
        Deleter(backend).delete(target, parameters)
        return
    with pytest.raises(ApiError) as caught:
        Deleter(backend).delete(target, parameters)
    assert caught.value.code == code
    assert current(backend, target) is not None
