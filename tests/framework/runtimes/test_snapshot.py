"""Runtime snapshots."""

from __future__ import annotations

import json

import pytest

from tests.framework.samples import runtime_object, train_job, train_job_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.runtimes.runtimes import KeptSnapshots, digest_of, make_snapshot, open_snapshot, snapshot_key
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.informer import Informer
from trainer.kube.objects import Object, key_of
from trainer.kube.resource import CONFIG_MAPS
from trainer.kube.selection import Selection
from trainer_kube_testing import FakeClient


def snapshot(runtime: Object | None = None) -> Object:
    """A snapshot of a runtime for the TrainJob demo."""
    return make_snapshot(train_job_object(), CLUSTER_TRAINING_RUNTIMES, runtime or runtime_object())


def test_what_is_kept() -> None:
    """The spec as it is stored, with fields that this code does not know, and enough to recognise the runtime."""
    runtime = runtime_object() | {"status": {"not": "kept"}}
    runtime["spec"]["newer"] = {"field": 1}
    runtime["metadata"] |= {"uid": "u", "resourceVersion": "7", "managedFields": [{"manager": "kubectl"}]}

    taken = snapshot(runtime)

    assert key_of(taken) == snapshot_key(train_job())
    assert taken["immutable"] is True
    assert taken["metadata"]["ownerReferences"][0]["uid"] == "uid-of-demo"
    assert json.loads(taken["data"]["runtime"]) == {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "blueprint", "uid": "u", "resourceVersion": "7"},
        "spec": runtime["spec"],
    }
    assert open_snapshot(taken) == (CLUSTER_TRAINING_RUNTIMES, json.loads(taken["data"]["runtime"]))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param({}, "does not hold a runtime", id="no-key"),
        pytest.param({"runtime": "spec: {"}, "does not hold a runtime", id="not-json"),
        pytest.param(
            {"runtime": '{"kind": "Pod", "metadata": {"name": "x"}, "spec": {}}'},
            "does not hold a runtime",
            id="other-kind",
        ),
        pytest.param(
            {"runtime": '{"kind": "ClusterTrainingRuntime", "spec": {}}'}, "does not hold a runtime", id="no-name"
        ),
    ],
)
def test_a_snapshot_that_cannot_be_used(data: Object, problem: str) -> None:
    """Somebody made it anew with other content: the error names the ConfigMap and the remedy."""
    with pytest.raises(BuildError) as caught:
        open_snapshot(snapshot() | {"data": data})
    assert str(caught.value) == (
        f"ConfigMap demo-runtime-snapshot data.runtime: Invalid value: {problem}; delete the ConfigMap, and a new "
        "snapshot of the runtime will be taken"
    )


def test_a_large_runtime_is_kept_without_indentation() -> None:
    """A runtime that fits into a ConfigMap must not fail to for the sake of its looks."""
    runtime = runtime_object()
    runtime["spec"]["large"] = [{"a": index} for index in range(50_000)]
    content = snapshot(runtime)["data"]["runtime"]
    assert "\n" not in content
    assert len(content) < 700_000
    assert open_snapshot(snapshot(runtime))[1]["spec"] == runtime["spec"]


METADATA = Selection(metadata_only=True)


def large_runtime(number: int) -> Object:
    """A runtime of a megabyte."""
    return runtime_object() | {"spec": {"number": number, "template": {"spec": {}}, "large": "x" * 1_000_000}}


class Snapshots:
    """Snapshots in a fake API server, whose metadata the cache shows."""

    def __init__(self) -> None:
        self.client = FakeClient()
        self.informer = Informer(self.client, CONFIG_MAPS, METADATA)
        self.kept = KeptSnapshots(self.client, self.informer.lister)

    def add(self, number: int, runtime: Object) -> None:
        """Somebody stores a snapshot."""
        owner = train_job_object(f"demo-{number}")
        stored = self.client.add(make_snapshot(owner, CLUSTER_TRAINING_RUNTIMES, runtime))
        self.informer.put(CachedObject.of(stored))

    async def open(self, number: int, digest: str) -> Object | None:
        """What the snapshot holds."""
        owner = train_job(f"demo-{number}")
        metadata = self.kept.metadata(owner)
        assert metadata is not None
        found = await self.kept.open(metadata, digest)
        return found and found[1]

    async def holds(self, number: int, digest: str) -> bool:
        """Whether the snapshot holds the runtime of this digest."""
        metadata = self.kept.metadata(train_job(f"demo-{number}"))
        assert metadata is not None
        return await self.kept.holds(metadata, digest)

    @property
    def requests(self) -> int:
        """How many were sent so far."""
        return len(self.client.requests)


async def test_what_many_were_built_on_is_requested_once() -> None:
    """Without a digest, every snapshot counts for itself."""
    snapshots, runtime = Snapshots(), runtime_object()
    for number in range(3):
        snapshots.add(number, runtime)
        assert (await snapshots.open(number, digest_of(runtime)) or {})["spec"] == runtime["spec"]
    assert snapshots.requests == 1
    for number in (0, 1, 0, 1):
        await snapshots.open(number, "")
    assert snapshots.requests == 3


async def test_what_is_remembered_is_bounded() -> None:
    """Of runtimes of a megabyte, the four that were needed last."""
    snapshots = Snapshots()
    digests = [digest_of(large_runtime(number)) for number in range(6)]
    for number, digest in enumerate(digests):
        snapshots.add(number, large_runtime(number))
        await snapshots.open(number, digest)
    assert snapshots.requests == 6
    for number in (5, 4, 3):
        await snapshots.open(number, digests[number])
    assert snapshots.requests == 6
    await snapshots.open(0, digests[0])
    assert snapshots.requests == 7


async def test_a_snapshot_of_another_runtime() -> None:
    """A runtime that is remembered from elsewhere is no proof that this snapshot holds it."""
    snapshots, digest = Snapshots(), digest_of(runtime_object())
    snapshots.add(0, runtime_object())
    await snapshots.open(0, digest)
    snapshots.add(1, runtime_object() | {"spec": {"template": {"spec": {}}}})
    assert [await snapshots.holds(number, digest) for number in (0, 1)] == [True, False]
