"""`trainer explain -f`: what would hold a TrainJob on a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tests.cli.conftest import ConnectedClient
from tests.framework.samples import replicated_job, runtime_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.app import app
from trainer.cli.manifests import runtimes
from trainer.kube.errors import (
    ApiError,
    BadRequestError,
    ForbiddenError,
    InvalidError,
    ServiceUnavailableError,
    UnauthorizedError,
)
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import CONFIG_MAPS, PODS
from trainer.v1alpha1.client import SERVED
from trainer_kube_testing import FakeClient

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
    """A cluster with a runtime."""
    served.add(runtime_object(replicated_job("node")))
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
    """Nothing is stored; it costs a dry run of the TrainJob and of each kind of pod, and the runtime."""
    code, said = explain("-f", write(tmp_path, job()))

    assert (code, said) == (0, "TrainJob demo would run, by what is known\n")
    assert asked(blueprint) == [
        "create trainjobs",
        "get clustertrainingruntimes",
        "create pods",
    ]
    assert blueprint.objects(TRAIN_JOBS) == []
    assert blueprint.objects(PODS) == []


@pytest.mark.parametrize(
    ("spec", "message", "command"),
    [
        pytest.param(
            {"trainer": {"env": [SECRET]}},
            "Secret credentials does not exist, which containers[trainer].env[TOKEN] names",
            "kubectl get secret -n default",
            id="secret",
        ),
        pytest.param(
            {"runtimeRef": {"name": "none", "kind": "TrainingRuntime"}},
            "TrainingRuntime none does not exist, which spec.runtimeRef names",
            "trainer runtimes -n default",
            id="runtime",
        ),
    ],
)
def test_what_does_not_exist(
    blueprint: FakeClient, cluster: None, tmp_path: Path, spec: dict[str, object], message: str, command: str
) -> None:
    """It waits for what its pods or itself name, and the command lists what there is."""
    code, said = explain("-f", write(tmp_path, job(**spec)), "-o", "json")
    (cause,) = json.loads(said)["causes"]
    assert (code, cause["reason"], cause["message"], cause["command"]) == (3, "Missing", message, command)
    assert cause["remedy"] == "create it, or name one that exists"


def test_what_the_file_has_counts(blueprint: FakeClient, cluster: None, tmp_path: Path) -> None:
    """A Secret and a runtime of the file need not exist."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"}}
    own = runtime_object(replicated_job("node")) | {"metadata": {"name": "own"}}
    file = write(tmp_path, job(trainer={"env": [SECRET]}, runtimeRef={"name": "own"}), secret, own)
    assert explain("-f", file)[0] == 0


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(InvalidError(422, "spec.trainer.numNodes: no"), id="invalid"),
        pytest.param(
            ForbiddenError(403, 'trainjobs is forbidden: User "u" cannot create resource "trainjobs"'), id="no-right"
        ),
    ],
)
def test_refusals(blueprint: FakeClient, cluster: None, tmp_path: Path, error: ApiError) -> None:
    """What the cluster would not store is refused, and nothing else is asked."""
    blueprint.faults.fail(error, verb="create", resource=TRAIN_JOBS)
    code, said = explain("-f", write(tmp_path, job()))
    assert (code, asked(blueprint)) == (4, ["create trainjobs"])
    assert "TrainJob demo would be refused: Refused: the cluster refuses TrainJob demo: " in said
    assert "change what the message names" in said


def test_a_job_that_exists(blueprint: FakeClient, cluster: None, tmp_path: Path) -> None:
    """Its name is taken."""
    blueprint.add(job() | {"metadata": {"name": "demo", "namespace": "default"}})
    code, said = explain("-f", write(tmp_path, job()))
    assert code == 4
    assert "it exists already\n" in said
    assert "remedy   delete it, or give this one another name\n  more     trainer explain demo -n default" in said


def test_pods_that_are_refused(blueprint: FakeClient, cluster: None, tmp_path: Path) -> None:
    """A dry run of a pod finds what admission has against it."""
    blueprint.faults.fail(
        ForbiddenError(403, 'pods "a" is forbidden: no PriorityClass with name x was found'), resource=PODS
    )
    code, said = explain("-f", write(tmp_path, job()))
    assert code == 3
    assert "would wait: Refused: the cluster refuses Pod of node: " in said
    assert "name a PriorityClass that exists" in said


@pytest.mark.parametrize(
    ("error", "code", "note"),
    [
        pytest.param(
            ForbiddenError(403, 'pods "a" is forbidden: serviceaccount "reader" not found'),
            0,
            'not read pods by dry run: pods "a" is forbidden: serviceaccount "reader" not found',
            id="account-of-the-file",
        ),
        pytest.param(
            ForbiddenError(403, 'pods "a" is forbidden: serviceaccount "other" not found'),
            3,
            "kubectl create serviceaccount other",
            id="account-of-nobody",
        ),
        pytest.param(
            BadRequestError(400, 'admission webhook "audit.example.com" does not support dry run: it has side effects'),
            0,
            'not read pods by dry run: admission webhook "audit.example.com" does not support dry run',
            id="webhook-with-side-effects",
        ),
        pytest.param(
            ForbiddenError(403, 'pods is forbidden: User "u" cannot create resource "pods" in API group ""'),
            0,
            "not read pods by dry run: pods is forbidden",
            id="no-right",
        ),
        pytest.param(UnauthorizedError(401, "Unauthorized"), 1, "Unauthorized", id="no-credentials"),
    ],
)
def test_dry_runs_that_say_nothing(
    blueprint: FakeClient, cluster: None, tmp_path: Path, error: ApiError, code: int, note: str
) -> None:
    """What the file itself brings is not there yet, and some webhooks and roles refuse each dry run."""
    blueprint.faults.fail(error, resource=PODS, times=9)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}
    overrides = [{"targetJobs": [{"name": "node"}], "serviceAccountName": "reader"}]
    found, said = explain("-f", write(tmp_path, job(podSpecOverrides=overrides), account))
    assert found == code
    assert note in said


def test_labels_and_annotations_of_pods(blueprint: FakeClient, cluster: None, tmp_path: Path) -> None:
    """Policies see those that the pods would have."""
    own = runtime_object(replicated_job("node")) | {"metadata": {"name": "own"}}
    template = own["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["metadata"] = {"labels": {"team": "a"}, "annotations": {"cost": "b"}}
    explain("-f", write(tmp_path, job(runtimeRef={"name": "own"}), own))
    (metadata,) = (each.body["metadata"] for each in blueprint.requests if each.resource == PODS)
    assert (metadata["labels"].get("team"), metadata["annotations"].get("cost")) == ("a", "b")
    assert metadata["generateName"] == "demo-node-0-0-"


def test_many_references(blueprint: FakeClient, cluster: None, tmp_path: Path) -> None:
    """Some are read; that there are more is said, and so is what the server fails to answer."""
    blueprint.faults.fail(ServiceUnavailableError(503, "overloaded"), resource=CONFIG_MAPS, times=99)
    variables: list[Object] = [
        {"name": f"T{index}", "valueFrom": {"secretKeyRef": {"name": f"secret-{index}", "key": "k"}}}
        for index in range(22)
    ]
    variables.insert(0, {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "k"}}})
    code, said = explain("-f", write(tmp_path, job(trainer={"env": variables})))
    assert code == 3
    assert asked(blueprint).count("get secrets") == 19
    assert "not read further objects that pods name: pods name 23, and at most 20 are read" in said
    assert "not read configmaps: overloaded" in said


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch, served: FakeClient) -> FakeClient:
    """A cluster that serves the released version."""
    assert isinstance(served, ConnectedClient)
    monkeypatch.setattr(served, "version", "v1alpha1")
    for resource in (TRAIN_JOBS, CLUSTER_TRAINING_RUNTIMES):
        served.withdraw(resource)
        served.serve(SERVED[resource])
    return served


def v1alpha1_runtime() -> Object:
    return next(each for each in runtimes("v1alpha1") if name_of(each) == "torch-distributed")


def v1alpha1_job(runtime: str, **spec: object) -> Object:
    return job(runtimeRef={"name": runtime}, **spec) | {"apiVersion": "trainer.kubeflow.org/v1alpha1"}


def test_v1alpha1(released: FakeClient, cluster: None, tmp_path: Path) -> None:
    """A TrainJob of the released version, on a cluster that serves it, with a runtime as that cluster stores it."""
    released.add(v1alpha1_runtime())
    code, said = explain("-f", write(tmp_path, v1alpha1_job("torch-distributed", trainer={"env": [SECRET]})))
    assert code == 3
    assert "Missing: Secret credentials does not exist" in said.splitlines()[0]


@pytest.mark.parametrize(
    ("name", "spec", "code", "words"),
    [
        pytest.param("own", {}, 0, "would run", id="of-the-file"),
        pytest.param("other", {}, 4, "would be refused", id="of-nobody"),
        pytest.param(
            "own", {"trainer": {"env": [{"name": "PET_NNODES", "value": "9"}]}}, 4, "env", id="with-a-mistake"
        ),
    ],
)
def test_a_runtime_of_the_file_on_v1alpha1(
    released: FakeClient, cluster: None, tmp_path: Path, name: str, spec: dict[str, object], code: int, words: str
) -> None:
    """The released version refuses a TrainJob whose runtime is not there yet; what else is wrong is found here."""
    words_of_webhook = "specified clusterTrainingRuntime must be created before the TrainJob is created"
    text = f'spec.runtimeRef: Invalid value: {{"name":"{name}"}}: ClusterTrainingRuntime {name} not found: '
    released.faults.fail(InvalidError(422, text + words_of_webhook), verb="create", resource=SERVED[TRAIN_JOBS])
    own = v1alpha1_runtime()
    own["metadata"]["name"] = "own"
    found, said = explain("-f", write(tmp_path, v1alpha1_job(name, **spec), own))
    assert found == code
    assert words in said.splitlines()[0]
    if name == "own":
        assert "not read trainjobs by dry run: " in said


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
