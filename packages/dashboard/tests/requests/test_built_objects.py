"""The objects of a TrainJob on its page."""

from __future__ import annotations

import pytest

from packages.dashboard.tests.conftest import UserClient, train_job, visiting
from packages.dashboard.tests.requests.test_runtimes import runtime
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.kube.objects import Object
from trainer.v1alpha1.client import SERVED

PATH = "/api/trainjobs/default/demo/built"
OWN = {"runtimeRef": {"name": "own", "kind": "TrainingRuntime"}}


@pytest.fixture
def client() -> UserClient:
    """A cluster with a runtime for all, and one of the namespace."""
    client = UserClient(resources=(*SERVED,))
    client.add(runtime(CLUSTER_TRAINING_RUNTIMES, "plain"))
    client.add(runtime(TRAINING_RUNTIMES, "own", "default"))
    return client


@pytest.mark.parametrize(
    ("spec", "origin"),
    [
        pytest.param({}, "ClusterTrainingRuntime/plain", id="of-the-cluster"),
        pytest.param(OWN, "TrainingRuntime/own", id="of-the-namespace"),
    ],
)
async def test_objects(client: UserClient, spec: Object, origin: str) -> None:
    """The TrainJob is built on its runtime, with the origin of each field, and without its state."""
    client.add(train_job(spec=spec, state="Running"))
    async with visiting(client) as visitor:
        status, answer = await visitor.json(PATH)
    assert (status, answer["notes"]) == (200, [])
    assert "kind: JobSet\n" in answer["yaml"]
    assert f"# {origin}" in answer["yaml"]


@pytest.mark.parametrize(
    ("spec", "status", "error"),
    [
        pytest.param({"runtimeRef": {"name": "absent"}}, 404, "absent", id="no-runtime"),
        pytest.param({"runtimeRef": {"name": "../secrets/x"}}, 422, "spec.runtimeRef.name", id="no-name-of-a-runtime"),
        pytest.param({"trainer": {"numNodes": 0}}, 422, "spec.trainer.numNodes", id="cannot-be-built"),
    ],
)
async def test_no_objects(client: UserClient, spec: Object, status: int, error: str) -> None:
    """Without its runtime, or where they cannot be built, there is a reason in place of the objects."""
    client.add(train_job(spec=spec))
    async with visiting(client) as visitor:
        answered, answer = await visitor.json(PATH)
    assert (answered, error in answer["error"]) == (status, True)
