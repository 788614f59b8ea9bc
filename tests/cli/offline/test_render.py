"""`trainer render`: the final objects without a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

import trainer
from tests.configurations import write
from tests.framework.plugin_package import GREETING, installed
from trainer.cli.app import app

JOB = """\
apiVersion: trainer.kubeflow.org/v2alpha1
kind: TrainJob
metadata: {name: demo}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 2
    command: [torchrun, train.py]
    env: [{name: EPOCHS, value: "3"}]
  podSpecOverrides:
  - targetJobs: [{name: node}]
    nodeSelector: {pool: gpu}
"""
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v2alpha1
kind: TrainingRuntime
metadata: {name: mine}
spec:
  mlPolicy: {numNodes: 3}
  template:
    spec:
      replicatedJobs:
      - name: node
        template: {spec: {template: {spec: {containers: [{name: trainer, image: mine:1}]}}}}
"""
NOTE = (
    "note: TrainJob demo builds on ClusterTrainingRuntime torch-distributed "
    f"as it comes with trainer {trainer.__version__}\n"
)


def render(tmp_path: Path, *texts: str, options: str = "") -> Result:
    """Run the command on files with these texts."""
    arguments = options.split()
    for number, text in enumerate(texts):
        file = tmp_path / f"{number}.yaml"
        file.write_text(text)
        arguments += ["-f", str(file)]
    return CliRunner().invoke(app, ["render", *arguments])


def test_shipped_runtime(tmp_path: Path) -> None:
    """A TrainJob alone builds on a runtime that we ship; standard error says so."""
    result = render(tmp_path, JOB)

    assert (result.exit_code, result.stderr) == (0, NOTE)
    jobset = yaml.safe_load(result.stdout)
    assert jobset["kind"] == "JobSet"
    annotations = {"trainer.kubeflow.org/trainer-status-reporter": "true"}
    assert jobset["metadata"] == {"name": "demo", "namespace": "default", "annotations": annotations}
    assert jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] == 2


@pytest.mark.parametrize("options", [pytest.param("", id="plain"), pytest.param("--explain", id="explain")])
def test_what_is_generated_is_not_printed(tmp_path: Path, options: str) -> None:
    """A Secret is reported, and shown without what it is for."""
    result = render(tmp_path, JOB.replace("torch-distributed", "mpi-openmpi"), options=options)

    name = "demo-mpi-ssh-auth-0000000000"
    reported = f"note: the manager generates the content of Secret {name} when it creates it, and the end of its name\n"
    assert result.exit_code == 0
    assert reported in result.stderr
    (secret,) = [obj for obj in yaml.safe_load_all(result.stdout) if obj["kind"] == "Secret"]
    assert secret.keys() == {"apiVersion", "kind", "metadata", "type", "immutable"}
    assert "PRIVATE KEY" not in result.output


def test_names_of_the_released_trainer(tmp_path: Path) -> None:
    """With v1alpha1 the name of a Secret is complete."""
    job = JOB.replace("torch-distributed", "mlx-distributed")
    result = render(tmp_path, job, options="--api-version v1alpha1")

    assert result.exit_code == 0
    assert "the content of Secret demo-mpi-ssh-auth when it creates it\n" in result.stderr


def test_runtime_of_the_files(tmp_path: Path) -> None:
    """A runtime in a file of its own, of the namespace asked for, is what its TrainJob builds on."""
    job = f"{JOB[: JOB.index('  trainer:')]}".replace(
        "{name: torch-distributed}", "{name: mine, kind: TrainingRuntime}"
    )
    result = render(tmp_path, job, RUNTIME, options="-n team")

    assert (result.exit_code, result.stderr) == (0, "")
    jobset = yaml.safe_load(result.stdout)
    assert jobset["metadata"] == {"name": "demo", "namespace": "team"}
    assert jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["completions"] == 3


def test_several_train_jobs(tmp_path: Path) -> None:
    """All TrainJobs are rendered in the order of the files; a name that the server would make up has a stand-in."""
    other = JOB.replace("name: demo", "generateName: other-")
    result = render(tmp_path, f"{other}---\n{JOB}")

    names = [document["metadata"]["name"] for document in yaml.safe_load_all(result.stdout)]
    assert names == ["other-xxxxx", "demo"]


def test_explain(tmp_path: Path) -> None:
    """Each field of the pod templates says where it comes from, and the objects are the same as without."""
    result, plain = render(tmp_path, JOB, options="--explain"), render(tmp_path, JOB)

    assert yaml.safe_load(result.stdout) == yaml.safe_load(plain.stdout)
    origins = dict(line.strip().split("  # ") for line in result.stdout.splitlines() if "  # " in line)
    assert origins["backoffLimit: 0"] == "ClusterTrainingRuntime/torch-distributed"
    assert origins["parallelism: 2"] == "TrainJob spec.trainer"
    assert origins["- command:"] == "TrainJob spec.trainer"
    assert origins["pool: gpu"] == "TrainJob spec.podSpecOverrides[0]"
    assert origins["- name: PET_NNODES"] == "plugin torch"
    assert origins["- containerPort: 29400"] == "plugin torch"
    assert origins["- name: EPOCHS"] == "TrainJob spec.trainer.env"
    assert not [line for line in result.stdout.split("template:\n")[0].splitlines() if "#" in line]


def test_third_party_plugins_take_part(tmp_path: Path) -> None:
    """What is installed and configured for the manager is rendered, and named as the origin."""
    write(tmp_path / "manager.yaml", "plugins: {configuration: {greeting: {text: hi}}}")
    with installed(tmp_path / "site", greeting=(GREETING, "Greeting")):
        result = render(tmp_path, JOB, options=f"--explain --config {tmp_path / 'manager.yaml'}")

    assert "- name: GREETING  # plugin greeting\n" in result.stdout
    assert "value: hi  # plugin greeting\n" in result.stdout


@pytest.mark.parametrize(
    ("setting", "policy", "scheduler"),
    [
        pytest.param("gangScheduling: volcano", "volcano", "volcano", id="volcano"),
        pytest.param("gangScheduling: coscheduling\ngangSchedulerName: gangs", "coscheduling", "gangs", id="named"),
        pytest.param("gangScheduling: auto", "workload", None, id="auto"),
        pytest.param("gangScheduling: none", None, None, id="none"),
    ],
)
@pytest.mark.parametrize("runtime", [pytest.param("", id="shipped"), pytest.param(RUNTIME, id="of-the-file")])
def test_gang_scheduling_by_the_setting(
    tmp_path: Path, setting: str, policy: str | None, scheduler: str | None, runtime: str
) -> None:
    """What a manager with this configuration makes, in a cluster that has what it needs; a note says why."""
    write(tmp_path / "manager.yaml", setting)
    job = JOB.replace("{name: torch-distributed}", "{name: mine, kind: TrainingRuntime}") if runtime else JOB
    result = render(tmp_path, job, *([runtime] if runtime else []), options=f"--config {tmp_path / 'manager.yaml'}")
    assert result.exit_code == 0, result.stderr
    objects = list(yaml.safe_load_all(result.stdout))
    [jobset] = [each for each in objects if each["kind"] == "JobSet"]
    pods = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert pods.get("schedulerName") == scheduler
    assert ("schedulingGroup" in pods) is (policy == "workload")
    assert [each["kind"] for each in objects if each["kind"] == "PodGroup"] == (["PodGroup"] if policy else [])
    note = (
        f"note: TrainJob demo has podGroupPolicy.{policy} by gangScheduling of the configuration, in a cluster that "
        "has what it needs\n"
    )
    assert (note in result.stderr) is (policy is not None)


def test_warnings(tmp_path: Path) -> None:
    """What admission warns of goes to standard error; what does not take part is reported as well."""
    job = JOB.replace("[torchrun, train.py]", '["torchrun a.py | tee log"]')
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n"
    result = render(tmp_path, f"{service}---\n{job}")

    assert result.exit_code == 0
    assert "warning: " in result.stderr
    assert "document 1: Service x is ignored: it has no effect on what is rendered\n" in result.stderr
    assert "document 2 (TrainJob demo): spec.trainer.command: is not run by a shell" in result.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(
            JOB.replace("numNodes: 2", "numNodes: -1"),
            "0.yaml, document 1 (TrainJob demo): spec.trainer.numNodes: Invalid value: -1: must be at least 1",
            id="schema",
        ),
        pytest.param(JOB.replace("EPOCHS", "PET_NNODES"), "document 1 (TrainJob demo): spec.trainer.env", id="plugin"),
        pytest.param("a: [", "0.yaml, line 1, column 5: not valid YAML", id="no YAML"),
        pytest.param(
            JOB.replace("torch-distributed", "nope"),
            'document 1 (TrainJob demo): spec.runtimeRef.name: Not found: "nope": there is no ClusterTrainingRuntime',
            id="no runtime",
        ),
        pytest.param(
            f"{JOB}---\n{RUNTIME.replace('numNodes: 3', 'numNodes: 0')}",
            "document 2 (TrainingRuntime mine): spec.mlPolicy.numNodes: Invalid value: 0",
            id="runtime",
        ),
        pytest.param(f"{JOB}---\n{JOB}", "0.yaml, document 2: TrainJob demo is defined twice", id="twice"),
        pytest.param(RUNTIME, "0.yaml: there is no TrainJob in it", id="no TrainJob"),
    ],
)
def test_refusals(tmp_path: Path, text: str, complaint: str) -> None:
    """What admission would refuse is refused in one line that names document, field and rule, with exit code 2."""
    result = render(tmp_path, text)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert complaint in result.stderr
