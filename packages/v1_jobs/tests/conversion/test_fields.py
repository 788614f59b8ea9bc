"""No field of a job is ignored: each changes the TrainJob or its runtime, or is lost."""

from __future__ import annotations

import copy
import types
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from hack.reference.v1_fields import RUN_POLICY, SPECS
from packages.v1_jobs.tests.golden.manifests import manifests
from trainer.api.model import ApiModel
from trainer.kube.objects import Object
from trainer_v1_jobs.api.kinds import KINDS
from trainer_v1_jobs.api.reading import kind_of
from trainer_v1_jobs.conversion import Conversion, convert

JOBS = {job["metadata"]["name"]: job for jobs in manifests().values() for job in jobs}
PLAIN = {
    "kubeflow.org/v1/PyTorchJob": "torch-workers",
    "kubeflow.org/v1/JAXJob": "jax-three",
    "kubeflow.org/v1/TFJob": "tf-ps",
    "kubeflow.org/v1/XGBoostJob": "xgb-workers",
    "kubeflow.org/v1/PaddleJob": "paddle-workers",
    "kubeflow.org/v1/MPIJob": "mpi-v1-main",
    "kubeflow.org/v2beta1/MPIJob": "mpi-v2beta1-workers",
}
"""A job of each kind, whose fields are changed one by one."""


def fields(model: type[ApiModel], path: str = "") -> Iterator[str]:
    """The paths of all fields of a model that are no models themselves."""
    for name, info in model.model_fields.items():
        child = f"{path}{info.alias or name}"
        nested = [
            each for each in alternatives(info.annotation) if isinstance(each, type) and issubclass(each, ApiModel)
        ]
        if nested:
            yield from fields(nested[0], f"{child}.")
        else:
            yield child


def alternatives(annotation: Any) -> list[Any]:
    """The members of a union."""
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        return [inner for each in typing.get_args(annotation) for inner in alternatives(each)]
    if typing.get_origin(annotation) is typing.Annotated:
        return alternatives(typing.get_args(annotation)[0])
    return [annotation]


def changed(job: Object, path: str, value: Any) -> Object:
    """A job with another value of a field of its spec."""
    job = copy.deepcopy(job)
    place = job["spec"]
    *parents, last = path.split(".")
    for name in parents:
        place = place.setdefault(name, {})
    place[last] = value
    return job


def converted(job: Object) -> Conversion:
    """The conversion of a job."""
    kind = kind_of(job)
    assert kind is not None
    return convert(job, kind)


def cases() -> Iterator[Any]:
    for name, own in SPECS.items():
        for path, value in ({**own} | {f"runPolicy.{each}": value for each, value in RUN_POLICY.items()}).items():
            yield pytest.param(name, path, value, id=f"{PLAIN[name].partition('-')[0]}-{name.split('/')[1]}-{path}")


@pytest.mark.parametrize(("name", "path", "value"), [*cases()])
def test_no_field_is_ignored(name: str, path: str, value: Any) -> None:
    """A field that is set changes what is built, or is lost, with what to do instead."""
    before = JOBS[PLAIN[name]]
    if path.startswith("elasticPolicy") and before["kind"] == "PyTorchJob":
        before = changed(before, "elasticPolicy", {})
        del before["spec"]["pytorchReplicaSpecs"]["Master"]
    after = changed(before, path, value)

    was, now = converted(before), converted(after)

    assert (was.train_job, was.runtime) != (now.train_job, now.runtime) or was.findings != now.findings


def test_all_fields_have_a_case() -> None:
    """The cases are all fields of the specs, so that a field that is added needs one."""
    for (version, kind), facts in KINDS.items():
        spec = facts.model.model_fields["spec"].annotation
        assert isinstance(spec, type)
        known = {path for path in fields(spec) if path != facts.replicas_field}
        assert known == {*SPECS[f"{version}/{kind}"], *(f"runPolicy.{name}" for name in RUN_POLICY)}


@pytest.mark.parametrize("name", [pytest.param(name, id=name.partition("/")[2]) for name in PLAIN])
@pytest.mark.parametrize(
    ("member", "value"),
    [pytest.param("replicas", 4, id="replicas"), pytest.param("restartPolicy", "ExitCode", id="restarts")],
)
def test_replicas(name: str, member: str, value: Any) -> None:
    """Number and restart policy of workers change what is built."""
    before = copy.deepcopy(JOBS[PLAIN[name]])
    (field,) = (each for each in before["spec"] if each.endswith("ReplicaSpecs"))
    after = copy.deepcopy(before)
    after["spec"][field]["Worker"][member] = value

    assert (
        converted(before).runtime != converted(after).runtime
        or converted(before).train_job != converted(after).train_job
    )


POD = {
    "activeDeadlineSeconds": 9,
    "affinity": {"nodeAffinity": {}},
    "automountServiceAccountToken": False,
    "dnsPolicy": "Default",
    "enableServiceLinks": False,
    "hostIPC": True,
    "hostNetwork": True,
    "imagePullSecrets": [{"name": "a"}],
    "initContainers": [{"name": "a", "image": "b"}],
    "nodeSelector": {"a": "b"},
    "priorityClassName": "high",
    "runtimeClassName": "nvidia",
    "schedulerName": "mine",
    "securityContext": {"fsGroup": 1},
    "serviceAccountName": "a",
    "shareProcessNamespace": True,
    "terminationGracePeriodSeconds": 3,
    "tolerations": [{"operator": "Exists"}],
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway"}],
    "volumes": [{"name": "a", "emptyDir": {}}],
    "hostname": "h",
    "subdomain": "s",
    "restartPolicy": "Always",
}


@pytest.mark.parametrize("name", [pytest.param(name, id=name.partition("/")[2]) for name in PLAIN])
@pytest.mark.parametrize("member", POD)
def test_pods(name: str, member: str) -> None:
    """What the pods of all roles say is in the runtime, or lost."""
    before = JOBS[PLAIN[name]]
    after = copy.deepcopy(before)
    (field,) = (each for each in before["spec"] if each.endswith("ReplicaSpecs"))
    for role in after["spec"][field].values():
        role["template"]["spec"][member] = POD[member]

    was, now = converted(before), converted(after)

    assert was.runtime != now.runtime or was.findings != now.findings
