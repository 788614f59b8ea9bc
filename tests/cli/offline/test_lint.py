"""`trainer lint`: admission's checks without a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.configurations import write
from trainer.cli.app import app

JOB = """\
apiVersion: trainer.kubeflow.org/v2alpha1
kind: TrainJob
metadata: {name: demo}
spec:
  runtimeRef: {name: torch-distributed}
"""
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v2alpha1
kind: ClusterTrainingRuntime
metadata: {name: mine}
spec:
  template:
    spec:
      replicatedJobs:
      - name: node
        template: {spec: {template: {spec: {containers: [{name: trainer, image: mine:1}]}}}}
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files have short names."""
    monkeypatch.chdir(tmp_path)


def lint(**texts: str) -> Result:
    """Run the command on files with these names and texts."""
    arguments = []
    for name, text in texts.items():
        Path(f"{name}.yaml").write_text(text)
        arguments += ["-f", f"{name}.yaml"]
    return CliRunner().invoke(app, ["lint", *arguments])


def ends(result: Result) -> list[str]:
    """What each line says last."""
    return [line.rpartition(": ")[2] for line in result.stdout.splitlines()]


def test_nothing_to_say() -> None:
    """Of good files each object is ok, and the exit code 0."""
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: script}\n"
    result = lint(job=JOB, runtime=f"{RUNTIME}---\n{config_map}")

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "job.yaml, document 1 (TrainJob demo): ok",
        "runtime.yaml, document 1 (ClusterTrainingRuntime mine): ok",
        "runtime.yaml, document 2 (ConfigMap script): ok",
    ]


V1_JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: mnist}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 2, maxRestarts: 3}
  pytorchReplicaSpecs:
    Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: mine:1}]}}}
"""


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        pytest.param(V1_JOB, 0, "ok", id="right"),
        pytest.param(
            V1_JOB.replace("maxRestarts: 3", "rdzvBackend: etcd"),
            0,
            "warning: spec.elasticPolicy.rdzvBackend: finds no server",
            id="lost",
        ),
        pytest.param(
            "\n".join(line for line in V1_JOB.splitlines() if "elasticPolicy" not in line),
            0,
            "warning: spec.pytorchReplicaSpecs[Worker]: become nodes of one training",
            id="no-master",
        ),
        pytest.param(V1_JOB.replace("replicas: 2", "replica: 2"), 1, "spec.pytorchReplicaSpecs", id="typo"),
        pytest.param(V1_JOB.replace("mnist", "Mnist"), 1, "metadata.name: Invalid value", id="name"),
        pytest.param(
            V1_JOB.replace("PyTorchJob", "TFJob"),
            0,
            "warning: is not checked: trainer convert -f FILE prints it as a TrainJob, which is checked",
            id="of-another-kind",
        ),
    ],
)
def test_v1_jobs(text: str, code: int, expected: str) -> None:
    """PyTorchJobs and JAXJobs are checked as by the webhook of a manager that serves them."""
    result = lint(jobs=text)
    assert result.exit_code == code
    assert result.stdout.partition("): ")[2].startswith(expected)


def test_v1_jobs_beside_train_jobs_of_v1alpha1() -> None:
    """They are checked for the version of the TrainJobs in the files."""
    result = lint(jobs=f"{V1_JOB}---\n{JOB.replace('v2alpha1', 'v1alpha1')}")
    assert "PyTorchJob mnist): warning: spec.elasticPolicy: has no counterpart: " in result.stdout


def test_findings() -> None:
    """Everything that is wrong is reported in the order of files and documents, whatever kind of mistake it is."""
    wrong = JOB.replace("torch-distributed}", "torch-distributed}\n  trainer: {numNodes: -1, numNode: 2}")
    missing = JOB.replace("torch-distributed", "nope").replace("demo", "waiting")
    unfit = JOB.replace("demo", "unfit").replace(
        "torch-distributed}", "mine}\n  trainer: {numProcPerNode: 2, command: ['a | b']}"
    )
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n"
    bad_runtime = RUNTIME.replace("name: mine", "name: bad").replace("containers:", "containerz:")
    result = lint(
        jobs=f"{wrong}---\n{missing}---\n{unfit}---\n{service}---\nkind: TrainJob\n--- [",
        runtimes=f"{RUNTIME}---\n{bad_runtime}---\n{RUNTIME}",
    )

    assert result.exit_code == 1
    assert not result.stderr
    starts = [
        "jobs.yaml, document 1 (TrainJob demo): spec.trainer.numNode: Unknown field: did you mean numNodes?",
        "jobs.yaml, document 1 (TrainJob demo): spec.trainer.numNodes: Invalid value: -1: must be at least 1",
        "jobs.yaml, document 2 (TrainJob waiting): warning: spec.runtimeRef.name: there is no Clus",
        "jobs.yaml, document 3 (TrainJob unfit): spec.trainer.numProcPerNode: ",
        "jobs.yaml, document 3 (TrainJob unfit): warning: spec.trainer.command: is not run by a shell",
        "jobs.yaml, document 4 (Service x): warning: is not checked: its kind is unknown to trainer",
        "jobs.yaml, document 5: apiVersion: Required value",
        "jobs.yaml, line ",
        "runtimes.yaml, document 2 (ClusterTrainingRuntime bad): spec.template.spec.replicatedJobs[0].temp",
        "runtimes.yaml, document 3: ClusterTrainingRuntime mine is defined twice",
    ]
    lines = result.stdout.splitlines()
    for start in starts:
        assert any(line.startswith(start) for line in lines), start
    places = [line.split(",")[0] for line in lines]
    assert places == sorted(places), "file by file"


def test_runtimes_come_from_any_file() -> None:
    """A TrainJob is checked against the runtime of a later file, which wins over one that we ship."""
    job = JOB.replace("torch-distributed}", "torch-distributed}\n  podSpecOverrides: [{targetJobs: [{name: worker}]}]")
    runtime = RUNTIME.replace("name: mine", "name: torch-distributed").replace("name: node", "name: worker")

    assert 'Not found: "worker"' in lint(job=job).stdout
    assert set(ends(lint(job=job, runtime=runtime))) == {"ok"}


def test_namespaces() -> None:
    """Objects that name no namespace are in the one asked for, where their runtime has to be."""
    job = JOB.replace("{name: torch-distributed}", "{name: mine, kind: TrainingRuntime}")
    runtime = RUNTIME.replace("Cluster", "").replace("{name: mine}", "{name: mine, namespace: team}")
    Path("both.yaml").write_text(f"{job}---\n{runtime}")

    assert (
        "there is no TrainingRuntime mine in namespace default" in CliRunner().invoke(app, "lint -f both.yaml").stdout
    )
    assert ends(CliRunner().invoke(app, "lint -f both.yaml -n team")) == ["ok", "ok"]


def test_json() -> None:
    """Programs get place, object, severity, field and message apart."""
    result = CliRunner().invoke(app, "lint -f - -o json", input=JOB + "  suspend: maybe\n")

    assert result.exit_code == 1
    assert json.loads(result.stdout) == [
        {
            "place": "standard input, document 1",
            "subject": "TrainJob demo",
            "severity": "error",
            "field": "spec.suspend",
            "message": 'Invalid value: "maybe": must be true or false',
        }
    ]
    assert json.loads(CliRunner().invoke(app, "lint -f - -o json", input=JOB).stdout) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param("-f nope.yaml", "cannot read nope.yaml: No such file", id="missing"),
        pytest.param("-f empty.yaml", "empty.yaml: there is no document in it", id="empty"),
        pytest.param("", "Missing option '--file'", id="no file"),
        pytest.param("-f job.yaml -o xml", "'--output'", id="format"),
        pytest.param("-f job.yaml --config nope", "cannot read nope", id="no configuration"),
        pytest.param("-f job.yaml --config bad.yaml", 'plugins.disabled[0]: Unsupported value: "x"', id="plugins"),
        pytest.param("-f placed.yaml -n other", "metadata.namespace is team, but --namespace is other", id="place"),
    ],
)
def test_bad_input(tmp_path: Path, arguments: str, complaint: str) -> None:
    """What keeps the command from checking anything is one line on standard error, with exit code 2."""
    (tmp_path / "empty.yaml").write_text("---\n")
    (tmp_path / "job.yaml").write_text(JOB)
    write(tmp_path / "bad.yaml", "plugins: {disabled: [x]}")
    (tmp_path / "placed.yaml").write_text(JOB.replace("name: demo", "name: demo, namespace: team"))
    result = CliRunner().invoke(app, f"lint {arguments}")

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert complaint in result.stderr


NAMESPACED = RUNTIME.replace("ClusterTrainingRuntime", "TrainingRuntime")


@pytest.mark.parametrize(
    ("runtime", "code", "finding"),
    [
        pytest.param("torch-distribted", 1, "Did you mean torch-distributed?", id="mistyped-shipped"),
        pytest.param("min", 1, "Did you mean mine?", id="mistyped-of-a-file"),
        pytest.param(
            "namespaced",
            1,
            "There is a TrainingRuntime namespaced: set spec.runtimeRef.kind to TrainingRuntime",
            id="kind-forgotten",
        ),
        pytest.param("namespacd, kind: TrainingRuntime", 1, "Did you mean namespaced?", id="in-the-namespace"),
        pytest.param(
            "torch-distributed, kind: TrainingRuntime",
            1,
            "There is a ClusterTrainingRuntime torch-distributed: set spec.runtimeRef.kind to ClusterTrainingRuntime",
            id="wrong-kind",
        ),
        pytest.param("torch-distributed-a100", 0, "yet; the TrainJob waits until there is one. There are ", id="other"),
        pytest.param("mine", 0, "ok", id="of-a-file"),
        pytest.param("namespaced, kind: TrainingRuntime", 0, "ok", id="of-a-file-in-the-namespace"),
    ],
)
def test_runtimes_that_are_not_known(runtime: str, code: int, finding: str) -> None:
    """A name that is most likely a mistake is an error; one that the cluster may have is a warning."""
    job = JOB.replace("torch-distributed", runtime)
    result = lint(job=job, runtimes=f"{RUNTIME}---\n{NAMESPACED.replace('name: mine', 'name: namespaced')}")

    assert result.exit_code == code
    line, *runtimes = result.stdout.splitlines()
    assert finding in line
    assert line.startswith("job.yaml, document 1 (TrainJob demo): ")
    assert [each.rpartition(": ")[2] for each in runtimes] == ["ok", "ok"]


def test_schema_of_released_runtimes() -> None:
    """Rules of the definitions of v1alpha1 are errors here as in the API server."""
    result = lint(
        runtime="""\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: mine}
spec: {mlPolicy: {torch: {}, mpi: {}}}
"""
    )
    assert result.exit_code == 1
    assert "spec.mlPolicy: Invalid value: Only one of the policy" in result.stdout
    assert "warning" not in result.stdout
