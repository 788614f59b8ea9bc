"""The definitions of PyTorchJob and JAXJob."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from packages.v1_jobs.tests.controllers.samples import elastic_job, jax_job, pytorch_job
from tests.api.test_crds import walk
from tests.definitions import schema_of
from trainer.api.crds import stream_of
from trainer.kube.objects import Object
from trainer_v1_jobs.api.definitions import served_definitions

DEFINITIONS = {definition["spec"]["names"]["kind"]: definition for definition in served_definitions()}
FILE = Path(__file__).parents[4] / "config" / "v1" / "crd" / "kubeflow.org.yaml"
KINDS = pytest.mark.parametrize(
    ("kind", "field"),
    [
        pytest.param("PyTorchJob", "pytorchReplicaSpecs", id="PyTorchJob"),
        pytest.param("JAXJob", "jaxReplicaSpecs", id="JAXJob"),
    ],
)


def version_of(kind: str) -> Object:
    """The only version of a definition."""
    (version,) = DEFINITIONS[kind]["spec"]["versions"]
    return dict(version)


def test_config_holds_the_generated_definitions() -> None:
    """`config/v1/crd` is up to date; `trainer crds --v1-jobs > config/v1/crd/kubeflow.org.yaml` makes it so."""
    assert FILE.read_text() == stream_of(served_definitions())


@KINDS
def test_subresources_and_columns(kind: str, field: str) -> None:
    """Status and scale of the workers, and the columns of the Training Operator."""
    version = version_of(kind)
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": f".spec.{field}.Worker.replicas",
            "statusReplicasPath": ".status.replicaStatuses.Worker.active",
            "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
        },
    }
    columns = [(column["name"], column["jsonPath"]) for column in version["additionalPrinterColumns"]]
    assert columns == [("State", ".status.conditions[-1:].type"), ("Age", ".metadata.creationTimestamp")]


@pytest.mark.parametrize(
    ("kind", "field", "policy"),
    [
        pytest.param("PyTorchJob", "pytorchReplicaSpecs", "OnFailure", id="PyTorchJob"),
        pytest.param("JAXJob", "jaxReplicaSpecs", "Never", id="JAXJob"),
    ],
)
def test_defaults(kind: str, field: str, policy: str) -> None:
    """One replica, and the restart policy of the kind."""
    schema = version_of(kind)["schema"]["openAPIV3Schema"]
    replica = schema["properties"]["spec"]["properties"][field]["additionalProperties"]["properties"]
    assert (replica["replicas"]["default"], replica["restartPolicy"]["default"]) == (1, policy)


@KINDS
def test_every_field_is_described(kind: str, field: str) -> None:
    """`kubectl explain` has a sentence for each field."""
    for path, inner in walk(version_of(kind)["schema"]["openAPIV3Schema"]):
        if path and ".metadata" not in path[:9] and not path.endswith((".items", ".additionalProperties")):
            assert inner.get("description", "").endswith("."), (field, path)


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(pytorch_job(), id="PyTorchJob"),
        pytest.param(elastic_job(metrics=True), id="elastic"),
        pytest.param(jax_job(suspend=True), id="JAXJob"),
    ],
)
def test_jobs_are_accepted(job: Object) -> None:
    """What users write fits, and the rules can be evaluated."""
    schema = schema_of(DEFINITIONS[job["kind"]])
    assert schema.prune(copy.deepcopy(job)) == []
    assert schema.validate(job) == []
