"""`trainer run SCRIPT` on `trainer up`, with both versions of the API."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from e2e.debian_packages import needs
from e2e.home import Home
from e2e.kubectl import Kubectl
from e2e.waiting import until

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.timeout(300),
]
AT_ONCE = pytest.mark.parametrize("home", ["v2alpha1"], indirect=True)
"""The runtimes of the released Trainer start failed pods again, six times with growing pauses."""
PLAIN = """\
import os, sys
import model
print("node", os.environ["JOB_COMPLETION_INDEX"], sys.argv[1:], os.environ["GREETING"], model.value(), flush=True)
"""
MODEL = """\
def value():
    import madeforthistest
    return madeforthistest.VALUE
"""
TORCH = """\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print("sum", total.item(), "of", dist.get_world_size(), flush=True)
dist.destroy_process_group()
"""
FAILING_TORCH = """\
import torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    raise ValueError("no data")
dist.barrier()
"""
JAX = """\
import os
import jax
jax.distributed.initialize(
    num_processes=int(os.environ["JAX_NUM_PROCESSES"]), process_id=int(os.environ["JAX_PROCESS_ID"])
)
print("processes", jax.process_count(), flush=True)
"""
MPI = """\
from mpi4py import MPI
print("ranks", MPI.COMM_WORLD.size, MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank), flush=True)
"""
FAILING_MPI = """\
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 1:
    raise ValueError("no data")
MPI.COMM_WORLD.barrier()
"""
RUNTIME_WITHOUT_FRAMEWORK = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "plain", "labels": {"trainer.kubeflow.org/framework": "plain"}},
    "spec": {
        "mlPolicy": {"numNodes": 1},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                            "spec": {
                                "backoffLimit": 0,
                                "template": {
                                    "spec": {
                                        "restartPolicy": "Never",
                                        "containers": [{"name": "node", "image": "python:3.11-slim"}],
                                    }
                                },
                            },
                        },
                    }
                ]
            }
        },
    },
}
"""The released Trainer has no runtime without a framework."""


@pytest.fixture(scope="module", params=["v2alpha1", "v1alpha1"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A laptop with a cluster of one version."""
    own = Home(tmp_path_factory.mktemp("home"))
    up = own.trainer("up", "--api-version", request.param)
    assert up.returncode == 0, up.stdout + up.stderr
    if request.param == "v1alpha1":
        file = own.state / "plain.yaml"
        file.write_text(yaml.safe_dump(RUNTIME_WITHOUT_FRAMEWORK))
        Kubectl(own.kubeconfig).kubectl("apply", "-f", str(file))
    yield own
    own.trainer("down", "--delete")


@pytest.fixture
def kubectl(home: Home) -> Kubectl:
    """Of its administrator."""
    return Kubectl(home.kubeconfig)


def write(folder: Path, requirements: str, script: str = PLAIN) -> str:
    """A script with a module beside it and requirements; returns its path."""
    with zipfile.ZipFile(folder / "madeforthistest-1.0-py3-none-any.whl", "w") as archive:
        info = "madeforthistest-1.0.dist-info"
        archive.writestr("madeforthistest.py", "VALUE = 42")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: madeforthistest\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    (folder / "model.py").write_text(MODEL)
    (folder / "requirements.txt").write_text(f"--no-index\n--find-links {folder}\n{requirements}\n")
    (folder / "train.py").write_text(script)
    return str(folder / "train.py")


def test_plain(home: Home, kubectl: Kubectl, tmp_path: Path) -> None:
    """Each node has the code, its requirements, arguments and variables; the code goes with the TrainJob."""
    script = write(tmp_path, "madeforthistest")

    result = home.trainer(
        "run", script, "--nodes", "2", "--name", "plain-script", "--env", "GREETING=hello", "--", "--epochs", "$(x) 3"
    )

    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    lines = result.stdout.splitlines()
    assert lines[0].startswith("packed model.py, requirements.txt and train.py (")
    for node in ("0", "1"):
        assert f"node-{node} | node {node} ['--epochs', '$(x) 3'] hello 42" in lines
    assert lines[-1].startswith("plain-script  Complete  after ")
    (code,) = (name for name in _config_maps(kubectl) if name.startswith("plain-script-code-"))
    home.trainer("delete", "plain-script")
    until(lambda: code not in _config_maps(kubectl), "the code of the deleted TrainJob is gone")


def _config_maps(kubectl: Kubectl) -> list[str]:
    return [name.partition("/")[2] for name in kubectl.kubectl("get", "configmaps", "-o", "name").stdout.split()]


def test_requirements_fail(home: Home, kubectl: Kubectl, tmp_path: Path) -> None:
    """What cannot be installed is why the TrainJob has failed, in its condition."""
    result = home.trainer("run", write(tmp_path, "no-such-thing==3"), "--name", "wrong", "--env", "GREETING=hello")

    assert result.returncode == 1
    job = kubectl.get("trainjob", "wrong")
    assert job is not None
    (message,) = (each["message"] for each in job["status"]["conditions"] if each["type"] == "Failed")
    assert "trainer: cannot install requirements.txt with" in message
    assert "no-such-thing" in message


@needs("openmpi-bin", "openssh-server")
@pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is missing: make nightly installs it")
@AT_ONCE
def test_failed_rank(home: Home, tmp_path: Path) -> None:
    """A rank that fails ends the others, which wait for it, and with them the training."""
    if "pod network  netns" not in home.trainer("status").stdout:
        pytest.skip("pods share one network on this machine")
    (tmp_path / "train.py").write_text(FAILING_MPI)

    options = ("--nodes", "2", "--runtime", "deepspeed-distributed", "--name", "rank-fails", "--timeout", "110")
    result = home.trainer("run", str(tmp_path / "train.py"), *options)

    assert result.returncode == 1, result.stdout + result.stderr
    explained = home.trainer("explain", "rank-fails")
    assert "| ValueError: no data\n" in explained.stdout, explained.stdout
    assert "MPI_ABORT" not in explained.stdout


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is missing: make nightly installs it")
@AT_ONCE
def test_failed_process(home: Home, kubectl: Kubectl, tmp_path: Path) -> None:
    """The condition has what the first process said that failed, and not what torchrun and others said of it."""
    (tmp_path / "train.py").write_text(FAILING_TORCH)

    result = home.trainer("run", str(tmp_path / "train.py"), "--procs", "2", "--name", "fails", "--timeout", "110")

    assert (result.returncode, "ChildFailedError" in result.stdout) == (1, True), result.stdout + result.stderr
    assert "note: trainer explain fails -n default says what to do" in result.stderr
    job = kubectl.get("trainjob", "fails")
    assert job is not None
    (message,) = (each["message"] for each in job["status"]["conditions"] if each["type"] == "Failed")
    assert message.splitlines()[-1] == "[rank1]: ValueError: no data"
    assert "[rank0]" not in message


def test_from_python(home: Home, tmp_path: Path) -> None:
    """trainer.submit follows to the end, and says how it was."""
    script = write(tmp_path, "madeforthistest")
    program = f"""
import trainer
job = trainer.submit({script!r}, nodes=1, name="from-python", env={{"GREETING": "hi"}}, follow=True)
print(job)
"""

    result = home.run("python", "-c", program)

    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    lines = result.stdout.splitlines()
    assert "node-0 | node 0 [] hi 42" in lines
    told = ("packed ", "trainjob.trainer.kubeflow.org/", "node-0 | ", "from-python  ", "SubmittedJob(")
    assert [line for line in lines if not line.startswith(told)] == [], "log lines of the library"
    assert lines[-1] == "SubmittedJob(name='from-python', namespace='default', state='Complete')"


def test_kept(home: Home, kubectl: Kubectl, tmp_path: Path) -> None:
    """What --dry-run prints, kubectl applies and the cluster trains."""
    script = write(tmp_path, "madeforthistest")
    printed = home.trainer("run", script, "--name", "kept", "--env", "GREETING=again", "--dry-run")
    file = tmp_path / "kept.yaml"
    file.write_text(printed.stdout)

    kubectl.kubectl("apply", "--server-side", "-f", str(file))
    kubectl.kubectl("wait", "trainjob/kept", "--for=condition=Complete", "--timeout=100s")

    assert "node 0 [] again 42" in home.trainer("logs", "kept").stdout


def test_copied(home: Home, kubectl: Kubectl, tmp_path: Path) -> None:
    """A copy of the spec trains after the original is deleted, and the code goes with the last that mounts it."""
    script = write(tmp_path, "madeforthistest")
    home.trainer("run", script, "--name", "original", "--env", "GREETING=copied", "--suspend")
    original = kubectl.get("trainjob", "original")
    assert original is not None
    copy = {name: original[name] for name in ("apiVersion", "kind", "spec")} | {"metadata": {"name": "copied"}}
    (tmp_path / "copy.yaml").write_text(yaml.safe_dump(copy))
    (code,) = (name for name in _config_maps(kubectl) if name.startswith("original-code-"))

    kubectl.kubectl("create", "-f", str(tmp_path / "copy.yaml"))
    until(lambda: len(_owners(kubectl, code)) == 2, "the copy owns the code as well")
    home.trainer("delete", "original")
    until(lambda: _owners(kubectl, code) == ["copied"], "the garbage collector has taken the original off the code")
    home.trainer("resume", "copied")
    kubectl.kubectl("wait", "trainjob/copied", "--for=condition=Complete", "--timeout=100s")

    assert "node 0 [] copied 42" in home.trainer("logs", "copied").stdout
    home.trainer("delete", "copied")
    until(lambda: code not in _config_maps(kubectl), "the code of the deleted TrainJobs is gone")


def _owners(kubectl: Kubectl, config_map: str) -> list[str]:
    found = kubectl.get("configmap", config_map)
    assert found is not None
    return [owner["name"] for owner in found["metadata"]["ownerReferences"]]


@pytest.mark.parametrize(
    ("script", "runtime", "arguments", "expected"),
    [
        pytest.param(
            TORCH, "torch-distributed", ["--procs", "2"], "sum 10.0 of 4", id="torch",
            marks=pytest.mark.skipif(find_spec("torch") is None, reason="torch is missing: make nightly installs it"),
        ),
        pytest.param(
            JAX, "jax-distributed", [], "processes 2", id="jax",
            marks=pytest.mark.skipif(find_spec("jax") is None, reason="jax is missing: make nightly installs it"),
        ),
        pytest.param(
            MPI, "deepspeed-distributed", ["--runtime", "deepspeed-distributed"], "ranks 2 1", id="mpi",
            marks=[
                needs("openmpi-bin", "openssh-server"),
                pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is missing: make nightly installs it"),
            ],
        ),
    ],
)  # fmt: skip
def test_framework(home: Home, tmp_path: Path, script: str, runtime: str, arguments: list[str], expected: str) -> None:
    """A script of a framework trains on two nodes with its runtime."""
    if "pod network  netns" not in home.trainer("status").stdout:
        pytest.skip("pods share one network on this machine")
    file = tmp_path / "train.py"
    file.write_text(script)

    result = home.trainer("run", str(file), "--nodes", "2", "--timeout", "110", *arguments)

    assert result.returncode == 0, result.stdout + result.stderr
    assert f" with runtime {runtime}" in result.stdout
    assert expected in result.stdout
