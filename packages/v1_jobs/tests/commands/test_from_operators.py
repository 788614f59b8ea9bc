"""`trainer convert` of jobs of the Training and MPI Operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from trainer.cli.app import app
from trainer.kube.objects import Object
from trainer.kubernetes_yaml import dump


def job(name: str = "demo", **spec: Any) -> Object:
    """A PyTorchJob of one pod."""
    containers = [{"name": "pytorch", "image": "torch:1", "command": ["python", "train.py"]}]
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": {"Master": {"template": {"spec": {"containers": containers}}}}} | spec,
    }


LOSSY: dict[str, Any] = {"runPolicy": {"cleanPodPolicy": "All"}}
LOSS = (
    "spec.runPolicy.cleanPodPolicy: has no counterpart: finished pods stay with the TrainJob; "
    "spec.ttlSecondsAfterFinished deletes all of it"
)

NAME = (
    "must consist of lower-case letters, digits and -, start with a letter and end with a letter or digit; "
    "at most 63 of them"
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files have short names."""
    monkeypatch.chdir(tmp_path)


def run(*arguments: str, stdin: str | None = None) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, ["convert", *arguments], input=stdin)


def write(path: str, *objects: Object) -> str:
    """A file with these documents."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("---\n".join(dump(obj) for obj in objects))
    return path


def kinds(text: str) -> list[str]:
    """The kinds of the documents."""
    return [obj["kind"] for obj in yaml.safe_load_all(text)]


def test_a_job() -> None:
    """The runtime comes first, then the TrainJob; what is lost is a comment, and a line on standard error."""
    result = run("-f", write("f.yaml", job(**LOSSY)))

    assert result.exit_code == 0
    assert result.stderr == f"warning: f.yaml, document 1: {LOSS}\n"
    assert result.stdout.startswith(f"# {LOSS}\napiVersion: trainer.kubeflow.org/v2alpha1\n")
    assert kinds(result.stdout) == ["TrainingRuntime", "TrainJob"]
    again = run("-f", "-", stdin=result.stdout)
    assert (again.exit_code, again.stderr) == (0, "")
    assert [*yaml.safe_load_all(again.stdout)] == [*yaml.safe_load_all(result.stdout)]


def test_other_objects() -> None:
    """What stands beside a job is printed as it is."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}
    result = run("-f", write("f.yaml", secret, job(), job("other")))

    assert (result.exit_code, result.stderr) == (0, "")
    assert kinds(result.stdout) == ["Secret", "TrainingRuntime", "TrainJob", "TrainingRuntime", "TrainJob"]


def test_the_released_trainer() -> None:
    """The result may be of v1alpha1, where the training container is called node and the variables are written out."""
    result = run("-f", write("f.yaml", job()), "--api-version", "v1alpha1")
    runtime, train_job = yaml.safe_load_all(result.stdout)

    assert (result.exit_code, result.stderr) == (0, "")
    assert {runtime["apiVersion"], train_job["apiVersion"]} == {"trainer.kubeflow.org/v1alpha1"}
    (made,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert [each["name"] for each in made["template"]["spec"]["template"]["spec"]["containers"]] == ["node"]
    names = [variable["name"] for variable in train_job["spec"]["trainer"]["env"]]
    assert names == ["TRAINJOB_NAME", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "PYTHONUNBUFFERED"]


@pytest.mark.parametrize(
    ("objects", "code", "lines"),
    [
        pytest.param([job()], 0, [], id="nothing"),
        pytest.param([job(**LOSSY)], 1, [f"warning: f.yaml, document 1: {LOSS}"], id="loss"),
        pytest.param(
            [job(**LOSSY), job("1st")],
            2,
            [
                f"warning: f.yaml, document 1: {LOSS}",
                f'error: f.yaml, document 2 (PyTorchJob 1st): metadata.name: Invalid value: "1st": {NAME}',
            ],
            id="refused",
        ),
    ],
)
def test_check(objects: list[Object], code: int, lines: list[str]) -> None:
    """With --check nothing is printed but what is lost or wrong, and the exit code says which."""
    result = run("-f", write("f.yaml", *objects), "--check")

    assert (result.exit_code, result.stdout, result.stderr.splitlines()) == (code, "", lines)


def test_refused_jobs() -> None:
    """A job that the operator refuses is an error after all others have been printed."""
    result = run("-f", write("f.yaml", job(nprocPerNode="many"), job("other")))

    assert result.exit_code == 2
    assert kinds(result.stdout) == ["TrainingRuntime", "TrainJob"]
    assert result.stderr.startswith("error: f.yaml, document 1 (PyTorchJob demo): spec.nprocPerNode: Invalid value")


def test_annotations_of_another_type() -> None:
    """They are an error that names the field."""
    wrong = job()
    wrong["metadata"]["annotations"] = 5
    result = run("-f", write("f.yaml", wrong))

    assert (result.exit_code, result.stdout) == (2, "")
    rule = "metadata.annotations: Invalid value: 5: must be a mapping of fields"
    assert result.stderr == f"error: f.yaml, document 1 (PyTorchJob demo): {rule}\n"


def test_directories() -> None:
    """All files of a directory are read, and each becomes a file of the same path in another."""
    write("jobs/a.yaml", job("a"))
    write("jobs/deep/b.yml", job("b"))
    Path("jobs/README.md").write_text("no YAML: [")
    together = run("-f", "jobs")
    apart = run("-f", "jobs", "-o", "out")

    assert kinds(together.stdout) == ["TrainingRuntime", "TrainJob"] * 2
    assert (apart.exit_code, apart.stdout, apart.stderr) == (0, "", "")
    assert sorted(str(each) for each in Path("out").rglob("*.y*ml")) == ["out/a.yaml", "out/deep/b.yml"]
    assert kinds(Path("out/deep/b.yml").read_text()) == ["TrainingRuntime", "TrainJob"]


def test_output_files() -> None:
    """The result of one file goes into the file that --output names, or into one of its name in that directory."""
    write("a.yaml", job("a"))
    Path("present").mkdir()

    assert run("-f", "a.yaml", "-o", "b.yaml").exit_code == 0
    assert run("-f", "a.yaml", "-o", "present").exit_code == 0
    assert Path("b.yaml").read_text() == Path("present/a.yaml").read_text() == run("-f", "a.yaml").stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param([], "name files with --file, or jobs in the cluster, such as pytorchjob/demo", id="nothing"),
        pytest.param(["-f", "empty"], "empty: there is no YAML file in it", id="empty-directory"),
        pytest.param(["-f", "a.yaml", "-o", "a.yaml"], "--output: a.yaml is what is read", id="onto-itself"),
        pytest.param(["-f", "a.yaml", "-o", "."], "--output: a.yaml is what is read", id="into-its-directory"),
        pytest.param(
            ["-f", "a.yaml", "-f", "x/a.yaml", "-o", "out"],
            "--output: out/a.yaml would be the result of x/a.yaml and a.yaml",
            id="same-name",
        ),
        pytest.param(["."], ". is a file or directory: name it by --file (-f)", id="directory"),
        pytest.param(["demo"], "demo must be KIND/NAME, such as pytorchjob/demo", id="no-kind"),
        pytest.param(["pod/demo"], "pod/demo must be KIND/NAME, such as pytorchjob/demo", id="kind"),
        pytest.param(["pytorchjob/a/b"], "pytorchjob/a/b must be KIND/NAME", id="path"),
    ],
)
def test_wrong_arguments(arguments: list[str], problem: str) -> None:
    """They are one line, and no file is written."""
    Path("empty").mkdir()
    write("a.yaml", job("a"))
    write("x/a.yaml", job("a"))
    before = Path("a.yaml").read_text()
    result = run(*arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {problem}")
    assert Path("a.yaml").read_text() == before
    assert not Path("out").exists()


def test_other_commands_name_this_one() -> None:
    """Who hands a job of an operator to another command learns what to do with it."""
    result = CliRunner().invoke(app, ["run", "-f", write("f.yaml", job())])

    assert result.exit_code == 2
    assert "trainer convert -f FILE prints it as a TrainJob" in result.stderr


def test_render() -> None:
    """The objects of a job of an operator are rendered for a version that is named."""
    result = CliRunner().invoke(app, ["render", "-f", write("f.yaml", job(**LOSSY)), "--api-version", "v2alpha1"])

    assert result.exit_code == 0
    assert "JobSet" in kinds(result.stdout)
    assert LOSS in result.stderr


@pytest.mark.parametrize("version", ["v1alpha1", "v2alpha1"])
def test_what_admission_would_refuse(version: str) -> None:
    """A TrainJob that can have no pods with its runtime is an error, also where each of them is valid alone."""
    result = run("-f", write("f.yaml", job(nprocPerNode="gpu")), "--check", "--api-version", version)

    assert result.exit_code == 2
    assert "(TrainJob demo): spec.trainer.numProcPerNode: Invalid value" in result.stderr
    assert "must not be gpu without GPUs" in result.stderr
