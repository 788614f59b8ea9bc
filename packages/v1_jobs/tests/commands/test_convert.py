"""`trainer convert`: objects of the other version of the API."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from trainer.cli.app import app

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: demo}
spec:
  runtimeRef: {name: torch-distributed}
  initializer: {dataset: {storageUri: "hf://d"}}
"""
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: mine}
spec:
  podGroupPolicy: {coscheduling: {}, volcano: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template: {spec: {template: {spec: {containers: [{name: node, image: mine:1}]}}}}
"""
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: token}\n"
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: other}\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files have short names."""
    monkeypatch.chdir(tmp_path)


def run(command: str, *texts: str, options: tuple[str, ...] = ()) -> Result:
    """Run a command on one file with these documents."""
    Path("f.yaml").write_text("---\n".join(texts))
    return CliRunner().invoke(app, [command, "-f", "f.yaml", *options])


def test_objects_are_converted() -> None:
    """TrainJobs and runtimes are of v2alpha1, everything else is as it was, and lint accepts the result."""
    result = run("convert", JOB, SECRET, SERVICE)
    job, secret, service = yaml.safe_load_all(result.stdout)

    assert (result.exit_code, result.stderr) == (0, "")
    assert job["apiVersion"] == "trainer.kubeflow.org/v2alpha1"
    assert job["spec"]["datasetConfig"] == {"storageUri": "hf://d"}
    assert [secret, service] == [yaml.safe_load(SECRET), yaml.safe_load(SERVICE)]
    again = run("convert", result.stdout)
    assert (again.exit_code, again.stdout) == (0, result.stdout)


def test_and_back() -> None:
    """The other way is an option; what has no counterpart is a line on standard error."""
    converted = run("convert", JOB, SECRET).stdout
    back = run("convert", converted + "---\n" + JOB, options=("--api-version", "v1alpha1"))
    first, secret, second = yaml.safe_load_all(back.stdout)

    assert (back.exit_code, back.stderr) == (0, "")
    assert first == second == yaml.safe_load(JOB)
    assert secret == yaml.safe_load(SECRET)

    job = JOB.replace("v1alpha1", "v2alpha1").replace(
        'initializer: {dataset: {storageUri: "hf://d"}}', "labels: {a: b}"
    )
    lossy = run("convert", job, options=("--api-version", "v1alpha1"))
    assert lossy.exit_code == 0
    (line,) = lossy.stderr.splitlines()
    assert line.startswith("warning: f.yaml, document 1: spec.labels: reach the JobSet alone")


def test_objects_that_were_exported() -> None:
    """What the API server and kubectl have added is left out, so that the result can be created elsewhere."""
    added = "uid: u, resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-02T03:04:05Z', managedFields: []"
    annotations = "{kubectl.kubernetes.io/last-applied-configuration: '{}', mine: x}"
    items = JOB.replace("{name: demo}", f"{{name: demo, {added}, annotations: {annotations}}}").splitlines()
    result = run(
        "convert", "\n".join(["apiVersion: v1", "kind: List", "items:", "-", *(f"  {item}" for item in items)])
    )

    assert (result.exit_code, result.stderr) == (0, "")
    assert yaml.safe_load(result.stdout)["metadata"] == {"name": "demo", "annotations": {"mine": "x"}}


def test_what_has_no_counterpart() -> None:
    """It is a line on standard error, with its path; the rest is printed."""
    result = run("convert", RUNTIME)

    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout)["spec"]["podGroupPolicy"] == {"coscheduling": {}}
    assert result.stderr == (
        "warning: f.yaml, document 1: spec.podGroupPolicy.volcano: is left out: a runtime has one gang scheduler, "
        "here coscheduling\n"
    )


def test_mistakes() -> None:
    """They are reported after all objects have been printed."""
    result = run("convert", JOB + "  trainer: {numNodes: 0}\n", SECRET)

    assert result.exit_code == 1
    assert len([*yaml.safe_load_all(result.stdout)]) == 2
    problem = "spec.trainer.numNodes: Invalid value: 0: must be at least 1"
    assert result.stderr == f"error: f.yaml, document 1 (TrainJob demo): {problem}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("- 1\n", "f.yaml, document 1: must be a Kubernetes object, got list", id="list"),
        pytest.param("a: [\n", "f.yaml, line 2, column 1: not valid YAML", id="yaml"),
    ],
)
def test_files_that_cannot_be_read(text: str, problem: str) -> None:
    """Nothing is printed, and the exit code is 2."""
    result = run("convert", text)

    assert (result.exit_code, result.stdout) == (2, "")
    assert problem in result.stderr


def test_queues_of_kueue() -> None:
    """The label of a queue is where Kueue reads it in the version, both ways, and lint has no warning of it."""
    queued = JOB.replace("{name: demo}", "{name: demo, labels: {kueue.x-k8s.io/queue-name: lab}}")
    there = run("convert", queued)
    (job,) = yaml.safe_load_all(there.stdout)
    back = run("convert", there.stdout, options=("--api-version", "v1alpha1", "--check"))

    assert (job["metadata"], job["spec"]["labels"]) == ({"name": "demo"}, {"kueue.x-k8s.io/queue-name": "lab"})
    assert (back.exit_code, back.stderr) == (0, "")
    again = run("convert", there.stdout, options=("--api-version", "v1alpha1"))
    assert yaml.safe_load(again.stdout) == yaml.safe_load(queued)


def test_lint_of_queues() -> None:
    """A label that Kueue does not read is a warning."""
    job = "apiVersion: trainer.kubeflow.org/v2alpha1\nkind: TrainJob\nspec: {runtimeRef: {name: torch-distributed}"
    label = "labels: {kueue.x-k8s.io/queue-name: lab}"
    unread = run("lint", f"{job}}}\nmetadata: {{name: demo, {label}}}\n").stdout
    read = run("lint", f"{job}, {label}}}\nmetadata: {{name: demo}}\n").stdout

    assert "warning: metadata.labels[kueue.x-k8s.io/queue-name]: has no effect" in unread
    assert read == "f.yaml, document 1 (TrainJob demo): ok\n"


def test_what_kueue_has_written() -> None:
    """A TrainJob that was exported after its admission has none of Kueue's changes."""
    entry = """\
  runtimePatches:
  - manager: kueue.x-k8s.io/manager
    trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec:
      {nodeSelector: {flavor: a}}}}}}]}}}
"""
    result = run("convert", JOB + entry)

    assert (result.exit_code, result.stdout) == (0, run("convert", JOB).stdout)
