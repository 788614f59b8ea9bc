"""What admission says about runtimes that it accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.webhooks.blueprints import STEP, blueprint, container, job, replicated_job
from tests.webhooks.requests import admit
from trainer.cli.manifests import runtimes

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def labelled(obj: Object, **labels: str) -> Object:
    """A copy with labels."""
    return obj | {"metadata": obj["metadata"] | {"labels": labels}}


DEPRECATED = labelled(blueprint(), **{"trainer.kubeflow.org/support": "deprecated"})


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(blueprint(), id="cluster"),
        pytest.param(blueprint(kind="TrainingRuntime"), id="namespaced"),
        pytest.param(blueprint(policy={"torch": {"numProcPerNode": 4}}), id="number-of-processes-as-a-number"),
        pytest.param(blueprint(replicated_job("node", {"name": "trainer"})), id="image-left-to-train-jobs"),
        pytest.param(blueprint(replicated_job("Node", container("a"))), id="as-the-kep-writes-it"),
        pytest.param(blueprint(replicated_job("launcher"), replicated_job("worker")), id="nobody-trains"),
        *(pytest.param(runtime, id=runtime["metadata"]["name"]) for runtime in runtimes()),
    ],
)
async def test_accepted(obj: Object) -> None:
    """What TrainJobs can be built on is accepted without a word."""
    response = await admit(obj)

    assert (response.allowed, response.message, response.warnings) == (True, "", ())


@pytest.mark.parametrize(
    ("obj", "warning"),
    [
        pytest.param(
            blueprint(policy={"mpi": {}}),
            "spec.mlPolicy.mpi: no plugin of the controller manager serves it; "
            "TrainJobs that use this runtime are refused",
            id="no-plugin-for-mpi",
        ),
        pytest.param(
            blueprint(podGroupPolicy={"coscheduling": {}}, kind="TrainingRuntime"),
            "spec.podGroupPolicy.coscheduling: no plugin of the controller manager serves it; "
            "TrainJobs that use this runtime are refused",
            id="no-plugin-for-gangs",
        ),
        pytest.param(
            DEPRECATED,
            "metadata.labels[trainer.kubeflow.org/support]: "
            "TrainJobs that use this runtime are warned that it is deprecated",
            id="deprecated",
        ),
        pytest.param(
            blueprint(replicated_job(), replicated_job("extra", step="trianer")),
            f"spec.template.spec.replicatedJobs[1].template.metadata.labels[{STEP}]: "
            "there is no step 'trianer'; known steps: trainer, dataset-initializer, model-initializer",
            id="unknown-step",
        ),
        pytest.param(
            blueprint(
                replicated_job("node", container(resources={"limits": {"nvidia.com/gpu": 8}})),
                policy={"torch": {"numProcPerNode": "2"}},
            ),
            "spec.mlPolicy.torch.numProcPerNode: starts 2 processes on a node with 8 GPUs; "
            "gpu or auto starts one for each GPU",
            id="idle-gpus",
        ),
    ],
)
async def test_accepted_with_a_warning(obj: Object, warning: str) -> None:
    """What works, but perhaps not as meant, is accepted and told."""
    response = await admit(obj)

    assert (response.allowed, response.warnings) == (True, (warning,))


@pytest.mark.parametrize("kind", ["ClusterTrainingRuntime", "TrainingRuntime"])
async def test_metadata_changes_always(kind: str) -> None:
    """Labels and finalizers change even of a runtime that would be refused today; the spec of none does."""
    old = blueprint(replicated_job(replicas=2), kind=kind)

    assert (await admit(labelled(old, a="b"), old)).allowed
    assert not (await admit(blueprint(kind=kind), old)).allowed


async def test_a_default_is_no_change() -> None:
    """A runtime that was stored without webhooks keeps its spec as it is, and so does one that is applied again."""
    bare = blueprint(policy={"torch": {"numProcPerNode": 2}})
    defaulted = blueprint(policy={"numNodes": 1, "torch": {"numProcPerNode": "2"}})

    for old, new in ((bare, bare), (defaulted, bare), (defaulted, defaulted)):
        assert (await admit(labelled(new, a="b"), old)).allowed


async def test_what_a_train_job_of_it_meets() -> None:
    """A TrainJob is refused for the fault of its runtime with the path in the runtime."""
    response = await admit(job(runtime="elastic"))

    assert response.causes[0].field == "ClusterTrainingRuntime/elastic spec.mlPolicy.torch.elasticPolicy"
