"""The primary container, found by what the API server tells."""

from __future__ import annotations

import pytest

from tests.cli.conftest import node_pod, train_job
from trainer.api.jobset_labels import JOBSET_UID, REPLICATED_JOB
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.progress import CONTAINER, PRIMARY_POD
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer.progress.primary import PrimaryContainer
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient


@pytest.fixture
def client() -> FakeClient:
    return FakeClient(resources=[TRAIN_JOBS, JOBSETS])


LABELLED = {"metadata": {"labels": {ANCESTOR_LABEL: "trainer"}}}


def jobset(uid: str = "1", trainer: str = "worker") -> Object:
    """A JobSet whose replicated Job of this name trains."""
    roles = ["alpha", "worker", "node"]
    jobs = [{"name": name, "template": LABELLED if name == trainer else {}} for name in roles]
    return {
        "apiVersion": JOBSETS.api_version,
        "kind": JOBSETS.kind,
        "metadata": {"name": "demo", "namespace": "default", "uid": uid},
        "spec": {"replicatedJobs": jobs},
    }


def role_pod(role: str, index: int = 0, *, uid: str = "1", annotations: dict[str, str] | None = None) -> Object:
    """A pod of that JobSet."""
    made = node_pod("demo", index)
    metadata = made["metadata"]
    labels = metadata["labels"] | {REPLICATED_JOB: role, JOBSET_UID: uid}
    name = f"{role}-{index}-{uid}"
    return {
        **made,
        "metadata": {**metadata, "name": name, "uid": name, "labels": labels, "annotations": annotations or {}},
    }


async def test_jobset_says_what_pods_are_for(client: FakeClient) -> None:
    """The replicated Job that trains is known from the JobSet, which is read once."""
    client.add(jobset())
    primary = PrimaryContainer(client, train_job())

    for _ in range(2):
        state = await primary.find([role_pod("alpha"), role_pod("node"), role_pod("worker", 1), role_pod("worker")])

        assert state is not None
        assert (state.pod, state.container) == ("worker-0-1", "trainer")
    assert len(client.requests) == 1
    assert await primary.find([]) is None


async def test_jobset_made_again(client: FakeClient) -> None:
    """When pods are those of another JobSet, that one is read."""
    client.add(jobset("1"))
    primary = PrimaryContainer(client, train_job())
    assert await primary.find([role_pod("worker")]) is not None
    client.add(jobset("2", trainer="node"))

    state = await primary.find([role_pod("node", uid="2"), role_pod("worker", uid="2")])

    assert state is not None
    assert state.pod == "node-0-2"


@pytest.mark.parametrize("forbidden", [False, True], ids=["no JobSet", "not for everybody to read"])
@pytest.mark.parametrize(
    ("pods", "name"),
    [
        pytest.param(
            [role_pod("dataset-initializer"), role_pod("node", 1), role_pod("node")],
            "node-0-1",
            id="name of Kubeflow Trainer",
        ),
        pytest.param(
            [role_pod("dataset-initializer"), role_pod("trainer-node")], "trainer-node-0-1", id="name of the KEP"
        ),
        pytest.param([role_pod("model-initializer"), role_pod("worker")], "worker-0-1", id="what is no initializer"),
        pytest.param(
            [role_pod("node"), role_pod("launcher", annotations={PRIMARY_POD: "true"})], "launcher-0-1", id="annotated"
        ),
        pytest.param([role_pod("dataset-initializer")], None, id="not there yet"),
    ],
)
async def test_without_a_jobset(client: FakeClient, pods: list[Object], name: str | None, forbidden: bool) -> None:
    """What the JobSet would tell is guessed from labels and names of the pods, with one attempt to read it."""
    if forbidden:
        client.faults.fail(ForbiddenError(403, "jobsets is forbidden"), verb="get", times=None)
    primary = PrimaryContainer(client, train_job())

    for _ in range(2):
        state = await primary.find(pods)

        assert (state.pod if state is not None else None) == name
    assert len(client.requests) == (1 if forbidden else 2)


async def test_container(client: FakeClient) -> None:
    """The container may be named by an annotation of the TrainJob that its JobSet inherits."""
    job = train_job()
    job["spec"]["annotations"] = {CONTAINER: "reporter"}
    worker = role_pod("node")
    worker["spec"]["containers"] = [{"name": "trainer"}, {"name": "reporter"}]

    assert await PrimaryContainer(client, job).container_of(worker) == "reporter"
