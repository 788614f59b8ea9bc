"""Trainings without a line of progress code, beside which the manager puts a reporter; each runs its real framework."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from e2e.cluster import train_job
from e2e.manager import manager as make_manager
from e2e.progress_view import wait_for_progress
from trainer.progress.injection.install import install
from trainer.progress.protocol import Message, parse, tagged_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.cluster import Cluster
    from e2e.manager import Manager

pytestmark = pytest.mark.timeout(240)

TRANSFORMERS = """
import tempfile
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

config = dict(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1, bos_token_id=None, eos_token_id=None)
model = GPT2LMHeadModel(GPT2Config(**config))
rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 16, (32, 8))]
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(), num_train_epochs=3, per_device_train_batch_size=8, logging_steps=2,
    save_strategy="no", report_to="none", use_cpu=True,
)
Trainer(model, arguments, train_dataset=rows).train()
"""
LIGHTNING = """
import sys
import torch
from torch.utils.data import DataLoader, TensorDataset
L = __import__(sys.argv[1])

class Line(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        loss = self.line(batch[0]).pow(2).mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

data = DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=8)
L.Trainer(
    max_epochs=3, log_every_n_steps=2, logger=False, enable_checkpointing=False, accelerator="cpu"
).fit(Line(), data)
"""
KERAS = """
import os, sys
os.environ |= {"KERAS_BACKEND": sys.argv[1], "TF_CPP_MIN_LOG_LEVEL": "2"}
import keras
import numpy as np

model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.random.default_rng(0).random((32, 4), dtype="float32")
model.fit(x, x.sum(1), batch_size=8, epochs=3, verbose=0)
"""
XGBOOST = """
import numpy as np
import xgboost

x = np.random.default_rng(0).random((32, 4))
data = xgboost.DMatrix(x, x.sum(1))
if sys.argv[1] == "train":
    xgboost.train({"max_depth": 2}, data, 12, evals=[(data, "train")], verbose_eval=False)
else:
    xgboost.XGBRegressor(n_estimators=12, max_depth=2).fit(x, x.sum(1), eval_set=[(x, x.sum(1))], verbose=False)
"""
TQDM = """
from tqdm.auto import tqdm

for epoch in range(3):
    bar = tqdm(range(4), desc=f"Epoch {epoch}/3", disable=False)
    for step in bar:
        bar.set_postfix(loss=0.5)
"""
RECIPE = """
from tqdm import tqdm

class Recipe:
    total_epochs, _steps_per_epoch, global_step = 3, 4, 0

    def train(self):
        for epoch in range(self.total_epochs):
            bar = tqdm(total=self._steps_per_epoch)
            for step in range(self._steps_per_epoch):
                self.global_step += 1
                bar.update(1)
                bar.set_description(f"{epoch + 1}|{self.global_step}|Loss: 0.5")
            bar.close()

Recipe().train()
"""
"""The loop of the recipes of torchtune."""


def trained(directory: Path, script: str, *arguments: str) -> list[Message]:
    """What a script reports, with the reporter; without it, it says the same otherwise."""
    reporter = directory / "reporter"
    reporter.mkdir()
    install(reporter)
    (directory / "train.py").write_text(
        f"import sys\n{script}\nprint('end', sys.warnoptions, flush=True)\nsys.exit(7)\n"
    )
    variables = {"PYTHONPATH": str(reporter), "PYTHONWARNINGS": "ignore::trainer_reporter.Never"}
    environment = os.environ | {"TRAINER_STATUS_INTERVAL_SECONDS": "0", "HF_HUB_OFFLINE": "1"} | variables
    command = [sys.executable, "train.py", *arguments]
    result = subprocess.run(command, cwd=directory, env=environment, capture_output=True, timeout=200, check=False)
    assert (result.returncode, b"end []\n" in result.stdout) == (7, True), result.stderr.decode()
    assert b"trainer: " not in result.stderr
    stamped = b"".join(b"2026-01-02T03:04:05Z " + line for line in result.stdout.splitlines(keepends=True))
    return [parse(line.payload) for line in tagged_lines(stamped)]


def needing(module: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed: make e2e installs it")


@pytest.mark.parametrize(
    ("script", "argument", "metric"),
    [
        pytest.param(TRANSFORMERS, "", "loss", marks=needing("transformers"), id="transformers"),
        pytest.param(LIGHTNING, "lightning", "loss", marks=needing("lightning"), id="lightning"),
        pytest.param(LIGHTNING, "pytorch_lightning", "loss", marks=needing("lightning"), id="pytorch-lightning"),
        pytest.param(
            KERAS, "tensorflow", "loss", marks=[needing("keras"), needing("tensorflow")], id="keras-tensorflow"
        ),
        pytest.param(KERAS, "jax", "loss", marks=[needing("keras"), needing("jax")], id="keras-jax"),
        pytest.param(KERAS, "torch", "loss", marks=[needing("keras"), needing("torch")], id="keras-torch"),
        pytest.param(XGBOOST, "train", "rmse", marks=needing("xgboost"), id="xgboost"),
        pytest.param(XGBOOST, "fit", "rmse", marks=[needing("xgboost"), needing("sklearn")], id="xgboost-fit"),
        pytest.param(TQDM, "", "loss", marks=needing("tqdm"), id="tqdm"),
        pytest.param(RECIPE, "", "Loss", marks=needing("tqdm"), id="torchtune"),
    ],
)
def test_frameworks(script: str, argument: str, metric: str, tmp_path: Path) -> None:
    """Twelve steps are reported to the end; exit code and what the script prints stay as they are."""
    reported = trained(tmp_path, script, argument)

    steps = [message.current_step for message in reported if message.current_step is not None]
    assert steps == sorted(steps)
    assert (steps[-1], {message.total_steps for message in reported}) == (12, {12})
    names = {name for message in reported for name in (*(message.train_metrics or {}), *(message.eval_metrics or {}))}
    assert metric in names


LIBRARY = """
import types
from tqdm import tqdm
code = compile("for step in tqdm(range(9)): pass", "/x/site-packages/library.py", "exec")
exec(code, {"tqdm": tqdm, "__name__": "library"})
"""
DOWNLOAD = "from tqdm import tqdm\nfor step in tqdm(range(9), unit='B'): pass"
INNER = "from tqdm import tqdm\nouter = tqdm(total=None)\nfor step in tqdm(range(9)): pass"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(LIBRARY, id="bar-of-a-library"),
        pytest.param(DOWNLOAD, id="download"),
        pytest.param(INNER, id="inner-bar"),
    ],
)
@needing("tqdm")
def test_other_bars(script: str, tmp_path: Path) -> None:
    """Bars that do not tell of the training are not reported."""
    assert trained(tmp_path, script) == []


@pytest.fixture
def manager(session_cluster: Cluster, tmp_path: Path) -> Iterator[Manager]:
    """Our manager instead of that of the session: it has an image with the reporter."""
    session_cluster.manager.stop()
    settings: dict[str, Any] = {
        "plugins": {"configuration": {"progress-reporter": {"image": "trainer-operator"}}},
        "progress": {"statusInterval": "200ms", "readInterval": "50ms"},
    }
    process = make_manager(session_cluster, tmp_path, **settings)
    try:
        process.start(ready="started manager")
        yield process
    finally:
        process.stop()
        session_cluster.manager.start(ready="started manager")


LOOP = """
from tqdm import tqdm
import time
for step in tqdm(range(20), mininterval=0):
    time.sleep(0.05)
"""


@needing("tqdm")
@pytest.mark.usefixtures("manager")
def test_on_a_cluster(cluster: Cluster) -> None:
    """A TrainJob with the annotation shows the progress of a script that reports none."""
    if not cluster.is_local:
        pytest.skip("needs an image with tqdm")
    job = train_job("demo", LOOP)
    job["metadata"]["annotations"] = {"trainer.kubeflow.org/trainer-status-reporter": "true"}
    cluster.apply(job)
    wait_for_progress(cluster, "demo", progressPercentage=100, currentStep=20)
    cluster.wait_for_condition("demo", "Complete")
