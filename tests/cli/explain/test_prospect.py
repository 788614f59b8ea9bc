"""`trainer explain -f`: what would hold a TrainJob on a cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from typer.testing import CliRunner

from tests.cli.conftest import ConnectedClient
from tests.explain.samples import GPU, node
from tests.framework.samples import replicated_job, runtime_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.v1alpha1.client import SERVED
from trainer.cli.app import app
from trainer.cli.manifests import runtimes
from trainer.kube.errors import ForbiddenError, InvalidError
from trainer.kube.objects import name_of
from trainer.kube.resource import NODES, PODS

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.kube.objects import Object
    from trainer.kube.testing import FakeClient

SECRET = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "credentials", "key": "token"}}}


def job(**spec: object) -> Object:
    found: Object = {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "demo"},
        "spec": {"runtimeRef": {"name": "blueprint"}, **spec},
    }
    return found


@pytest.fixture
def blueprint(served: FakeClient) -> FakeClient:
    """A cluster with a runtime and a node."""
    served.add(runtime_object(replicated_job("node")))
    served.add(node(gpu="4"))
    return served


def write(path: Path, *objects: Object) -> str:
    file = path / "job.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


def explain(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["explain", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout + result.stderr


def asked(client: FakeClient) -> list[str]:
    return [f"{request.verb} {request.resource.plural}" for request in client.requests]


def test_nothing_would_hold_it(blueprint: FakeClient, cluster: None, tmp_path: Path) -> None:
    """Nothing is stored; it costs a dry run of the TrainJob and of each kind of pod, the runtime and three lists."""
    code, said = explain("-f", write(tmp_path, job()))

    assert (code, said) == (0, "TrainJob demo would run, as far as is known\n")
    assert asked(blueprint) == [
        "create trainjobs",
        "get clustertrainingruntimes",
        "create pods",
        "list nodes",
        "list resourcequotas",
        "list limitranges",
    ]
    assert blueprint.objects(TRAIN_JOBS) == []
    assert blueprint.objects(PODS) == []


@pytest.mark.parametrize(
    ("spec", "code", "words"),
    [
        pytest.param(
            {"trainer": {"resourcesPerNode": {"limits": {GPU: "8"}}}},
            3,
            f"would wait: Unschedulable: a pod asks for 8 of {GPU}, and the largest node",
            id="gpus",
        ),
        pytest.param({"trainer": {"env": [SECRET]}}, 3, "Missing: Secret credentials does not exist", id="secret"),
        pytest.param({"runtimeRef": {"name": "none"}}, 3, "there is no ClusterTrainingRuntime none", id="runtime"),
        pytest.param(
            {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], "nodeSelector": {"gpu": "h100"}}]},
            3,
            "the pod selects nodes by gpu in h100, and no node has this label",
            id="gpu-type",
        ),
    ],
)
def test_what_would_hold_it(
    blueprint: FakeClient, cluster: None, tmp_path: Path, spec: dict[str, object], code: int, words: str
) -> None:
    """By what the cluster has."""
    found, said = explain("-f", write(tmp_path, job(**spec)))
    assert found == code
    assert words in said.splitlines()[0]


def test_a_quota(blueprint: FakeClient, cluster: None, tmp_path: Path) -> None:
    """All pods together are compared with what is left."""
    status = {"hard": {"pods": "2"}, "used": {"pods": "1"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "default"}}
    blueprint.add(quota | {"status": status})
    code, said = explain("-f", write(tmp_path, job(trainer={"numNodes": 2})), "-o", "json")
    (cause,) = json.loads(said)["causes"]
    assert (code, cause["reason"]) == (3, "QuotaExceeded")
    assert cause["command"] == "kubectl describe resourcequota team -n default"


def test_what_the_file_has_counts(blueprint: FakeClient, cluster: None, tmp_path: Path) -> None:
    """A Secret and a runtime of the file need not exist."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"}}
    own = runtime_object(replicated_job("node")) | {"metadata": {"name": "own"}}
    file = write(tmp_path, job(trainer={"env": [SECRET]}, runtimeRef={"name": "own"}), secret, own)
    assert explain("-f", file)[0] == 0


@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        pytest.param(InvalidError(422, "spec.trainer.numNodes: no"), 4, "would be refused", id="invalid"),
        pytest.param(
            ForbiddenError(403, 'trainjobs is forbidden: User "u" cannot create resource "trainjobs"'),
            4,
            "would be refused",
            id="no-right",
        ),
    ],
)
def test_refusals(blueprint: FakeClient, cluster: None, tmp_path: Path, error: Exception, code: int, word: str) -> None:
    """What the cluster would not store is refused, and nothing else is asked."""
    assert isinstance(error, InvalidError | ForbiddenError)
    blueprint.faults.fail(error, verb="create", resource=TRAIN_JOBS)
    found, said = explain("-f", write(tmp_path, job()))
    assert (found, asked(blueprint)) == (code, ["create trainjobs"])
    assert f"TrainJob demo {word}: Refused: the cluster refuses TrainJob demo: " in said


def test_a_job_that_exists(blueprint: FakeClient, cluster: None, tmp_path: Path) -> None:
    """Its name is taken."""
    blueprint.add(job() | {"metadata": {"name": "demo", "namespace": "default"}})
    code, said = explain("-f", write(tmp_path, job()))
    assert code == 4
    assert "it exists already" in said


def test_pods_that_are_refused(blueprint: FakeClient, cluster: None, tmp_path: Path) -> None:
    """A dry run of a pod finds what admission has against it."""
    blueprint.faults.fail(
        ForbiddenError(403, 'pods "a" is forbidden: no PriorityClass with name x was found'), resource=PODS
    )
    code, said = explain("-f", write(tmp_path, job()))
    assert code == 3
    assert "would wait: Refused: the cluster refuses Pod of node: " in said
    assert "name a PriorityClass that exists" in said


def test_a_user_with_few_rights(blueprint: FakeClient, cluster: None, tmp_path: Path) -> None:
    """What could not be tried or read is named; the answer is made of the rest."""
    answer = 'pods is forbidden: User "u" cannot create resource "pods" in API group ""'
    blueprint.faults.fail(ForbiddenError(403, answer), resource=PODS)
    blueprint.faults.fail(ForbiddenError(403, "nodes is forbidden"), resource=NODES)
    code, said = explain("-f", write(tmp_path, job()))
    assert code == 0
    assert "not read pods by dry run: pods is forbidden" in said
    assert "not read nodes: nodes is forbidden" in said


def test_v1alpha1(monkeypatch: pytest.MonkeyPatch, served: FakeClient, cluster: None, tmp_path: Path) -> None:
    """A TrainJob of the released version, on a cluster that serves it, with a runtime as that cluster stores it."""
    assert isinstance(served, ConnectedClient)
    monkeypatch.setattr(served, "version", "v1alpha1")
    for resource in (TRAIN_JOBS, CLUSTER_TRAINING_RUNTIMES):
        served.withdraw(resource)
        served.serve(SERVED[resource])
    served.add(next(each for each in runtimes("v1alpha1") if name_of(each) == "torch-distributed"))
    served.add(node())
    wanted = job(runtimeRef={"name": "torch-distributed"}, trainer={"resourcesPerNode": {"limits": {GPU: "1"}}})
    code, said = explain("-f", write(tmp_path, wanted | {"apiVersion": "trainer.kubeflow.org/v1alpha1"}))
    assert code == 3
    assert f"no node that the pod may run on has {GPU}" in said.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["demo", "-f", "job.yaml"], "name a TrainJob (trainer explain NAME), or a file", id="both"),
        pytest.param([], "name a TrainJob (trainer explain NAME), or a file", id="neither"),
        pytest.param(["-f", "none.yaml"], "cannot read none.yaml", id="no-file"),
    ],
)
def test_mistakes(cluster: None, arguments: list[str], complaint: str) -> None:
    """Wrong arguments are one line."""
    code, said = explain(*arguments)
    assert (code, said.count("\n")) == (2, 1)
    assert complaint in said


def test_several_jobs(blueprint: FakeClient, cluster: None, tmp_path: Path) -> None:
    """One is explained at a time."""
    code, said = explain("-f", write(tmp_path, job(), job() | {"metadata": {"name": "other"}}))
    assert (code, said) == (2, "error: --file: has 2 TrainJobs; explain one at a time\n")
