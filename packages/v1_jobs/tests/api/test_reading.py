"""Jobs of the Training and MPI Operator are read as the operators do."""

from __future__ import annotations

from typing import Any

import pytest

from packages.v1_jobs.tests.golden.manifests import manifests
from trainer.api.invalid_object import InvalidObjectError
from trainer.kube.objects import Object
from trainer_v1_jobs.api.kinds import KINDS, PyTorchJob
from trainer_v1_jobs.api.reading import kind_of, normalised, read_job

POD = {"spec": {"containers": [{"name": "pytorch", "image": "torch:1"}]}}


def job(roles: Any = None, name: str = "demo", **spec: Any) -> Object:
    """A PyTorchJob."""
    roles = {"Master": {"template": POD}} if roles is None else roles
    metadata = {"name": name}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": metadata,
        "spec": {"pytorchReplicaSpecs": roles} | spec,
    }


def read(obj: Object) -> Any:
    """The model of a job."""
    kind = kind_of(obj)
    assert kind is not None
    return read_job(normalised(obj, kind), kind)


@pytest.mark.parametrize(
    "obj", [pytest.param(each, id=each["metadata"]["name"]) for jobs in manifests().values() for each in jobs]
)
def test_jobs(obj: Object) -> None:
    """All jobs that the operators take are read, strictly."""
    assert read(obj).to_object()["spec"]


def test_what_the_operator_ignores() -> None:
    """Roles may be written in any case; restart policy and name of a pod template, and the status, may be any."""
    template = {"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": POD["spec"] | {"restartPolicy": "Always"}}
    found = read(job({"master": {"template": template}}) | {"status": {"anything": 1}})

    assert isinstance(found, PyTorchJob)
    assert [*found.spec.pytorch_replica_specs] == ["Master"]


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param({"apiVersion": "v1", "kind": "Pod"}, id="pod"),
        pytest.param({"apiVersion": "kubeflow.org/v1", "kind": "TrainJob"}, id="kind"),
        pytest.param({"apiVersion": ["kubeflow.org/v1"], "kind": {}}, id="types"),
        pytest.param("PyTorchJob", id="text"),
        pytest.param({}, id="empty"),
    ],
)
def test_other_kinds(obj: Any) -> None:
    """Everything else is of no kind."""
    assert kind_of(obj) is None


@pytest.mark.parametrize(
    ("obj", "error"),
    [
        pytest.param(job({}), "spec.pytorchReplicaSpecs: Required value: name at least one role", id="no-role"),
        pytest.param(
            job({"Chief": {"template": POD}}), 'spec.pytorchReplicaSpecs: Unsupported value: "Chief"', id="role"
        ),
        pytest.param(
            job({"Worker": {"template": POD}, "worker": {"template": POD}}),
            'spec.pytorchReplicaSpecs[Worker]: Duplicate value: "Worker"',
            id="role-twice",
        ),
        pytest.param(
            job({"Master": {"template": POD, "replicas": 2}}),
            "spec.pytorchReplicaSpecs[Master].replicas: Invalid value: 2: must be 1",
            id="masters",
        ),
        pytest.param(
            job({"Worker": {"template": POD, "replicas": 0}}),
            "spec.pytorchReplicaSpecs[Worker].replicas: Invalid value: 0: must be at least 1",
            id="no-worker",
        ),
        pytest.param(
            job({"Worker": {"template": POD, "replicas": 2**31 - 1}}),
            "spec.pytorchReplicaSpecs: Invalid value: 2147483647: must have at most 100000 replicas",
            id="too-many-pods",
        ),
        pytest.param(job(name="1st"), 'metadata.name: Invalid value: "1st"', id="name"),
        pytest.param(job(name="a" * 64), "metadata.name: Invalid value", id="long-name"),
        pytest.param(
            job({"Master": {"template": {"spec": {"containers": [{"name": "main", "image": "a"}]}}}}),
            "spec.pytorchReplicaSpecs[Master].template.spec.containers: Required value: one must be called pytorch",
            id="container",
        ),
        pytest.param(
            job({"Master": {"template": {"spec": {"containers": [{"name": "pytorch"}]}}}}),
            "spec.pytorchReplicaSpecs[Master].template.spec.containers[pytorch].image: Required value",
            id="image",
        ),
        pytest.param(
            job(elasticPolicy={}),
            "spec.pytorchReplicaSpecs[Worker]: Required value: an elastic PyTorchJob",
            id="elastic",
        ),
        pytest.param(
            job({"Worker": {"template": POD}}, elasticPolicy={"minReplicas": 3, "maxReplicas": 2}),
            "spec.elasticPolicy.minReplicas: Invalid value: 3: must not be greater than maxReplicas, which is 2",
            id="bounds",
        ),
        pytest.param(
            job({"Worker": {"template": POD}}, nprocPerNode="auto", elasticPolicy={"nProcPerNode": 2}),
            "spec.elasticPolicy.nProcPerNode: Forbidden",
            id="processes-twice",
        ),
        pytest.param(job(nprocPerNode="many"), 'spec.nprocPerNode: Invalid value: "many"', id="processes"),
        pytest.param(job(runPolicy={"suspended": True}), "spec.runPolicy.suspended: Unknown field", id="field"),
        pytest.param(
            job(runPolicy={"managedBy": "me"}), 'spec.runPolicy.managedBy: Unsupported value: "me"', id="manager"
        ),
        pytest.param(
            job({"Master": {"template": POD, "restartPolicy": "Sometimes"}}),
            "spec.pytorchReplicaSpecs[Master].restartPolicy: Unsupported value",
            id="restart-policy",
        ),
        pytest.param(job({"Master": {}}), "spec.pytorchReplicaSpecs[Master].template: Required value", id="template"),
        pytest.param({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}, "spec: Required value", id="empty"),
        pytest.param(job("Master"), "spec.pytorchReplicaSpecs: Invalid value", id="type"),
    ],
)
def test_refusals(obj: Object, error: str) -> None:
    """What the operators refuse is refused with the field and the rule."""
    with pytest.raises(InvalidObjectError) as caught:
        read(obj)

    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "role", "container"),
    [
        pytest.param("XGBoostJob", "Master", "xgboost", id="xgboost"),
        pytest.param("JAXJob", "Worker", "jax", id="jax"),
        pytest.param("MPIJob", "Launcher", "any", id="mpi"),
    ],
)
def test_roles_that_must_be_there(kind: str, role: str, container: str) -> None:
    """A job without the role on which it depends is refused."""
    found = KINDS["kubeflow.org/v1", kind]
    obj = {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "demo"},
        "spec": {found.replicas_field: {}},
    }

    with pytest.raises(InvalidObjectError, match=rf"\[{role}\]: Required value"):
        read(obj)

    template = {"spec": {"containers": [{"name": container, "image": "a"}]}}
    assert read(obj | {"spec": {found.replicas_field: {role: {"template": template}}}})


def test_two_chiefs() -> None:
    """Chief and Master of a TFJob are two names of one role."""
    template = {"spec": {"containers": [{"name": "tensorflow", "image": "a"}]}}
    obj = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "demo"},
        "spec": {"tfReplicaSpecs": {"Chief": {"template": template}, "Master": {"template": template}}},
    }

    with pytest.raises(InvalidObjectError, match="must not have both"):
        read(obj)
