"""Commands for files and clusters of v1alpha1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from tests.cli.conftest import ConnectedClient
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.app import app
from trainer.kube.objects import Object
from trainer.v1alpha1.client import SERVED
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: demo}
spec:
  runtimeRef: {name: torch-distributed}
  initializer: {dataset: {storageUri: "hf://d"}}
  trainer: {numNodes: 2, env: [{name: A, value: b}]}
"""
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: mine, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 3}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: "mine:1"}]}}}
"""
OF_RUNTIME = JOB.replace("torch-distributed", "mine").replace('  initializer: {dataset: {storageUri: "hf://d"}}\n', "")
STATUS = {
    "state": "Running",
    "trainerStatus": {"progressPercentage": 40, "lastUpdatedTime": "2026-01-02T03:04:05Z"},
    "furtherConditions": [],
}


@pytest.fixture
def served() -> FakeClient:
    """A cluster that serves v1alpha1."""
    client = ConnectedClient(resources=[*SERVED.values(), JOBSETS])
    client.version = "v1alpha1"
    return client


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files have short names."""
    monkeypatch.chdir(tmp_path)


def stored(status: Object | None = None) -> Object:
    """A TrainJob as the API server has it."""
    job: Object = yaml.safe_load(JOB)
    job["metadata"] |= {"namespace": "default", "uid": "u"}
    return job | {"status": STATUS if status is None else status}


def run(arguments: str, *texts: str) -> Result:
    """Run a command; `f.yaml` has these documents."""
    Path("f.yaml").write_text("---\n".join(texts))
    return CliRunner().invoke(app, arguments)


@pytest.mark.usefixtures("cluster")
def test_get(served: FakeClient) -> None:
    """The table has state and progress, and objects are printed as the cluster stores them."""
    served.add(stored())
    header, row = run("get").stdout.splitlines()
    assert header.split()[:2] == ["NAME", "STATE"]
    assert row.split()[:2] == ["demo", "Running"]
    assert "40" in row
    assert "Running" in run("get demo").stdout
    printed = json.loads(run("get demo -o json").stdout)
    assert (printed["apiVersion"], printed["spec"]) == (SERVED[TRAIN_JOBS].api_version, stored()["spec"])
    assert yaml.safe_load(run("get -o yaml").stdout)["items"] == [printed]
    assert json.loads(run("get --state Running -o json").stdout)["items"] == [printed]
    assert json.loads(run("get --state Failed -o json").stdout)["items"] == []


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("form", ["table", "json"])
def test_watch_ends_with_the_job(served: FakeClient, form: str) -> None:
    """The conditions of Kubeflow Trainer (Go) end the watch."""
    ended = {
        "type": "Complete",
        "status": "True",
        "reason": "Done",
        "message": "",
        "lastTransitionTime": "2026-01-02T00:00:00Z",
    }
    served.add(stored({"conditions": [ended]}))
    result = run(f"get demo --watch -o {form}")
    assert (result.exit_code, "Complete" in result.stdout) == (0, True)


@pytest.mark.usefixtures("cluster")
def test_changes_and_runtimes(served: FakeClient) -> None:
    """TrainJobs are suspended and deleted, and runtimes listed."""
    served.add(stored())
    served.add(yaml.safe_load(RUNTIME))
    assert run("suspend demo").exit_code == 0
    assert [job["spec"]["suspend"] for job in served.objects(SERVED[TRAIN_JOBS])] == [True]
    assert run("runtimes").stdout.splitlines()[1].split()[:3] == ["mine", "torch", "3"]
    assert run("delete demo").exit_code == 0
    assert served.objects(SERVED[TRAIN_JOBS]) == []


@pytest.mark.usefixtures("cluster")
def test_run(served: FakeClient) -> None:
    """Documents are submitted as they were written."""
    result = run("run -f f.yaml --no-follow", OF_RUNTIME, RUNTIME)
    assert (result.exit_code, result.stderr) == (0, "")
    (job,) = served.objects(SERVED[TRAIN_JOBS])
    assert job["spec"] == yaml.safe_load(OF_RUNTIME)["spec"]
    assert len(served.objects(SERVED[CLUSTER_TRAINING_RUNTIMES])) == 1


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        pytest.param(
            [OF_RUNTIME.replace("v1alpha1", "v2alpha1")],
            "f.yaml, document 1 (TrainJob demo): apiVersion: is trainer.kubeflow.org/v2alpha1, but the cluster serves "
            "v1alpha1: trainer convert",
            id="version that the cluster does not serve",
        ),
        pytest.param([JOB.replace("numNodes", "numNode")], "did you mean numNodes?", id="unknown field"),
    ],
)
def test_nothing_is_submitted(served: FakeClient, texts: list[str], problem: str) -> None:
    """What the cluster cannot take is refused before anything is sent."""
    result = run("run -f f.yaml --no-follow", *texts)
    assert (result.exit_code, served.requests_of("create", "apply")) == (2, [])
    assert problem in result.stderr


@pytest.mark.parametrize(
    ("texts", "lines"),
    [
        pytest.param([OF_RUNTIME, RUNTIME], ["ok", "ok"], id="fine"),
        pytest.param([JOB.replace("numNodes: 2", "numNodes: x")], ["spec.trainer.numNodes: "], id="schema"),
        pytest.param(
            [JOB], ["spec.runtimeRef: Invalid value: ", "must have dataset-initializer job"], id="released rule"
        ),
        pytest.param(
            [OF_RUNTIME.replace("mine", "torch-distribute")],
            ["Did you mean torch-distributed?"],
            id="mistyped runtime",
        ),
        pytest.param([OF_RUNTIME], ["warning: ClusterTrainingRuntime mine not found"], id="runtime of the cluster"),
        pytest.param(
            [RUNTIME.replace("name: node, image", "name: other, image")],
            ["must contain the required container for the ancestor: trainer"],
            id="runtime",
        ),
    ],
)
def test_lint(texts: list[str], lines: list[str]) -> None:
    """The rules are those of admission of v1alpha1."""
    result = run("lint -f f.yaml", *texts)
    printed = result.stdout.splitlines()
    assert all(any(line in each for each in printed) for line in lines), printed
    is_fine = all(": ok" in each or ": warning: " in each for each in printed)
    assert result.exit_code == (0 if is_fine else 1)


def test_versions_are_not_mixed() -> None:
    """A cluster serves one version."""
    result = run("lint -f f.yaml", OF_RUNTIME, RUNTIME.replace("v1alpha1", "v2alpha1"))
    assert result.exit_code == 2
    assert "TrainJob demo is of v1alpha1, and a cluster serves one of them: trainer convert" in result.stderr


def test_render() -> None:
    """The objects are those that Kubeflow Trainer (Go) makes."""
    result = run("render -f f.yaml", OF_RUNTIME.replace("mine", "torch-distributed"))
    assert result.exit_code == 0, result.stderr
    (jobset,) = yaml.safe_load_all(result.stdout)
    (node,) = jobset["spec"]["replicatedJobs"]
    (container,) = node["template"]["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"containerPort": 29500, "protocol": "TCP"}]


@pytest.mark.parametrize("version", ["v1alpha1", "v2alpha1"])
def test_render_for_either_version(version: str) -> None:
    """The same TrainJob becomes what a cluster of the wanted version builds; what is lost on the way is a warning."""
    job = OF_RUNTIME.replace("mine", "torch-distributed")
    v2alpha1 = job.replace("v1alpha1", "v2alpha1") + "  ttlSecondsAfterFinished: 60\n"
    port = {"v1alpha1": 29500, "v2alpha1": 29400}[version]
    for text, lost in ((job, False), (v2alpha1, version == "v1alpha1")):
        result = run(f"render -f f.yaml --api-version {version}", text)
        assert result.exit_code == 0, result.stderr
        assert f"containerPort: {port}" in result.stdout
        assert ("spec.ttlSecondsAfterFinished: has no counterpart" in result.stderr) is lost
