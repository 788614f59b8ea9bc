"""The progress callbacks in their real frameworks, each in a process of its own as in a pod."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import trainer.progress.callbacks
import trainer.progress.report
from e2e.prerequisites import needs_module
from trainer.progress.protocol import Message, parse, tagged_lines

CALLBACKS = Path(trainer.progress.callbacks.__file__).parent
REPORT = Path(trainer.progress.report.__file__)

pytestmark = pytest.mark.timeout(240)

HUGGINGFACE = """
import sys
import torch
from huggingface_callback import TrainJobCallback
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

class Stop(TrainerCallback):
    def on_step_end(self, args, state, control, **others):
        control.should_training_stop = state.global_step == 6

config = dict(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1, bos_token_id=None, eos_token_id=None)
model = GPT2LMHeadModel(GPT2Config(**config))
rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 16, (32, 8))]

def trainer(*callbacks):
    arguments = TrainingArguments(
        output_dir=sys.argv[1], num_train_epochs=3, per_device_train_batch_size=8, logging_steps=2, save_steps=2,
        eval_strategy="epoch", report_to="none", use_cpu=True,
    )
    evaluation = {"small": rows[:8], "large": rows[:16]}
    return Trainer(model, arguments, train_dataset=rows, eval_dataset=evaluation, callbacks=list(callbacks))

trainer(TrainJobCallback(), Stop()).train()
print("AND AGAIN", flush=True)
trainer(TrainJobCallback()).train(resume_from_checkpoint=True)
"""

LIGHTNING = """
import sys
import torch
from torch.utils.data import DataLoader, TensorDataset
L = __import__(sys.argv[2])
from lightning_callback import TrainJobCallback

assert issubclass(TrainJobCallback, L.Callback)

class Stop(L.Callback):
    def on_train_batch_end(self, trainer, *others):
        trainer.should_stop = trainer.global_step == 8

class Line(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        loss = self.line(batch[0]).pow(2).mean()
        self.log("loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        self.log("off", self.line(batch[0]).abs().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

data = DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=8)

def fit(*callbacks, **options):
    trainer = L.Trainer(
        max_epochs=3, callbacks=list(callbacks), log_every_n_steps=2, logger=False, enable_checkpointing=False,
        accelerator="cpu", default_root_dir=sys.argv[1],
    )
    trainer.fit(Line(), data, data, **options)
    return trainer

fit(TrainJobCallback(), Stop()).save_checkpoint(sys.argv[1] + "/last.ckpt")
print("AND AGAIN", flush=True)
fit(TrainJobCallback(), ckpt_path=sys.argv[1] + "/last.ckpt", weights_only=False)
"""

KERAS = """
import os, sys
os.environ |= {"KERAS_BACKEND": sys.argv[2], "TF_CPP_MIN_LOG_LEVEL": "2"}
import numpy as np
if sys.argv[2] == "tensorflow":
    import tensorflow as tf
    keras = tf.keras
else:
    import keras
from keras_callback import TrainJobCallback

class Stop(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.seen = getattr(self, "seen", 0) + 1
        self.model.stop_training = self.seen == 6

model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.random.default_rng(0).random((32, 4), dtype="float32")
data = {"x": x, "y": x.sum(1), "batch_size": 8, "epochs": 3, "validation_data": (x, x.sum(1))}
model.fit(**data, callbacks=[TrainJobCallback(), Stop()])
print("AND AGAIN", flush=True)
model.fit(**data, callbacks=[TrainJobCallback()], initial_epoch=1)
"""

NUMBERS = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import jax.numpy
import numpy
import tensorflow
import torch
from report import report

weight = torch.tensor(0.5, requires_grad=True)
report(current_step=numpy.int64(1), total_steps=torch.tensor(4))
report(train_metrics={
    "float32": numpy.float32(0.1), "int64": numpy.int64(7), "bfloat16": torch.tensor(0.5, dtype=torch.bfloat16),
    "with graph": weight * 3, "jax": jax.numpy.float32(0.1), "one": numpy.array([0.25]), "tf": tensorflow.constant(2.5),
})
print("AND AGAIN", flush=True)
report(current_step=numpy.int32(4), train_metrics={"two": torch.zeros(2)}, eval_metrics={"none": torch.tensor(0.0)})
"""


def train(
    script: str, directory: Path, *arguments: str, expected_warnings: tuple[bytes, ...] = ()
) -> tuple[list[Message], list[Message]]:
    """Run a script beside copies of what it needs; what it reports for a training that stops early, and for another."""
    shutil.copy(REPORT, directory)
    for name in ("huggingface", "keras", "lightning"):
        shutil.copy(CALLBACKS / f"{name}.py", directory / f"{name}_callback.py")
    (directory / "train.py").write_text(script)
    (directory / "out").mkdir()
    # Every call becomes a line, so that nothing depends on how fast this machine is. Nothing is downloaded.
    environment = os.environ | {"TRAINER_STATUS_INTERVAL_SECONDS": "0", "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
    result = subprocess.run(
        [sys.executable, "train.py", "out", *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        timeout=200,
        check=False,
    )
    assert result.returncode == 0, result.stderr.decode()
    warnings = [line for line in result.stderr.splitlines() if line.startswith(b"report()")]
    assert warnings == list(expected_warnings)
    first, again = (messages(part) for part in result.stdout.split(b"AND AGAIN\n"))
    return first, again


def messages(log: bytes) -> list[Message]:
    """What the controller manager reads in a log."""
    stamped = b"".join(b"2026-01-02T03:04:05Z " + line for line in log.splitlines(keepends=True))
    return [parse(line.payload) for line in tagged_lines(stamped)]


def check_positions(first: list[Message], again: list[Message], *, stops_after: int, goes_on_after: int) -> None:
    """The first training stops before its 12 steps of 3 epochs; the second one resumes and completes."""
    for reported, begin, end in ((first, 0, stops_after), (again, goes_on_after, 12)):
        steps = [message.current_step or 0 for message in reported]
        assert steps == sorted(steps)
        assert (steps[0], steps[-1]) == (begin, end)
        assert len(set(steps)) > (end - begin) // 2  # threads of Keras may overtake each other
        assert {message.total_steps for message in reported} == {12}
        assert {message.total_epochs for message in reported} == {3}
        assert {message.progress_percentage for message in reported} == {None}
    assert first[-1].current_epoch == stops_after // 4
    assert again[-1].current_epoch == 3


def names(reported: list[Message]) -> tuple[set[str], set[str]]:
    """The names of the training metrics and of the evaluation metrics."""
    train_names = {name for message in reported for name in message.train_metrics or {}}
    return train_names, {name for message in reported for name in message.eval_metrics or {}}


@needs_module("transformers")
def test_huggingface(tmp_path: Path) -> None:
    """A Trainer that stops early and goes on from a checkpoint reports its steps, losses and evaluations."""
    first, again = train(HUGGINGFACE, tmp_path)

    check_positions(first, again, stops_after=6, goes_on_after=6)
    for reported in (first, again):
        in_training, in_evaluation = names(reported)
        assert {"loss", "learning_rate", "grad_norm", "train_loss"} <= in_training
        assert not any(name.startswith("eval_") for name in in_training)
        assert {"eval_small_loss", "eval_large_loss"} <= in_evaluation
        assert {"loss", "train_loss"} <= set(reported[-2].train_metrics or {})


@needs_module("lightning")
@pytest.mark.parametrize("package", ["lightning", "pytorch_lightning"])
def test_lightning(package: str, tmp_path: Path) -> None:
    """A Trainer of either package that stops early and goes on from a checkpoint reports what its module logs."""
    first, again = train(LIGHTNING, tmp_path, package)

    check_positions(first, again, stops_after=8, goes_on_after=8)
    assert names(first) == names(again) == ({"loss", "loss_step", "loss_epoch"}, {"off"})


@needs_module("keras")
@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_keras(backend: str, tmp_path: Path) -> None:
    """`fit` that stops early, and `fit` that begins with a later epoch, report steps and validation."""
    first, again = train(KERAS, tmp_path, backend)

    check_positions(first, again, stops_after=6, goes_on_after=4)
    assert names(first) == names(again) == ({"loss"}, {"val_loss"})


@needs_module("jax", "tensorflow", "torch")
def test_numbers(tmp_path: Path) -> None:
    """Numbers of all frameworks arrive as they are, and a tensor of several is left out."""
    warning = b"report() left out trainMetrics[two]=Tensor: must be a finite number"
    first, again = train(NUMBERS, tmp_path, expected_warnings=(warning,))

    assert (first[0].current_step, first[0].total_steps) == (1, 4)
    assert first[1].train_metrics == {
        "float32": "0.10000000149011612",
        "int64": "7",
        "bfloat16": "0.5",
        "with graph": "1.5",
        "jax": "0.10000000149011612",
        "one": "0.25",
        "tf": "2.5",
    }
    assert again == [Message(current_step=4, eval_metrics={"none": "0.0"})]
