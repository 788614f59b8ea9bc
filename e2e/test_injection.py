"""Trainings without a line of progress code, beside which the manager puts a reporter; each runs its real framework."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from e2e.cluster import Cluster, train_job
from e2e.manager import Manager, with_reporter
from e2e.prerequisites import needs_module
from e2e.progress_view import wait_for_progress
from e2e.tiny_llama import LLAMA2, TINY
from trainer.progress.injection.install import install
from trainer.progress.protocol import Message, parse, tagged_lines
from trainer.progress.reported_parameters import parameters_in

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
PARSERS = """
import argparse, transformers
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--depth", type=int, default=2)
options, rest = parser.parse_known_args()
parser = transformers.HfArgumentParser(transformers.TrainingArguments)
parser.parse_args_into_dataclasses(args=rest)
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
KERAS_2 = """
import os, sys
os.environ |= {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
if sys.argv[1] == "tf_keras":
    import tf_keras as keras
else:
    from tensorflow import keras
import numpy as np

model = keras.Sequential([keras.layers.InputLayer(input_shape=(4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.random.default_rng(0).random((32, 4), dtype="float32")
model.fit(x, x.sum(1), batch_size=8, epochs=3, verbose=0)
"""
TF_KERAS = Path(sys.prefix) / "tf-keras"
"""Where `make` installs Keras 2."""
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
TUNE = {
    "one device": [
        *("lora_finetune_single_device", "--config", "llama2/7B_lora_single_device"),
        *("model=torchtune.models.llama2.lora_llama2", "model.lora_rank=4"),
    ],
    "two processes": [
        *("--nproc_per_node", "2", "full_finetune_distributed", "--config", "llama2/7B_full"),
        *("model=torchtune.models.llama2.llama2", "optimizer.fused=False"),
    ],
}
"""Recipes of torchtune, as `tune run` takes them."""


def trained(directory: Path, script: str, *arguments: str, paths: Sequence[Path] = ()) -> list[Message]:
    """What a script reports, with the reporter; without it, it says the same otherwise."""
    (directory / "train.py").write_text(
        f"import sys\n{script}\nprint('end', sys.warnoptions, flush=True)\nsys.exit(7)\n"
    )
    result = run(directory, [sys.executable, "train.py", *arguments], *paths)
    assert (result.returncode, b"end []\n" in result.stdout) == (7, True), result.stderr.decode()
    return messages(result)


def run(directory: Path, command: list[str], *paths: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a training with the reporter, and with other directories of modules."""
    reporter = directory / "reporter"
    reporter.mkdir()
    install(reporter)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, [*paths, reporter])),
        "PYTHONWARNINGS": "ignore::trainer_reporter.Never",
        "TRAINER_STATUS_INTERVAL_SECONDS": "0",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(directory),
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, timeout=200, check=False)


def messages(result: subprocess.CompletedProcess[bytes]) -> list[Message]:
    """What a training has reported; the reporter had nothing to complain of."""
    assert b"trainer: " not in result.stderr
    stamped = b"".join(b"2026-01-02T03:04:05Z " + line for line in result.stdout.splitlines(keepends=True))
    return [parse(line.payload) for line in tagged_lines(stamped)]


@pytest.mark.parametrize(
    ("script", "argument", "metric"),
    [
        pytest.param(TRANSFORMERS, "", "loss", marks=needs_module("transformers"), id="transformers"),
        pytest.param(LIGHTNING, "lightning", "loss", marks=needs_module("lightning"), id="lightning"),
        pytest.param(LIGHTNING, "pytorch_lightning", "loss", marks=needs_module("lightning"), id="pytorch-lightning"),
        pytest.param(KERAS, "tensorflow", "loss", marks=needs_module("keras", "tensorflow"), id="keras-tensorflow"),
        pytest.param(KERAS, "jax", "loss", marks=needs_module("keras", "jax"), id="keras-jax"),
        pytest.param(KERAS, "torch", "loss", marks=needs_module("keras", "torch"), id="keras-torch"),
        pytest.param(XGBOOST, "train", "rmse", marks=needs_module("xgboost"), id="xgboost"),
        pytest.param(XGBOOST, "fit", "rmse", marks=needs_module("xgboost", "sklearn"), id="xgboost-fit"),
        pytest.param(TQDM, "", "loss", marks=needs_module("tqdm"), id="tqdm"),
    ],
)
def test_frameworks(script: str, argument: str, metric: str, tmp_path: Path) -> None:
    """Twelve steps are reported to the end; exit code and what the script prints stay as they are."""
    check_twelve(trained(tmp_path, script, argument), metric)


@needs_module("transformers")
def test_parameters(tmp_path: Path) -> None:
    """The options of a script are said with their defaults, the arguments of a Trainer without them."""
    script = PARSERS + TRANSFORMERS.replace("num_train_epochs=3", "num_train_epochs=options.epochs")
    (tmp_path / "train.py").write_text(script)
    result = run(tmp_path, [sys.executable, "train.py", "--epochs", "3", "--learning_rate", "0.5"])
    assert result.returncode == 0, result.stderr.decode()
    stamped = b"".join(b"2026-01-02T03:04:05Z " + line for line in result.stderr.splitlines(keepends=True))
    own, parsed, given = [parameters_in(line.payload) or {} for line in tagged_lines(stamped)]
    assert own == {"epochs": "3", "depth": "2"}
    assert parsed["learning_rate"] == "0.5"
    assert len(parsed) < 5
    assert (given["logging_steps"], given["save_strategy"]) == ("2", "no")
    assert not {"weight_decay", "hub_token"} & {*given}


def check_twelve(reported: list[Message], metric: str) -> None:
    """Twelve steps are reported to the end, and a metric."""
    steps = [message.current_step for message in reported if message.current_step is not None]
    assert steps == sorted(steps)
    assert (steps[-1], {message.total_steps for message in reported}) == (12, {12})
    names = {name for message in reported for name in (*(message.train_metrics or {}), *(message.eval_metrics or {}))}
    assert metric in names


@pytest.mark.parametrize("name", ["tf_keras", "tf.keras"])
@pytest.mark.skipif(not TF_KERAS.is_dir(), reason="tf-keras is not installed: make nightly installs it")
@needs_module("tensorflow")
def test_keras_2(name: str, tmp_path: Path) -> None:
    """Keras 2 reports as Keras 3 does, by its own name and by that in TensorFlow."""
    check_twelve(trained(tmp_path, KERAS_2, name, paths=[TF_KERAS]), "loss")


@pytest.mark.parametrize("recipe", TUNE)
@needs_module("torchtune")
def test_torchtune(recipe: str, tmp_path: Path) -> None:
    """`tune run` reports the optimizer steps of all epochs, also where torchrun starts its processes."""
    for script, name in (("dataset_initializer", "dataset"), ("make_model", "model")):
        environment = os.environ | {"TRANSFER_PATH": str(tmp_path / name)}
        command = [sys.executable, str(LLAMA2 / f"{script}.py"), str(tmp_path / name)]
        subprocess.run(command, env=environment, check=True, timeout=100)
    data = [
        "dataset=torchtune.datasets.alpaca_dataset",
        "dataset.source=parquet",
        f"dataset.data_dir={tmp_path}/dataset/data",
    ]
    files = ",".join(f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
    model = [
        f"tokenizer.path={tmp_path}/model/tokenizer.model",
        f"checkpointer.checkpoint_dir={tmp_path}/model",
        f"checkpointer.checkpoint_files=[{files}]",
    ]
    length = ["epochs=3", "max_steps_per_epoch=4", f"output_dir={tmp_path}/output"]
    tune = [f"{sys.exec_prefix}/bin/tune", "run", *TUNE[recipe], *TINY, *data, *model, *length]

    result = run(tmp_path, tune, LLAMA2)
    assert result.returncode == 0, result.stderr.decode()
    check_twelve(messages(result), "Loss")


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
@needs_module("tqdm")
def test_other_bars(script: str, tmp_path: Path) -> None:
    """Bars that do not tell of the training are not reported."""
    assert trained(tmp_path, script) == []


@pytest.fixture
def manager(session_cluster: Cluster, tmp_path: Path) -> Iterator[Manager]:
    """Our manager instead of that of the session: it has an image with the reporter."""
    with with_reporter(session_cluster, tmp_path) as process:
        yield process


LOOP = """
from tqdm import tqdm
import time
for step in tqdm(range(20), mininterval=0):
    time.sleep(0.05)
"""


@needs_module("tqdm", "torch")
@pytest.mark.usefixtures("manager")
def test_shipped_runtime(cluster: Cluster) -> None:
    """A script on a shipped runtime shows its progress without being asked to."""
    cluster.require_local("tqdm")
    job = train_job("demo", LOOP, runtime="torch-distributed")
    del job["spec"]["trainer"]["image"]
    cluster.apply(job)
    wait_for_progress(cluster, "demo", progressPercentage=100, currentStep=20)
    cluster.complete("demo")
