"""The callback for Hugging Face transformers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.progress.callbacks.conftest import Reports, framework

POSITION = {"current_step": 40, "total_steps": 100, "current_epoch": 1, "total_epochs": 3}


def state(**changes: object) -> SimpleNamespace:
    """The state of a training in its second epoch."""
    known = {"max_steps": 100, "global_step": 40, "epoch": 1.2, "num_train_epochs": 3}
    return SimpleNamespace(**known | {"is_world_process_zero": True, "is_local_process_zero": True} | changes)


@pytest.fixture
def callback(load: Callable[..., ModuleType]) -> Any:
    return load("huggingface", {"transformers": framework(TrainerCallback=object)}).TrainJobCallback()


@pytest.mark.parametrize("name", ["on_train_begin", "on_step_end", "on_train_end"])
def test_position(name: str, callback: Any, reports: Reports) -> None:
    """A training that goes on from a checkpoint or stops early reports the steps that are made, and no other end."""
    getattr(callback, name)(None, state(), None)
    assert reports.all == [POSITION | ({"force": True} if name == "on_train_end" else {})]


def test_logs(callback: Any, reports: Reports) -> None:
    """Training metrics stay beside later ones; evaluations, which are logged as well, are none of them."""
    callback.on_log(None, state(), None, logs={"loss": 0.5, "epoch": 1.2})
    callback.on_log(None, state(), None, logs={"eval_loss": 0.6, "epoch": 1.2})
    callback.on_log(None, state(), None, logs={"train_runtime": 9.5, "epoch": 1.2})
    assert reports.all == [
        POSITION | {"train_metrics": {"loss": 0.5, "train_runtime": 9.5}},
        POSITION | {"train_metrics": {"loss": 0.5, "train_runtime": 9.5}},
    ]


def test_evaluations(callback: Any, reports: Reports) -> None:
    """Evaluations of several data sets stay side by side, whatever their prefix."""
    callback.on_log(None, state(), None, logs={"loss": 0.5, "val_loss": 0.7})
    callback.on_evaluate(None, state(), None, metrics={"val_loss": 0.7, "epoch": 1.2})
    callback.on_evaluate(None, state(), None, metrics={"eval_loss": 0.6})
    assert reports.last == POSITION | {
        "train_metrics": {"loss": 0.5},
        "eval_metrics": {"val_loss": 0.7, "eval_loss": 0.6},
    }


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        pytest.param({"num_train_epochs": sys.maxsize}, {"total_epochs"}, id="data-without-length"),
        pytest.param({"epoch": None}, {"current_epoch"}, id="before-the-first-epoch"),
        pytest.param({"max_steps": -1}, set(POSITION), id="steps-unknown"),
    ],
)
def test_unknown(changes: dict[str, object], missing: set[str], callback: Any, reports: Reports) -> None:
    """What the Trainer does not know is not reported."""
    callback.on_evaluate(None, state(**changes), None, metrics={"eval_loss": 0.5})
    assert set(reports.last) == (set(POSITION) - missing) | {"eval_metrics"}


@pytest.mark.parametrize(
    ("is_world_zero", "is_local_zero", "expected"),
    [
        pytest.param(True, True, 1, id="rank-0"),
        pytest.param(False, True, 1, id="first-of-another-node"),
        pytest.param(False, False, 0, id="second-of-a-node"),
    ],
)
def test_processes(is_world_zero: bool, is_local_zero: bool, expected: int, callback: Any, reports: Reports) -> None:
    """The first process of every node reports: `report` knows whose log is followed, whatever their ranks."""
    callback.on_step_end(None, state(is_world_process_zero=is_world_zero, is_local_process_zero=is_local_zero), None)
    assert len(reports.all) == expected


def test_copy(load: Callable[..., ModuleType]) -> None:
    """A copy works beside a copy of report.py."""
    load("huggingface", {"transformers": framework(TrainerCallback=object)}, as_name="huggingface_callback")


def test_missing(load: Callable[..., ModuleType]) -> None:
    """Without transformers the import says what to do."""
    with pytest.raises(ImportError, match="pip install transformers accelerate"):
        load("huggingface", {"transformers": None})
