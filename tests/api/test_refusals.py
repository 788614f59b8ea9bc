"""What is wrong is refused twice: before it is sent, and by the schemas and rules that the API server has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.samples import pod_of, replicated_job, runtime, runtime_of, runtime_with, train_job
from tests.api.server import MODELS, admitted
from trainer.api.invalid_object import InvalidObjectError
from trainer.kube.objects import Object

JOB = "spec.template.spec.replicatedJobs[0]"
POD = f"{JOB}.template.spec.template"
CONTAINER = f"{POD}.spec.containers[0]"


def refusals(obj: Object) -> list[str]:
    """What strict reading says against an object."""
    try:
        MODELS[obj["kind"]].from_object(obj, strict=True)
    except InvalidObjectError as error:
        return [str(problem) for problem in error.errors]
    return []


def override(**members: Any) -> Object:
    """A TrainJob with one override."""
    return train_job(podSpecOverrides=[{"targetJobs": [{"name": "node"}]} | members])


def container_override(**members: Any) -> Object:
    """A TrainJob with an override of one container."""
    return override(containers=[{"name": "trainer"} | members])


def policy(**members: Any) -> Object:
    """A runtime with an mlPolicy."""
    return runtime(mlPolicy=members)


def job_spec(**members: Any) -> Object:
    """A runtime with settings of its Jobs."""
    obj = runtime()
    obj["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"] |= members
    return obj


def pod_spec(**members: Any) -> Object:
    """A runtime with settings of its pods."""
    return runtime_of(replicated_job({"containers": [{"name": "trainer", "image": "i"}]} | members))


def labelled(**labels: Any) -> Object:
    """A runtime with labels on its pods."""
    obj = runtime()
    pod_of(obj)["metadata"] = {"labels": labels}
    return obj


TRAIN_JOBS = [
    pytest.param(train_job(trainer={"image": "i "}), "spec.trainer.image", "white space", id="image"),
    pytest.param(
        train_job(trainer={"numProcPerNode": "2\n"}), "spec.trainer.numProcPerNode", "must be auto", id="line-break"
    ),
    pytest.param(
        override(serviceAccountName="Me"), "spec.podSpecOverrides[0].serviceAccountName", "lower-case", id="account"
    ),
    pytest.param(train_job(trainer={"args": ["a"] * 4097}), "spec.trainer.args", "Too many: 4097", id="arguments"),
    pytest.param(
        train_job(trainer={"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]}),
        "spec.trainer.env[0].valueFrom.secretKeyRef.key",
        "Required value",
        id="secret-key",
    ),
    pytest.param(
        override(volumes=[{"name": "Data", "emptyDir": {}}]),
        "spec.podSpecOverrides[0].volumes[0].name",
        "must consist of lower-case",
        id="volume-name",
    ),
    pytest.param(
        container_override(envFrom=[{"secretRef": "s"}]),
        "spec.podSpecOverrides[0].containers[0].envFrom[0].secretRef",
        "must be a mapping",
        id="env-from",
    ),
]

RUNTIMES = [
    pytest.param(
        policy(torch={"elasticPolicy": {"metrics": [{"type": "Cpu"}]}}),
        "spec.mlPolicy.torch.elasticPolicy.metrics[0].type",
        "Unsupported value",
        id="metric",
    ),
    pytest.param(
        policy(mpi={"numProcPerNode": "auto"}), "spec.mlPolicy.mpi.numProcPerNode", "must be an integer", id="mpi-auto"
    ),
    pytest.param(
        policy(mpi={"SSHAuthMountPath": ".ssh"}),
        "spec.mlPolicy.mpi.SSHAuthMountPath",
        "must be an absolute path",
        id="ssh-path",
    ),
    pytest.param(
        runtime_of(replicated_job(), successPolicy={"operator": "Most"}),
        "spec.template.spec.successPolicy.operator",
        "Unsupported value",
        id="success-operator",
    ),
    pytest.param(job_spec(backoffLimit=-1), f"{JOB}.template.spec.backoffLimit", "at least 0", id="backoff"),
    pytest.param(
        job_spec(completionMode="indexed"), f"{JOB}.template.spec.completionMode", "Unsupported value", id="completion"
    ),
    pytest.param(
        job_spec(podFailurePolicy={"rules": [{"action": "Fail"}]}),
        f"{JOB}.template.spec.podFailurePolicy.rules[0].action",
        "Unsupported value",
        id="pod-failure-policy",
    ),
    pytest.param(job_spec(template={}), f"{POD}.spec", "Required value", id="no-pod"),
    pytest.param(runtime_with(image=" i"), f"{CONTAINER}.image", "white space", id="image-with-a-space"),
    pytest.param(
        runtime_with(ports=[{"containerPort": 1, "name": "prometheus-metrics"}]),
        f"{CONTAINER}.ports[0].name",
        "Too long",
        id="long-port-name",
    ),
    pytest.param(
        runtime_with(ports=[{"containerPort": 1, "name": "Metrics"}]),
        f"{CONTAINER}.ports[0].name",
        "lower-case letters",
        id="port-name",
    ),
    pytest.param(
        runtime_with(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"key": "k"}}}]),
        f"{CONTAINER}.env[0].valueFrom.secretKeyRef.name",
        "Required value",
        id="key-of-no-secret",
    ),
    pytest.param(
        runtime_with(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "cpu"}}}]),
        f"{CONTAINER}.env[0].valueFrom.resourceFieldRef.resource",
        "limits.cpu",
        id="resource-field",
    ),
    pytest.param(
        runtime_with(securityContext={"runAsUser": -1}),
        f"{CONTAINER}.securityContext.runAsUser",
        "at least 0",
        id="user",
    ),
    pytest.param(
        pod_spec(volumes=[{"name": "v", "configMap": {}}]),
        f"{POD}.spec.volumes[0].configMap.name",
        "Required value",
        id="volume-of-no-config-map",
    ),
    pytest.param(
        pod_spec(volumes=[{"name": "v", "secret": {"secretName": ""}}]),
        f"{POD}.spec.volumes[0].secret.secretName",
        "must not be empty",
        id="volume-of-no-secret",
    ),
    pytest.param(
        pod_spec(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": ""}}]),
        f"{POD}.spec.volumes[0].persistentVolumeClaim.claimName",
        "must not be empty",
        id="volume-of-no-claim",
    ),
    pytest.param(
        pod_spec(serviceAccountName="My Account"), f"{POD}.spec.serviceAccountName", "lower-case", id="account"
    ),
    pytest.param(
        pod_spec(nodeSelector={"gpu": "yes\n"}), f"{POD}.spec.nodeSelector[gpu]", "a label value", id="line-break"
    ),
    pytest.param(
        pod_spec(ephemeralContainers=[]), f"{POD}.spec.ephemeralContainers", "Unknown field", id="ephemeral-containers"
    ),
    pytest.param(
        pod_spec(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}),
        f"{POD}.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
        "Required value",
        id="affinity",
    ),
    pytest.param(pod_spec(nodeSelector={"gpu": True}), f"{POD}.spec.nodeSelector[gpu]", "in quotes", id="selector"),
    pytest.param(runtime_with(name="Trainer"), f"{CONTAINER}.name", "must consist of lower-case", id="container-name"),
    pytest.param(runtime_with(ports=[{}]), f"{CONTAINER}.ports[0].containerPort", "Required value", id="port"),
    pytest.param(
        runtime_with(ports=[{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]),
        f"{CONTAINER}.ports[1]",
        'Duplicate value: {"containerPort":1,"protocol":"TCP"}',
        id="port-twice",
    ),
    pytest.param(
        runtime_with(env=[{"name": "DEBUG", "value": True}]), f"{CONTAINER}.env[0].value", "put it in quotes", id="env"
    ),
    pytest.param(
        runtime_with(resources={"limits": {"cpu": 1.5}}), f"{CONTAINER}.resources.limits[cpu]", "in quotes", id="float"
    ),
    pytest.param(
        runtime_with(livenessProbe={"httpGet": {"path": "/"}}),
        f"{CONTAINER}.livenessProbe.httpGet.port",
        "Required value",
        id="probe",
    ),
    pytest.param(
        runtime_with(securityContext={"runAsUser": "root"}),
        f"{CONTAINER}.securityContext.runAsUser",
        "must be an integer",
        id="security-context",
    ),
    pytest.param(
        runtime_of(replicated_job(), volumeClaimPolicies=[{"templates": [{"spec": {}}]}]),
        "spec.template.spec.volumeClaimPolicies[0].templates[0].metadata",
        "Required value",
        id="claim-template",
    ),
]


@pytest.mark.parametrize(("obj", "path", "text"), TRAIN_JOBS + RUNTIMES)
def test_refused_by_reader_and_server(obj: Object, path: str, text: str) -> None:
    """Both name the same field; what we say is in plain words."""
    ours = refusals(obj)
    assert any(line.startswith(f"{path}: ") and text in line for line in ours), ours
    theirs = admitted(obj)
    as_server = (
        path.replace("[cpu]", ".cpu").replace("[team]", ".team").replace("[gpu]", ".gpu").replace("[app]", ".app")
    )
    assert any(line.startswith(f"{as_server}: ") for line in theirs), theirs


@pytest.mark.parametrize(("obj", "path", "text"), RUNTIMES)
def test_both_kinds_of_runtimes_refuse_alike(obj: Object, path: str, text: str) -> None:
    """A TrainingRuntime is checked as a ClusterTrainingRuntime is."""
    namespaced = obj | {"kind": "TrainingRuntime"}
    assert refusals(namespaced) == refusals(obj)
    assert admitted(namespaced) == admitted(obj)


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(train_job(), id="shortest"),
        pytest.param(train_job(datasetConfig={"storageUri": ""}), id="no-uri"),
        pytest.param(train_job(trainer={"numProcPerNode": "8"}), id="number-as-text"),
        pytest.param(train_job(trainer=None, labels={}), id="null-is-absent"),
        pytest.param(override(tolerations=[{"operator": "Exists", "effect": ""}]), id="empty-effect"),
        pytest.param(runtime(), id="runtime"),
        pytest.param(runtime("TrainingRuntime"), id="namespaced-runtime"),
        pytest.param(runtime_with(env=[{"name": "MASTER_PORT", "value": 29400}]), id="number-in-env"),
        pytest.param(
            runtime_with(resources={"limits": {"cpu": 2, "memory": "4Gi", "nvidia.com/gpu": "1"}}), id="amounts"
        ),
        pytest.param(runtime_with(command=None, env=None), id="nulls-in-a-container"),
        pytest.param(runtime_of(replicated_job(name="Node")), id="capital-letters"),
        pytest.param(
            policy(torch={"elasticPolicy": {"minNodes": 5, "maxNodes": 10, "metrics": [{"type": "Resource"}]}}),
            id="elastic",
        ),
    ],
)
def test_accepted_by_reader_and_server(obj: Object) -> None:
    """What one accepts the other accepts too."""
    assert refusals(obj) == []
    assert admitted(obj) == []
