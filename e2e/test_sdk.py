"""The unmodified SDK of Kubeflow on `trainer up --api-version v1alpha1`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.home import Home, running_home
from e2e.kubectl import BIN, Kubectl
from e2e.prerequisites import MPI, needs_module
from e2e.tiny_llama import torchtune

REPOSITORY = Path(__file__).parents[1]
SDK = BIN.parent / "sdk"
TORCHTUNE, XGBOOST = needs_module("torchtune"), needs_module("xgboost")
SCENARIOS = [
    *(() if any(XGBOOST.args) else ("xgboost",)),
    *("function", *(() if any(TORCHTUNE.args) else ("builtin",)), "runtimes", *(() if any(MPI.args) else ("mpi",))),
    *("container", "resumed", "failure", "optimizer", "patches", "initializers"),
]
"""The slowest first."""

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.skipif(not SDK.is_dir(), reason="the SDK is not installed: make .venv/.sdk"),
    pytest.mark.timeout(400),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A laptop with a cluster that serves v1alpha1."""
    options = ("--api-version", "v1alpha1", "--node-resources", "cpu=64,nvidia.com/gpu=8")
    with running_home(tmp_path_factory.mktemp("home"), *options) as own:
        yield own


@pytest.fixture(scope="module")
def answers(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """What the SDK has answered in a scenario."""
    home.require_pod_networks()
    objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in SCENARIOS]
    objects += [katib("Experiment"), katib("Trial"), *(torchtune("builtin") if "builtin" in SCENARIOS else ())]
    home.kubectl.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
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
    """Those of Kubeflow Trainer (Go) are there, with their frameworks, and one says what is installed in it."""
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
    """Their sources and settings arrive where the images of Kubeflow Trainer (Go) look for them."""
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
    """What Kubeflow Trainer (Go) refuses is refused, and the SDK's error has the reason."""
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
    home.kubectl.kubectl("apply", "--server-side", "-k", str(REPOSITORY / "config" / "v1alpha1" / "roles"))
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


@pytest.mark.parametrize(
    "example", ["jax-digits", "torch-digits", "xgboost-digits", pytest.param("mlx-digits", marks=MPI)]
)
def test_converted_example(home: Home, example: str) -> None:
    """Converted it trains on two nodes, on a runtime of Kubeflow Trainer (Go), to more than 90 % accuracy."""
    home.require_pod_networks()
    manifest = REPOSITORY / "examples" / example / "trainjob.yaml"
    converted = home.trainer("convert", "--api-version", "v1alpha1", "-f", str(manifest))
    assert (converted.returncode, converted.stderr) == (0, "")
    file = home.state / f"{example}.yaml"
    # The released runtimes have no working directory.
    file.write_text(converted.stdout.replace("- train.py\n", "- /workspace/train.py\n"))
    trained = home.trainer("run", "-f", str(file), "--timeout", "110")
    assert trained.returncode == 0, trained.stdout + trained.stderr
    (accuracy,) = set(re.findall(r"test accuracy: ([\d.]+) %", trained.stdout))
    assert float(accuracy) > 90


def test_the_version_stays(home: Home) -> None:
    """`up` again works with the version of the cluster, `status` names it, and another one is refused."""
    assert home.trainer("up").returncode == 0
    assert "API          trainer.kubeflow.org/v1alpha1" in home.trainer("status").stdout
    refused = home.trainer("up", "--api-version", "v2alpha1")
    assert refused.returncode != 0
    assert "this cluster serves v1alpha1" in refused.stderr
