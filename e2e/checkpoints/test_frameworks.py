"""Trainings without a line about checkpoints, which the reporter has save and resume; each runs its real framework.

A training tells each of its steps, so two processes that are interrupted can be compared with one that is not: the
steps that were done twice, and the losses.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pytest

from e2e.prerequisites import needs_module
from trainer.checkpoints import SAVED_AND_ENDED
from trainer.progress.injection.install import install
from trainer.progress.protocol import parse, tagged_lines

pytestmark = pytest.mark.timeout(400)

COMMON = """
import os, signal, sys

def step_was(step, loss):
    if os.environ.get("RANK", "0") == "0":
        print("STEP", step, loss, flush=True)
    if step == int(os.environ.get("TERM_AT", "0")):
        os.kill(os.getpid(), signal.SIGTERM)

def is_saving(step):
    if step == int(os.environ.get("KILL_AT", "0")):
        os.kill(os.getpid(), signal.SIGKILL)
"""
TRANSFORMERS = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

class Say(TrainerCallback):
    def on_log(self, args, state, control, logs, **others):
        if "loss" in logs:
            step_was(state.global_step, logs["loss"])

class Slow(Trainer):
    def _save_rng_state(self, output_dir):
        is_saving(self.state.global_step)
        super()._save_rng_state(output_dir)

set_seed(1)
config = dict(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1, bos_token_id=None, eos_token_id=None)
model = GPT2LMHeadModel(GPT2Config(**config))
rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 16, (64, 8))]
arguments = TrainingArguments(
    output_dir="out", num_train_epochs=EPOCHS, per_device_train_batch_size=8, logging_steps=1, save_steps=5,
    save_total_limit=1, learning_rate=0.01, report_to="none", use_cpu=True, disable_tqdm=True,
)
Slow(model, arguments, train_dataset=rows, callbacks=[Say()]).train(RESUME)
"""
LIGHTNING = """
import torch
from torch.utils.data import DataLoader, TensorDataset
import lightning as L
from lightning.pytorch.callbacks import ModelCheckpoint

class Line(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1))

    def training_step(self, batch, index):
        loss = (self.line(batch[0]) - batch[0].sum(1, keepdim=True)).pow(2).mean()
        step_was(self.global_step + 1, loss.item())
        return loss

    def validation_step(self, batch, index):
        self.log("off", self.line(batch[0]).abs().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), 0.05)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)]

    def on_save_checkpoint(self, checkpoint):
        is_saving(self.global_step)

L.seed_everything(1)
world = int(os.environ.get("WORLD_SIZE", "1"))
data = DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=8 // world, shuffle=True)
L.Trainer(
    max_epochs=EPOCHS, logger=False, accelerator="cpu", devices=world, enable_progress_bar=False,
    callbacks=[ModelCheckpoint(every_n_train_steps=5)],
).fit(Line(), data, DataLoader(TensorDataset(torch.randn(16, 4)), batch_size=8), ckpt_path=RESUME)
"""
KERAS = """
os.environ |= {"KERAS_BACKEND": sys.argv[1], "TF_CPP_MIN_LOG_LEVEL": "2"}
import keras
import numpy as np

class Say(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.before = epoch * 8

    def on_train_batch_end(self, batch, logs=None):
        self.model.step = self.before + batch + 1
        step_was(self.model.step, logs["loss"])

class Slow(keras.Sequential):
    def save_weights(self, path, *given, **options):
        super().save_weights(path, *given, **options)
        is_saving(self.step)

keras.utils.set_random_seed(1)
layers = keras.layers
model = Slow([layers.Input((4,)), layers.Dense(8), layers.Dropout(0.3), layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.05), "mse", metrics=["mae"])
x = np.random.default_rng(0).random((64, 4), dtype="float32")
model.fit(
    x, x.sum(1), batch_size=8, epochs=EPOCHS, verbose=0, callbacks=[Say()], validation_data=(x, x.sum(1)),
    shuffle=sys.argv[1] != "tensorflow",
)
"""
STEP = re.compile(r"STEP ([0-9]+) (\S+)")
STEPS = 24
"""Of three epochs."""
FRAMEWORKS = [
    pytest.param(TRANSFORMERS, "", marks=needs_module("transformers"), id="transformers"),
    pytest.param(LIGHTNING, "", marks=needs_module("lightning"), id="lightning"),
    pytest.param(KERAS, "torch", marks=needs_module("keras", "torch"), id="keras-torch"),
    pytest.param(KERAS, "jax", marks=needs_module("keras", "jax"), id="keras-jax"),
    pytest.param(KERAS, "tensorflow", marks=needs_module("keras", "tensorflow"), id="keras-tensorflow"),
]


def started(
    directory: Path,
    script: str,
    *arguments: str,
    environment: Mapping[str, str] = MappingProxyType({}),
    epochs: int = 3,
    resume: str = "None",
    processes: int = 1,
    is_on_a_volume: bool = False,
) -> tuple[int, dict[int, float], str]:
    """Run a training with the reporter: its exit code, the losses of its steps, and all that it has written."""
    text = COMMON + script.replace("EPOCHS", str(epochs)).replace("RESUME", resume)
    text += "\nsys.stdout.flush()\nos._exit(0)\n"  # threads of frameworks may abort a process that Python takes down
    (directory / "train.py").write_text(text)
    install(directory / "reporter")
    if is_on_a_volume:
        mounts = directory / "reporter" / "trainer_reporter" / "checkpoints" / "frameworks" / "mounts.py"
        mounts.write_text("def is_lasting(path):\n    return True\n")
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [sys.executable, *(torchrun if processes > 1 else []), "train.py", *arguments]
    variables = {
        **os.environ,
        "PYTHONPATH": str(directory / "reporter"),
        "PYTHONWARNINGS": "ignore::trainer_reporter.Never",
        "TRAINER_STATUS_INTERVAL_SECONDS": "0",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        **environment,
    }
    result = subprocess.run(command, cwd=directory, env=variables, capture_output=True, timeout=300, check=False)
    output = result.stdout.decode()
    losses = {int(step): float(loss) for step, loss in STEP.findall(output)}
    return result.returncode, losses, output + result.stderr.decode()


@cache
def undisturbed(directory: Path, script: str, *arguments: str) -> dict[int, float]:
    """The losses of a training that nothing interrupts, and that has no checkpoints of ours."""
    directory.mkdir()
    code, losses, written = started(directory, script, *arguments)
    assert code == 0, written
    return losses


@pytest.fixture(scope="module")
def undisturbed_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the trainings run that nothing interrupts, one for each framework."""
    return tmp_path_factory.mktemp("undisturbed")


def _name(script: str, argument: str) -> str:
    return argument or ("transformers" if script is TRANSFORMERS else "lightning")


def checkpoints_of(written: str) -> list[dict[str, object]]:
    """The checkpoints that a training has told of."""
    stamped = "".join(f"2026-01-02T03:04:05Z {line}\n" for line in written.splitlines()).encode()
    parsed = [json.loads(line.payload) for line in tagged_lines(stamped) if parse(line.payload)]
    return [message["checkpoint"] for message in parsed if "checkpoint" in message]


@pytest.mark.parametrize(("script", "argument"), FRAMEWORKS)
@pytest.mark.parametrize(
    ("interruption", "code", "again"),
    [
        pytest.param({"TERM_AT": "7"}, SAVED_AND_ENDED, 1, id="signal"),
        pytest.param({"TERM_AT": "8"}, SAVED_AND_ENDED, 1, id="signal-at-the-end-of-an-epoch"),
        pytest.param({"KILL_AT": "10"}, -9, 6, id="killed-while-it-saves"),
    ],
)
def test_interruptions(
    script: str,
    argument: str,
    interruption: dict[str, str],
    code: int,
    again: int,
    undisturbed_in: Path,
    tmp_path: Path,
) -> None:
    """A training that is interrupted goes on from its newest complete checkpoint, as if nothing had happened."""
    expected = undisturbed(undisturbed_in / _name(script, argument), script, argument)
    directory = {"TRAINER_CHECKPOINT_DIR": str(tmp_path / "claim")}
    if script is KERAS and "KILL_AT" in interruption:
        directory["TRAINER_CHECKPOINT_SECONDS"] = "0.000001"  # it has no arguments that say how often

    first = started(tmp_path, script, argument, environment=directory | interruption)
    assert first[0] == code, first[2]
    second = started(tmp_path, script, argument, environment=directory)
    assert second[0] == 0, second[2]

    assert len({*first[1]} & {*second[1]}) < again
    assert {**first[1], **second[1]} == pytest.approx(expected, rel=1e-5)
    assert [*expected] == [*range(1, STEPS + 1)]
    told = checkpoints_of(first[2])[-1]
    assert told["step"] == min(second[1]) - 1
    assert f"trainer: goes on after step {told['step']}, from {tmp_path}/claim/{told['path']}\n" in second[2]
    assert "trainer: checkpoints" not in first[2] + second[2]


@needs_module("transformers")
def test_output_on_a_volume(undisturbed_in: Path, tmp_path: Path) -> None:
    """On a volume the Trainer writes where the script says, and what is half written there is not gone on from."""
    expected = undisturbed(undisturbed_in / _name(TRANSFORMERS, ""), TRANSFORMERS, "")
    directory = {"TRAINER_CHECKPOINT_DIR": str(tmp_path / "claim")}
    interruption = {"KILL_AT": "10"}
    code, losses, written = started(tmp_path, TRANSFORMERS, environment=directory | interruption, is_on_a_volume=True)
    assert (code, max(losses)) == (-9, 10), written
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"checkpoint-5", "checkpoint-10"}
    code, more, written = started(tmp_path, TRANSFORMERS, environment=directory, is_on_a_volume=True)
    assert (code, min(more)) == (0, 6), written
    assert {**losses, **more} == pytest.approx(expected, rel=1e-5)
    assert f"goes on after step 5, from {tmp_path}/claim/" in written
    assert (tmp_path / "out" / "checkpoint-24" / "trainer_state.json").is_file()
    (link,) = (path for path in (tmp_path / "claim").rglob("checkpoint-24") if path.is_symlink())
    assert link.resolve() == (tmp_path / "out" / "checkpoint-24").resolve()


@pytest.mark.parametrize(("script", "argument"), FRAMEWORKS[:2])
def test_two_processes(script: str, argument: str, tmp_path: Path) -> None:
    """All ranks save at one step and end with one code, by which torchrun ends, and go on together."""
    directory = {"TRAINER_CHECKPOINT_DIR": str(tmp_path / "claim")}
    epochs = 40
    (tmp_path / "whole").mkdir()
    whole = started(tmp_path / "whole", script, argument, epochs=epochs, processes=2)
    assert whole[0] == 0, whole[2]
    interruption = {"TERM_AT": "30"}
    first = started(tmp_path, script, argument, environment=directory | interruption, epochs=epochs, processes=2)
    assert first[0] == SAVED_AND_ENDED, first[2]
    second = started(tmp_path, script, argument, environment=directory, epochs=epochs, processes=2)
    assert second[0] == 0, second[2]
    assert not {*first[1]} & {*second[1]}
    assert {**first[1], **second[1]} == pytest.approx(whole[1], rel=1e-5)


@pytest.mark.parametrize(
    ("script", "resume"),
    [
        pytest.param(TRANSFORMERS, "False", marks=needs_module("transformers"), id="transformers"),
        pytest.param(LIGHTNING, "'last'", marks=needs_module("lightning"), id="lightning"),
    ],
)
def test_own_logic(script: str, resume: str, tmp_path: Path) -> None:
    """A script that says itself where it resumes from is left alone: what a signal does stays the same, too."""
    claim = tmp_path / "claim"
    claim.mkdir()
    environment = {"TERM_AT": "7", "TRAINER_CHECKPOINT_DIR": str(claim)}
    code, losses, written = started(tmp_path, script, environment=environment, resume=resume)
    assert code != SAVED_AND_ENDED, written
    assert max(losses) == 7
    assert list(claim.iterdir()) == []
