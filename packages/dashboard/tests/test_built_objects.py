"""The objects of a TrainJob on its page."""

from __future__ import annotations

from packages.dashboard.tests.conftest import UserClient, train_job, visiting
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.v1alpha1.client import SERVED
from trainer_dashboard.built_objects import BuiltObjects
from trainer_dashboard.rejected import RejectedError

PATH = "/api/trainjobs/default/demo/built"


def render(train_job: Object, resource: Resource, runtime: Object) -> BuiltObjects:
    """Says what it was given."""
    if "status" in train_job or "managedFields" in runtime["metadata"]:
        raise RejectedError(FieldError("", "given with its state"))
    return BuiltObjects(f"{resource.kind} {runtime['metadata'].get('namespace')} {train_job['spec']}", ("a note",))


async def test_objects() -> None:
    """The TrainJob is built on its runtime, of the cluster or of its namespace."""
    client = UserClient(resources=(*SERVED,))
    client.add(train_job(state="Running"))
    own = {"runtimeRef": {"name": "own", "kind": "TrainingRuntime"}}
    client.add(train_job("other", spec=own))
    for resource, name, where in (
        (CLUSTER_TRAINING_RUNTIMES, "plain", {}),
        (TRAINING_RUNTIMES, "own", {"namespace": "default"}),
    ):
        metadata = {"name": name, "managedFields": [{"manager": "kubectl"}]} | where
        client.add({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": {}})
    async with visiting(client, renderer=render) as visitor:
        status, answer = await visitor.json(PATH)
        assert (status, answer["notes"]) == (200, ["a note"])
        assert answer["yaml"] == "ClusterTrainingRuntime None {'runtimeRef': {'name': 'plain'}}"
        _, answer = await visitor.json(PATH.replace("demo", "other"))
        assert answer["yaml"] == f"TrainingRuntime default {own}"


async def test_no_runtime() -> None:
    """Without its runtime, or the right to read it, there is a reason in place of the objects."""
    client = UserClient(resources=(*SERVED,))
    client.add(train_job())
    async with visiting(client, renderer=render) as visitor:
        status, answer = await visitor.json(PATH)
        assert (status, "plain" in answer["error"]) == (404, True)


async def test_impossible_runtime() -> None:
    """A name that no runtime can have is not asked for."""
    client = UserClient(resources=(*SERVED,))
    client.add(train_job(spec={"runtimeRef": {"name": "../secrets/x"}}))
    async with visiting(client, renderer=render) as visitor:
        status, answer = await visitor.json(PATH)
        assert (status, "spec.runtimeRef.name" in answer["error"]) == (422, True)


async def test_rejected_objects() -> None:
    """What cannot be built is answered with the reason."""

    def refuse(train_job: Object, resource: Resource, runtime: Object) -> BuiltObjects:
        raise RejectedError(FieldError("spec.trainer", "does not fit"))

    client = UserClient(resources=(*SERVED,))
    client.add(train_job())
    resource = CLUSTER_TRAINING_RUNTIMES
    client.add({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "plain"}})
    async with visiting(client, renderer=refuse) as visitor:
        assert await visitor.json(PATH) == (422, {"error": "spec.trainer: does not fit"})
