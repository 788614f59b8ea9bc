"""`trainer run SCRIPT`, by its command line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from tests.cli.conftest import ConnectedClient
from tests.cli.run.test_code_source import git
from trainer.api.trainjob import GIT_REVISION, TRAIN_JOBS
from trainer.cli.app import app
from trainer.cli.manifests import runtimes
from trainer.kube.errors import InvalidError
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS
from trainer.v1alpha1.client import SERVED
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: FakeClient) -> None:
    """A script for torch, and a cluster with the runtimes that we ship."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import torch, model")
    Path("model.py").write_text("")
    for runtime in runtimes("v1alpha1" if getattr(served, "version", "") == "v1alpha1" else "v2alpha1"):
        served.add(runtime)


def run(arguments: str) -> Result:
    return CliRunner().invoke(app, f"run {arguments}")


def only(client: FakeClient, resource: object) -> Object:
    (obj,) = client.objects(resource)  # type: ignore[arg-type]
    return obj


def test_submit(served: FakeClient) -> None:
    """The ConfigMap is there before the TrainJob, and belongs to it afterwards."""
    result = run("train.py --nodes 2 --name demo --no-follow --env A=1 -- --epochs 3")

    assert (result.exit_code, result.stderr) == (0, "")
    packed, created = result.stdout.splitlines()
    assert packed.startswith("packed model.py and train.py (19 bytes) ")
    assert packed.endswith(" for TrainJob demo with runtime torch-distributed")
    assert created == "trainjob.trainer.kubeflow.org/demo created"
    writes = [(each.verb, each.resource) for each in served.requests_of("create", "patch")]
    assert [resource for _, resource in writes] == [CONFIG_MAPS, TRAIN_JOBS, CONFIG_MAPS]
    job, code = only(served, TRAIN_JOBS), only(served, CONFIG_MAPS)
    (owner,) = code["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("TrainJob", "demo", job["metadata"]["uid"])
    trainer = job["spec"]["trainer"]
    assert (trainer["command"][-2:], trainer["args"]) == (["torchrun", "train.py"], ["--epochs", "3"])
    (override,) = job["spec"]["podSpecOverrides"]
    assert override["volumes"][0]["configMap"]["name"] == code["metadata"]["name"]


def test_revision(served: FakeClient, tmp_path: Path) -> None:
    """Code of a git repository says its commit, and whether what is sent differs from it."""
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "train.py")
    git(tmp_path, "commit", "--quiet", "-m", "x")

    assert run("train.py --name demo --no-follow").exit_code == 0

    revision = only(served, TRAIN_JOBS)["metadata"]["annotations"][GIT_REVISION]
    assert revision == f"{git(tmp_path, 'rev-parse', 'HEAD')}-dirty"  # model.py is not in the commit


def test_mpi(served: FakeClient) -> None:
    """A script with mpi4py is started by it."""
    Path("ranks.py").write_text("from mpi4py import MPI")
    run("ranks.py --no-follow")
    assert only(served, TRAIN_JOBS)["spec"]["trainer"]["command"][-4:] == ["python3", "-m", "mpi4py", "ranks.py"]


@pytest.mark.parametrize("arguments", ["--dry-run", "-o yaml"])
def test_print(served: FakeClient, arguments: str) -> None:
    """The printed objects are those of the submission, so that they can be kept; --dry-run sends nothing."""
    result = run(f"train.py --name demo {arguments}")

    code, job = yaml.safe_load_all(result.stdout)
    assert (result.exit_code, job["kind"], code["kind"]) == (0, "TrainJob", "ConfigMap")
    assert job["spec"]["podSpecOverrides"][0]["volumes"][0]["configMap"]["name"] == code["metadata"]["name"]
    assert "packed model.py" in result.stderr
    assert bool(served.requests_of("create", "patch", "apply")) is (arguments == "-o yaml")


def test_suspend() -> None:
    """A suspended TrainJob is not followed."""
    result = run("train.py --name demo --suspend")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "demo is suspended: trainer resume demo starts it")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param("", "name a script to train with", id="nothing"),
        pytest.param(
            "train.py --epochs 3", "follow after --: trainer run SCRIPT -- --epochs", id="option of the script"
        ),
        pytest.param("missing.py", "there is no script missing.py\n", id="no script"),
        pytest.param("binray.py", "there is no script binray.py: did you mean binary.py?\n", id="mistyped script"),
        pytest.param("./data/../bnary.py", "did you mean data/../binary.py?\n", id="mistyped path"),
        pytest.param(".", ". is a folder: name the script in it", id="a folder"),
        pytest.param("job.yaml", "trainer run -f job.yaml submits the TrainJobs in it", id="a file of TrainJobs"),
        pytest.param("README", "must end in .py", id="no Python"),
        pytest.param("binary.py", "binary.py is no Python script: it has zero bytes", id="binary"),
        pytest.param("train.py -f job.yaml", "--file: must not be given together with a script", id="both"),
        pytest.param("-f job.yaml --nodes 2", "--nodes: is for scripts", id="option of scripts"),
        pytest.param("-f job.yaml --procs 2", "--procs: is for scripts", id="option of another name"),
        pytest.param("train.py --folder data", "train.py is not in the folder", id="not in the folder"),
        pytest.param("train.py --folder none", "--folder: there is no folder none", id="no folder"),
        pytest.param("ignored.py --folder .", "ignored.py is ignored in", id="ignored"),
        pytest.param("both.py", "choose with --runtime NAME", id="two frameworks"),
        pytest.param("train.py --runtime torch", "has no runtime torch: did you mean torch-distributed", id="runtime"),
        pytest.param("train.py -- \udcff", r"SCRIPT [-- ARGS]: \udcff must be text in UTF-8", id="no UTF-8"),
        pytest.param("train.py --name Demo", "--name: Demo", id="name"),
        pytest.param("train.py --env 1=2", "--env: 1: must be NAME=VALUE", id="env"),
        pytest.param("train.py --code-from https://x", "--code-from: must be git+https", id="code"),
        pytest.param("../x.py --code-from git+https://x/y@" + "0" * 40, "must be a path in the repo", id="path"),
        pytest.param("x.py --code-from git+https://x/y@" + "0" * 40, "--runtime: must be given", id="unread script"),
        pytest.param("train.py --suspend --queue a", "--suspend: must not be given together with --queue", id="queue"),
        pytest.param("train.py --stall-after soon", "--stall-after: soon is not a duration", id="stall"),
        pytest.param("train.py --folder . --code-from git+https://x/y@1", "--folder: must not be", id="two sources"),
        pytest.param("train.py --image ' a'", "spec.trainer.image", id="what admission refuses"),
    ],
)
def test_bad_input(served: FakeClient, arguments: str, problem: str) -> None:
    """A mistake ends with one line and exit code 2, and nothing is sent."""
    Path("data").mkdir()
    for name in ("README", "job.yaml", "ignored.py"):
        Path(name).write_text("")
    Path("both.py").write_text("import jax, torch")
    Path("binary.py").write_bytes(b"\x7fELF\0\0")
    Path(".trainerignore").write_text("/ignored.py")

    result = run(f"{arguments} --no-follow")

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert problem in result.stderr
    assert not served.requests_of("create", "apply", "patch")


def test_module_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with one line that names the module."""
    read = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        if path.name == "model.py":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    result = run("train.py")
    assert (result.exit_code, result.stderr) == (2, "error: model.py cannot be read: Permission denied\n")


def test_report() -> None:
    """A script that reports its progress, and has no report.py beside it, gets ours beside it."""
    Path("src").mkdir()
    Path("src/main.py").write_text("import torch; from report import report")

    def packed(arguments: str) -> str:
        return run(f"src/main.py --dry-run {arguments}").stderr.partition(" (")[0]

    assert packed("") == "note: packed main.py and report.py"
    assert packed("--folder .") == "note: packed model.py, src/main.py, src/report.py and train.py"
    Path("src/report.py").write_text("")
    assert packed("--folder src") == "note: packed main.py and report.py"


def test_warnings() -> None:
    """What may be meant is only warned of."""
    Path("broken.py").write_text("import torch\nprint 1")
    Path(".env").write_text("TOKEN=hidden")
    Path("pyproject.toml").write_text('[project]\ndynamic = ["dependencies"]')

    result = run("broken.py --folder . --no-follow --name demo")

    assert result.exit_code == 0
    assert "warning: broken.py cannot be parsed here (line 2: " in result.stderr
    assert "warning: not packed, because by their names they hold secrets: .env; " in result.stderr
    assert "a line !.env in .trainerignore packs .env all the same" in result.stderr
    assert "warning: pyproject.toml has its dependencies in project.dynamic, so that none of them" in result.stderr
    assert "hidden" not in result.output


def test_no_train_job_no_code(served: FakeClient) -> None:
    """When the TrainJob is refused, its ConfigMap is deleted again."""
    served.faults.fail(InvalidError(422, "spec.x: no"), verb="create", resource=TRAIN_JOBS)

    result = run("train.py --name demo --no-follow")

    assert (result.exit_code, "spec.x: no" in result.stderr) == (2, True)
    assert served.objects(CONFIG_MAPS) == []


def test_name_that_is_taken(served: FakeClient) -> None:
    """A second TrainJob of the name changes nothing."""
    run("train.py --name demo --no-follow")
    Path("train.py").write_text("import torch # changed")
    before = served.objects(CONFIG_MAPS)

    result = run("train.py --name demo --no-follow")

    assert (result.exit_code, "TrainJob demo exists already" in result.stderr) == (2, True)
    assert served.objects(CONFIG_MAPS) == before


def test_code_that_is_there(served: FakeClient) -> None:
    """A ConfigMap that somebody has applied is used and stays his; one whose TrainJob has gone is made anew."""
    code, _ = yaml.safe_load_all(run("train.py --name demo --dry-run").stdout)
    served.add(code)
    assert run("train.py --name demo --no-follow").exit_code == 0
    assert "ownerReferences" not in only(served, CONFIG_MAPS)["metadata"]


def test_kept_file(served: FakeClient) -> None:
    """What --dry-run has printed is submitted like the script: the code belongs to the TrainJob, or is not there."""
    Path("kept.yaml").write_text(run("train.py --name demo --dry-run").stdout)

    served.faults.fail(InvalidError(422, "spec.x: no"), verb="create", resource=TRAIN_JOBS)
    assert run("-f kept.yaml --no-follow").exit_code == 2
    assert served.objects(CONFIG_MAPS) == []
    result = run("-f kept.yaml --no-follow")

    assert (result.exit_code, result.stdout) == (0, "trainjob.trainer.kubeflow.org/demo created\n")
    (owner,) = only(served, CONFIG_MAPS)["metadata"]["ownerReferences"]
    assert owner["uid"] == only(served, TRAIN_JOBS)["metadata"]["uid"]


def test_code_of_a_deleted_job(served: FakeClient) -> None:
    """A ConfigMap that garbage collection is about to delete is made anew for the new TrainJob."""
    code, _ = yaml.safe_load_all(run("train.py --name demo --dry-run").stdout)
    gone = {"apiVersion": TRAIN_JOBS.api_version, "kind": "TrainJob", "name": "demo", "uid": "gone"}
    served.add({**code, "metadata": {**code["metadata"], "ownerReferences": [gone]}})

    assert run("train.py --name demo --no-follow").exit_code == 0

    (owner,) = only(served, CONFIG_MAPS)["metadata"]["ownerReferences"]
    assert owner["uid"] == only(served, TRAIN_JOBS)["metadata"]["uid"]


class TestV1Alpha1:
    """The same on a cluster of Kubeflow Trainer (Go)."""

    @pytest.fixture
    def served(self) -> FakeClient:
        """A cluster that serves v1alpha1."""
        client = ConnectedClient(resources=[*SERVED.values(), JOBSETS])
        client.version = "v1alpha1"
        return client

    def test_submit(self, served: FakeClient) -> None:
        """The TrainJob is of its version, with volumes in runtime patches and variables in the trainer."""
        result = run("train.py --name demo --no-follow --env A=1")

        assert (result.exit_code, result.stderr) == (0, "")
        job = only(served, SERVED[TRAIN_JOBS])
        assert job["apiVersion"] == "trainer.kubeflow.org/v1alpha1"
        assert job["spec"]["trainer"]["env"] == [{"name": "A", "value": "1"}]
        (patch,) = job["spec"]["runtimePatches"]
        assert patch["manager"] == "trainer.kubeflow.org/run"
        (changed,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
        (container,) = changed["template"]["spec"]["template"]["spec"]["containers"]
        assert (changed["name"], container["name"], container.keys()) == ("node", "node", {"name", "volumeMounts"})
        (owner,) = only(served, CONFIG_MAPS)["metadata"]["ownerReferences"]
        assert owner["apiVersion"] == "trainer.kubeflow.org/v1alpha1"


@pytest.mark.usefixtures("cluster")
def test_timeout(served: FakeClient) -> None:
    """After --timeout the command ends with the code of timeout(1), and the cluster goes on."""
    result = run("train.py --name demo --timeout 0.3")

    assert result.exit_code == 124, result.output
    assert "not finished after 0.3 s: the cluster continues to run demo" in result.output
    assert only(served, TRAIN_JOBS)
