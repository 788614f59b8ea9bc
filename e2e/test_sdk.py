"""The unmodified SDK of Kubeflow on `trainer up --api-version v1alpha1`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from e2e.home import Home
from e2e.kubectl import BIN

if TYPE_CHECKING:
    from collections.abc import Iterator

SDK = BIN.parent / "sdk"
SESSION = Path(__file__).with_name("sdk_session.py")
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
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A laptop with a cluster that serves v1alpha1."""
    own = Home(tmp_path_factory.mktemp("home"))
    up = own.trainer("up", "--api-version", "v1alpha1")
    assert up.returncode == 0, up.stdout + up.stderr
    yield own
    own.trainer("down", "--delete")


@pytest.fixture(scope="module")
def answers(home: Home) -> Any:
    """What the SDK has answered."""
    environment = os.environ | {"KUBECONFIG": str(home.kubeconfig), "PYTHONPATH": str(SDK)}
    result = subprocess.run(
        [sys.executable, SESSION], env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_runtimes(answers: Any) -> None:
    """Those of the released Trainer are there, with their frameworks."""
    assert answers["runtimes"] == {
        "deepspeed-distributed": "deepspeed",
        "jax-distributed": "jax",
        "mlx-distributed": "mlx",
        "torch-distributed": "torch",
        "torch-distributed-with-cache": "torch",
        "torchtune-llama3.2-1b": "torchtune",
        "torchtune-llama3.2-3b": "torchtune",
        "torchtune-qwen2.5-1.5b": "torchtune",
        "xgboost-distributed": "xgboost",
    }


def test_function(answers: Any) -> None:
    """A function is trained on two nodes, and its status, steps, log and events arrive."""
    function = answers["function"]
    assert (function["name"], function["first"], function["last"]) == ("function", "Created", "Complete")
    assert (function["nodes"], function["steps"]) == (2, {"node-0": "Succeeded", "node-1": "Succeeded"})
    assert function["log"] == ["node 0 of 2 at 3"]
    assert {"JobsCreationSucceeded", "AllJobsCompleted"} <= {*function["events"]}


def test_container(answers: Any) -> None:
    """A container with a command of its own waits where its patch sends it, and fails after its deadline."""
    assert answers["waiting"]["status"] == "Created"
    assert answers["failing"] == "Failed"
    assert answers["jobs"] is True


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
