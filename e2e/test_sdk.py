"""The unmodified SDK of Kubeflow on `trainer up --api-version v1alpha1`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.debian_packages import needs
from e2e.home import Home
from e2e.kubectl import BIN, Kubectl
from e2e.tiny_llama import torchtune

REPOSITORY = Path(__file__).parents[1]
SDK = BIN.parent / "sdk"
MPI = needs("openmpi-bin", "openssh-server")
TORCHTUNE = pytest.mark.skipif(
    find_spec("torchtune") is None, reason="torchtune is not installed: make nightly installs it"
)
XGBOOST = pytest.mark.skipif(find_spec("xgboost") is None, reason="XGBoost is not installed: make nightly installs it")
SCENARIOS = [
    *(() if any(XGBOOST.args) else ("xgboost",)),
    *("function", *(() if any(TORCHTUNE.args) else ("builtin",)), "runtimes", *(() if any(MPI.args) else ("mpi",))),
    *("container", "resumed", "failure", "optimizer", "patches", "initializers"),
]
"""The slowest first."""
TRAIN_JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: by-hand
spec:
  runtimeRef:
    name: torch-distributed
  trainer:
    numNodes: 2
    command: [python, -c, "print('hello')"]
"""

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.skipif(not SDK.is_dir(), reason="the SDK is not installed: make .venv/.sdk"),
    pytest.mark.timeout(400),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A laptop with a cluster that serves v1alpha1."""
    own = Home(tmp_path_factory.mktemp("home"))
    up = own.trainer("up", "--api-version", "v1alpha1", "--node-resources", "cpu=64,nvidia.com/gpu=8")
    assert up.returncode == 0, up.stdout + up.stderr
    yield own
    own.trainer("down", "--delete")


@pytest.fixture(scope="module")
def answers(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """What the SDK has answered in a scenario."""
    if "pod network  netns" not in home.trainer("status").stdout:
        pytest.skip("pods share one network on this machine, where trainings cannot use one port side by side")
    objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in SCENARIOS]
    objects += [katib("Experiment"), katib("Trial"), *(torchtune("builtin") if "builtin" in SCENARIOS else ())]
    Kubectl(home.kubeconfig).kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    output = run_with_sdk(home.kubeconfig, "e2e.sdk.scenarios", str(tmp_path_factory.mktemp("gates")), *SCENARIOS)
    return partial(answer_of, json.loads(output.splitlines()[-1]))


def run_with_sdk(kubeconfig: Path, *module: str) -> str:
    """What a module writes that uses the SDK."""
    environment = os.environ | {"KUBECONFIG": str(kubeconfig), "PYTHONPATH": f"{SDK}:{REPOSITORY}"}
    command = [sys.executable, "-m", *module]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=380, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "version info is not available" not in result.stderr
    return result.stdout


def answer_of(answers: dict[str, Any], scenario: str) -> Any:
    """What a scenario has answered; it must have come to its end."""
    assert "answer" in answers[scenario], answers[scenario]["error"]
    return answers[scenario]["answer"]


def katib(kind: str) -> dict[str, Any]:
    """The definition of a kind of Katib, which is stored and no more."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    plural = f"{kind.lower()}s"
    names = {"kind": kind, "plural": plural}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.kubeflow.org"},
        "spec": {"group": "kubeflow.org", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def test_runtimes(answers: Any) -> None:
    """Those of the released Trainer are there, with their frameworks, and one says what is installed in it."""
    answer = answers("runtimes")
    assert answer["found"] == {
        "deepspeed-distributed": "deepspeed",
        "flux-distributed": "flux",
        "jax-distributed": "jax",
        "mlx-distributed": "mlx",
        "torch-distributed": "torch",
        "torch-distributed-with-cache": "torch",
        "torchtune-llama3.2-1b": "torchtune",
        "torchtune-llama3.2-3b": "torchtune",
        "torchtune-qwen2.5-1.5b": "torchtune",
        "xgboost-distributed": "xgboost",
    }
    assert answer["packages"].startswith(f"Python: {sys.version.split()[0]}")
    assert re.search(r"^torch +\d", answer["packages"], re.MULTILINE)
    assert answer["left"] == 0, "it deletes the TrainJob that it has looked with"


def test_function(answers: Any) -> None:
    """A function is trained on two nodes, and its status, steps, log and events arrive."""
    answer = answers("function")
    assert (answer["name"], answer["life"]) == ("function", ["Created", "Running", "Complete"])
    assert (answer["nodes"], answer["steps"]) == (2, {"node-0": "Succeeded", "node-1": "Succeeded"})
    assert answer["log"][-1] == "node 0 of 2 at 3 for you"
    assert re.fullmatch(r"Successfully installed Python packages \(.*\): packaging", answer["log"][0])
    assert {("JobSet", "AllJobsCompleted"), ("Pod", "Started")} <= {tuple(event) for event in answer["events"]}
    assert answer["by runtime"] == [["function"], [], ["function"]]
    assert answer["metadata"] == [{"a": "b"}, {"c": "d"}]


def test_what_the_sdk_writes(answers: Any) -> None:
    """Numbers with a point become integers, a missing apiGroup gets its default, and scripts stay as they are."""
    answer = answers("function")
    assert json.dumps(answer["limits"]) == '{"cpu": 1, "memory": "64Mi"}'
    assert answer["runtimeRef"] == {
        "apiGroup": "trainer.kubeflow.org",
        "kind": "ClusterTrainingRuntime",
        "name": "torch-distributed",
    }
    assert answer["same command"]


def test_following_and_deleting(answers: Any) -> None:
    """A log is followed while the training goes on, and with the TrainJob all goes that belonged to it."""
    assert answers("container") == {
        "before": ["waiting"],
        "followed": ["waiting", "went"],
        "last": "Complete",
        "left": 0,
    }


def test_failure(answers: Any) -> None:
    """A TrainJob that exceeds its deadline is reported as Failed."""
    assert answers("failure") == ["TrainJob late is Failed", "Failed"]


def test_resumed(answers: Any) -> None:
    """A TrainJob that is suspended and resumed is "Created" while it waits, and "Running" when it runs."""
    answer = answers("resumed")
    assert answer["seen"] == ["Created", "Running", "Created", "Running", "Complete"]
    assert answer["conditions"] == [["Suspended", "False"], ["Complete", "True"]]


@MPI
def test_mpi(answers: Any) -> None:
    """A function runs on the launcher and a node, which count as two nodes, with the Python of the container."""
    answer = answers("mpi")
    assert (answer["life"], answer["nodes"]) == (["Created", "Running", "Complete"], 2)
    hosts = ("mpi-launcher-0-0", "mpi-node-0-0")
    # mpirun warns in the same log when a process group exists already: both sides of its fork make it.
    said = sorted(line for line in answer["log"] if line.startswith("rank "))
    assert said == [f"rank {rank} on {host} with {sys.prefix}" for rank, host in enumerate(hosts)]


@XGBOOST
def test_xgboost(answers: Any) -> None:
    """A function on two nodes grows the same trees on both, of all data."""
    answer = answers("xgboost")
    assert answer["life"] == ["Created", "Running", "Complete"]
    workers = [re.search(r"^worker (\d) of 2 has (\w{64})$", "\n".join(log), re.MULTILINE) for log in answer["logs"]]
    assert [each and each[1] for each in workers] == ["0", "1"]
    assert len({each and each[2] for each in workers}) == 1


@TORCHTUNE
def test_builtin(answers: Any) -> None:
    """torchtune fine-tunes with the settings of the SDK what the initializers have fetched."""
    answer = answers("builtin")
    assert answer["status"] == "Complete", answer["logs"]
    assert answer["steps"] == dict.fromkeys(("dataset-initializer", "model-initializer", "node-0"), "Succeeded")
    logs = answer["logs"]
    assert logs["dataset-initializer"] == ["fetched hf://tatsu-lab/alpaca/data"]
    patterns = "*.msgpack,*.h5,*.bin,*.pt,*.pth"
    assert logs["model-initializer"] == [f"fetched hf://meta-llama/Llama-3.2-1B-Instruct without {patterns}"]
    assert "Running LoRAFinetuneRecipeSingleDevice with resolved config:" in logs["node-0"]
    assert {"dtype: fp32", "  lora_rank: 4", "  data_dir: /workspace/dataset/data"} <= {*logs["node-0"]}
    assert any(re.search(r"1\|1\|Loss: \d", line) for line in logs["node-0"])


def test_initializers(answers: Any) -> None:
    """Their sources and settings arrive where the images of the released Trainer look for them."""
    stored, cached = answers("initializers")
    assert stored["dataset-initializer"] == {
        "STORAGE_URI": "s3://data/set",
        "IGNORE_PATTERNS": "*.txt,*.md",
        "ENDPOINT": "http://s3",
    }
    model = {"STORAGE_URI": "s3://a/model", "IGNORE_PATTERNS": "*.msgpack,*.h5,*.bin,*.pt,*.pth", "REGION": "eu"}
    assert stored["model-initializer"] == model
    assert cached["dataset-initializer"] == {
        "CACHE_IMAGE": "ghcr.io/kubeflow/trainer/data-cache:v2.3.0",
        "STORAGE_URI": "cache://schema/table",
        "CLUSTER_SIZE": "4",
        "METADATA_LOC": "s3://metadata.json",
        "WORKER_MEM": "1Gi",
    }


def test_patches(answers: Any) -> None:
    """All that a patch can say is in the JobSet."""
    answer = answers("patches")
    assert answer["status"] == "Created"
    for metadata in answer["metadata"]:
        assert metadata["labels"]["team"] == "a"
        assert metadata["annotations"]["note"] == "b"
    pod = answer["pod"]
    (container,) = pod["containers"]
    assert container["volumeMounts"] == [{"name": "scratch", "mountPath": "/scratch"}]
    assert container["securityContext"] == {"runAsUser": 7}
    expected = {
        "serviceAccountName": "default",
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "imagePullSecrets": [{"name": "registry"}],
        "securityContext": {"fsGroup": 7},
        "nodeSelector": {"disk": "fast"},
        "affinity": {"podAntiAffinity": {}},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "schedulingGates": [{"name": "example.com/gate"}],
    }
    assert {name: pod.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("what", "status", "message"),
    [
        pytest.param("half a CPU", 422, "cpu", id="a number that is no integer"),
        pytest.param("unknown Job", 403, "must not have replicated job that doesn't exist", id="unknown Job"),
        pytest.param("variable", 403, "must not have envs for the dataset-initializer", id="variable of the trainer"),
    ],
)
def test_refused_by_admission(answers: Any, what: str, status: int, message: str) -> None:
    """What the released Trainer refuses is refused, and the SDK's error has the reason."""
    found, text = answers("patches")[what]
    assert (found, message in text) == (status, True), text


def test_optimizer(answers: Any) -> None:
    """A trial of an Experiment, as the OptimizerClient writes it and Katib makes it, is trained and found."""
    assert answers("optimizer") == {
        "status": "Complete",
        "seen": "Complete",
        "rate": {"rate": "0.5"},
        "log": ["loss=0.25"],
    }


@pytest.fixture
def scientist(home: Home) -> Path:
    """The kubeconfig of somebody who has the role for people who train, in one namespace."""
    kubectl = Kubectl(home.kubeconfig, namespace="default").kubectl
    Kubectl(home.kubeconfig).kubectl("apply", "--server-side", "-k", str(REPOSITORY / "config" / "v1alpha1" / "roles"))
    kubectl("create", "serviceaccount", "scientist")
    kubectl(
        "create", "rolebinding", "trains", "--clusterrole=kubeflow-trainer-edit", "--serviceaccount=default:scientist"
    )
    config = yaml.safe_load(home.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": kubectl("create", "token", "scientist").stdout.strip()}
    file = home.state / "scientist.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


def test_notebook(scientist: Path) -> None:
    """The example runs from its first cell to its last, as anybody who may train, and shows what has been learnt."""
    notebook = REPOSITORY / "examples" / "sdk-notebook" / "digits.ipynb"
    output = run_with_sdk(scientist, "e2e.sdk.notebook", str(notebook))
    accuracy = re.search(r"^test accuracy: ([\d.]+) %$", output, re.MULTILINE)
    assert accuracy is not None, output
    assert float(accuracy[1]) > 80
    assert {"node-0 Succeeded", "node-1 Succeeded"} <= {*output.splitlines()}


def test_kubectl(home: Home) -> None:
    """`kubectl get trainjob` shows state and age, and the status has the conditions of the released Trainer alone."""
    kubectl = ["--kubeconfig", str(home.kubeconfig)]
    file = home.state / "job.yaml"
    file.write_text(TRAIN_JOB)
    assert home.run("kubectl", *kubectl, "apply", "-f", str(file)).returncode == 0
    wait = home.run("kubectl", *kubectl, "wait", "trainjob/by-hand", "--for=condition=Complete", "--timeout=60s")
    assert wait.returncode == 0, wait.stderr
    header, row = home.run("kubectl", *kubectl, "get", "trainjob", "by-hand").stdout.splitlines()
    assert header.split() == ["NAME", "STATE", "PROGRESS", "%", "ETA", "AGE"]
    assert row.split()[:2] == ["by-hand", "Complete"]
    status = json.loads(home.run("kubectl", *kubectl, "get", "trainjob", "by-hand", "-o", "json").stdout)["status"]
    assert [each["type"] for each in status["conditions"]] == ["Complete"]
    assert [each["type"] for each in status["furtherConditions"]] == ["Created"]
    assert "annotations" not in status


def test_command_line(home: Home) -> None:
    """The commands of data scientists work with this version as well."""
    file = home.state / "own.yaml"
    file.write_text(TRAIN_JOB.replace("by-hand", "own"))
    followed = home.trainer("run", "-f", str(file))
    assert followed.returncode == 0, followed.stdout + followed.stderr
    assert "hello" in followed.stdout
    assert home.trainer("get", "own").stdout.splitlines()[1].split()[:2] == ["own", "Complete"]
    assert home.trainer("logs", "own").stdout == "hello\n"
    exported = json.loads(home.trainer("get", "own", "-o", "json").stdout)
    assert exported["apiVersion"] == "trainer.kubeflow.org/v1alpha1"
    file.write_text(TRAIN_JOB.replace("v1alpha1", "v2alpha1"))
    refused = home.trainer("run", "-f", str(file))
    assert (refused.returncode, "the cluster serves v1alpha1: trainer convert" in refused.stderr) == (2, True)
    assert home.trainer("delete", "own").returncode == 0


def test_refusals(home: Home) -> None:
    """Admission refuses with 403 and the text of the released Trainer."""
    file = home.state / "refused.yaml"
    file.write_text(TRAIN_JOB.replace("torch-distributed", "none").replace("by-hand", "refused"))
    result = home.run("kubectl", "--kubeconfig", str(home.kubeconfig), "apply", "-f", str(file))
    assert result.returncode != 0
    assert "Error from server (Forbidden)" in result.stderr
    assert "specified clusterTrainingRuntime must be created before the TrainJob is created" in result.stderr


def test_the_version_stays(home: Home) -> None:
    """`up` again works with the version of the cluster, `status` names it, and another one is refused."""
    assert home.trainer("up").returncode == 0
    assert "API          trainer.kubeflow.org/v1alpha1" in home.trainer("status").stdout
    refused = home.trainer("up", "--api-version", "v2alpha1")
    assert refused.returncode != 0
    assert "this cluster serves v1alpha1" in refused.stderr
