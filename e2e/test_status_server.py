"""Pods that post their progress with the clients of Kubeflow Trainer (Go), unmodified."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from e2e.home import running_home
from e2e.installation import HOST, free_ports
from e2e.kubectl import BIN, Kubectl
from e2e.processes import Process
from e2e.waiting import until

SDK = BIN.parent / "sdk"

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.timeout(300),
]

POST = """
from kubeflow.trainer import update_trainjob_status
print("posted", update_trainjob_status(42, 120, {"loss": 0.123, "eval_accuracy": 0.95}))
"""

TRAIN = """
import tempfile, torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
config = dict(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1, bos_token_id=None, eos_token_id=None)
rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 16, (32, 8))]
with tempfile.TemporaryDirectory() as directory:
    arguments = TrainingArguments(directory, max_steps=6, logging_steps=2, save_strategy="no", use_cpu=True)
    trainer = Trainer(GPT2LMHeadModel(GPT2Config(**config)), arguments, train_dataset=rows)
    print([type(each).__name__ for each in trainer.callback_handler.callbacks])
    trainer.train()
"""

STRANGER = """
import json, os, ssl, urllib.error, urllib.request
url = os.environ["KUBEFLOW_TRAINER_SERVER_URL"].replace("stranger", "victim")
token = open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read()
context = ssl.create_default_context(cafile=os.environ["KUBEFLOW_TRAINER_SERVER_CA_CERT"])
status = {"trainerStatus": {"progressPercentage": 1, "lastUpdatedTime": "2026-01-01T00:00:00Z"}}
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
request = urllib.request.Request(url, json.dumps(status).encode(), headers)
try:
    urllib.request.urlopen(request, context=context)
except urllib.error.HTTPError as error:
    print(error.code, json.load(error)["reason"])
"""

LOG = """
print('[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus] {"progressPercentage": 7}', flush=True)
"""


class Site:
    """A cluster of one version whose manager has the gate on."""

    def __init__(self, version: str, kubectl: Kubectl) -> None:
        self.version = version
        self.kubectl = kubectl

    def train(self, name: str, script: str) -> tuple[dict[str, Any], str]:
        """`trainerStatus` at the end of a TrainJob that runs a script, and its log."""
        job = {
            "apiVersion": f"trainer.kubeflow.org/{self.version}",
            "kind": "TrainJob",
            "metadata": {"name": name},
            "spec": {
                "runtimeRef": {"name": "torch-distributed"},
                "trainer": {
                    "command": [sys.executable, "-c", textwrap.dedent(script)],
                    "env": [{"name": "PYTHONPATH", "value": str(SDK) if "kubeflow" in script else ""}],
                },
            },
        }
        self.kubectl.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(job))
        self.kubectl.kubectl("wait", f"trainjob/{name}", "--for=condition=Complete", "--timeout=85s")
        log = self.kubectl.kubectl("logs", "-l", f"jobset.sigs.k8s.io/jobset-name={name}", "--tail=-1").stdout
        status = (self.kubectl.get("trainjob", name) or {}).get("status") or {}
        return status.get("trainerStatus") or {}, log


@pytest.fixture(scope="module", params=["v1alpha1", "v2alpha1"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The cluster of `trainer up`, on the network of this machine, where pods reach the manager."""
    with running_home(
        tmp_path_factory.mktemp("home"), "--api-version", request.param, "--pod-network", "hosts"
    ) as home:
        os.kill(home.pids()["manager"], signal.SIGTERM)
        until(lambda: "manager" not in home.pids(), "the manager has ended")
        state = home.kubeconfig.parent
        configuration = yaml.safe_load((state / "manager.yaml").read_text())
        (port,) = free_ports(1)
        configuration["statusServer"] = {"host": HOST, "port": port, "url": f"https://{HOST}:{port}"}
        configuration["featureGates"]["TrainJobStatus"] = True
        file = state / "gated.yaml"
        file.write_text(yaml.safe_dump(configuration))
        command = [str(BIN / "trainer"), "manager", "--config", str(file)]
        manager = Process([*command, "--kubeconfig", str(state / "manager.kubeconfig")], state / "gated.log")
        manager.start(ready="started manager")
        yield Site(request.param, Kubectl(home.kubeconfig, namespace="default"))
        manager.stop()


@pytest.mark.skipif(not SDK.is_dir(), reason="the SDK is not installed: make .venv/.sdk")
def test_sdk(site: Site) -> None:
    """`kubeflow.trainer.update_trainjob_status` reports a success, and the TrainJob shows it."""
    shown, log = site.train("posting", POST)
    assert log == "posted True\n"
    assert shown["progressPercentage"] == 42
    metrics = {"loss": "0.123", "eval_accuracy": "0.95"}
    if site.version == "v1alpha1":
        assert {each["name"]: each["value"] for each in shown["metrics"]} == metrics
    assert shown["trainMetrics"] == metrics


def test_transformers(site: Site) -> None:
    """The callback of transformers adds itself; the end of a training is 100 %, with the last metrics."""
    pytest.importorskip("transformers", minversion="5.4")
    shown, log = site.train("callback", TRAIN)
    assert "KubeflowCallback" in log
    assert shown["progressPercentage"] == 100
    assert {"train_loss", "total_steps", "current_step"} & shown["trainMetrics"].keys()


def test_strangers(site: Site) -> None:
    """A pod cannot report about another TrainJob, and the log is read as always."""
    shown, _ = site.train("victim", LOG)
    assert shown["progressPercentage"] == 7
    _, log = site.train("stranger", STRANGER)
    assert log == "403 Forbidden\n"
    assert (site.kubectl.get("trainjob", "victim") or {})["status"]["trainerStatus"]["progressPercentage"] == 7
