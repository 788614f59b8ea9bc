"""The callback for Keras."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.progress.callbacks.conftest import Reports, framework


class Callback:
    """Stands for that of Keras."""

    params: dict[str, object]
    model = SimpleNamespace(stop_training=False)


class OldCallback(Callback):
    """Stands for that of Keras 2."""


KERAS = {"keras": framework(), "keras.callbacks": framework(Callback=Callback)}
NO_KERAS = {"keras": None, "tf_keras": None, "tensorflow": None}


@pytest.fixture
def callback(load: Callable[..., ModuleType]) -> Any:
    return load("keras", KERAS).TrainJobCallback()


def train(callback: Any, *, steps: int | None, epochs: int = 2, first: int = 0, stop_after: int = 3) -> None:
    """What `fit` calls for epochs of three batches each; the last one may have fewer."""
    callback.params = {"epochs": epochs, "steps": steps}
    callback.on_train_begin()
    for epoch in range(first, epochs):
        callback.on_epoch_begin(epoch)
        for batch in range(stop_after if epoch == epochs - 1 else 3):
            callback.on_train_batch_end(batch, {"loss": batch / 10})
        callback.on_epoch_end(epoch, {"loss": 0.1, "val_loss": 0.2})
    callback.on_train_end()


def test_training(callback: Any, reports: Reports) -> None:
    """Every batch is a step, and validation comes with the epoch."""
    train(callback, steps=3)
    totals = {"total_steps": 6, "total_epochs": 2}
    assert [report["current_step"] for report in reports.all] == [0, 1, 2, 3, 3, 3, 4, 5, 6, 6, 6]
    assert reports.all[2] == totals | {"current_step": 2, "current_epoch": 0, "train_metrics": {"loss": 0.1}}
    metrics = {"train_metrics": {"loss": 0.1}, "eval_metrics": {"val_loss": 0.2}}
    assert reports.all[4] == totals | {"current_step": 3, "current_epoch": 1} | metrics
    assert reports.last == totals | {"current_step": 6, "current_epoch": 2, "force": True}


def test_data_without_length(callback: Any, reports: Reports) -> None:
    """The first epoch tells how many steps the others have."""
    train(callback, steps=None)
    assert "total_steps" not in reports.all[3]
    assert [report["current_step"] for report in reports.all] == [0, 1, 2, 3, 3, 3, 4, 5, 6, 6, 6]
    assert reports.last["total_steps"] == 6


def test_resumed_training(callback: Any, reports: Reports) -> None:
    """A training that begins with a later epoch begins with a later step."""
    train(callback, steps=3, first=1)
    assert reports.all[0] == {"current_step": 3, "total_steps": 6, "current_epoch": 1, "total_epochs": 2}


def test_resumed_training_of_data_without_length(callback: Any, reports: Reports) -> None:
    """Where nobody knows how many steps there were before, none are reported."""
    train(callback, steps=None, epochs=3, first=1)
    assert reports.all[0] == {"current_epoch": 1, "total_epochs": 3}
    assert reports.last["current_step"] == 9


def test_training_that_stops_early(callback: Any, reports: Reports) -> None:
    """A training that is stopped within an epoch ends with the steps that it has made."""
    train(callback, steps=3, stop_after=1)
    position = {"current_step": 4, "total_steps": 6, "current_epoch": 1, "total_epochs": 2}
    assert reports.last == position | {"force": True}


def test_training_of_data_without_length_that_stops_early(callback: Any, reports: Reports) -> None:
    """Nobody knows how much of an epoch is done that is stopped before any other has ended: there is no 100 %."""
    callback.model = SimpleNamespace(stop_training=True)
    train(callback, steps=None, epochs=1)
    assert reports.last == {"current_step": 3, "current_epoch": 0, "total_epochs": 1, "force": True}


def test_loop_without_fit(callback: Any, reports: Reports) -> None:
    """A loop of one's own need not say how long it is, nor have a model of Keras; Keras has None for both."""
    callback.params = callback.model = None
    callback.on_train_begin()
    for epoch in (0, 1):
        callback.on_epoch_begin(epoch)
        callback.on_train_batch_end(0, {"loss": 0.5})
        callback.on_epoch_end(epoch)
    callback.on_train_end()
    assert [report["current_step"] for report in reports.all] == [0, 1, 1, 1, 2, 2, 2]
    assert reports.last == {"current_step": 2, "current_epoch": 2, "force": True}


def test_batches_that_overtake_each_other(callback: Any, reports: Reports) -> None:
    """Keras calls from several threads: no step is followed by an earlier one."""
    callback.params = {"epochs": 1, "steps": 3}
    callback.on_train_begin()
    for batch in (0, 2, 1):
        callback.on_train_batch_end(batch, {})
    assert [report["current_step"] for report in reports.all] == [1, 3]
    assert callback.async_safe


def test_evaluation_only(callback: Any, reports: Reports) -> None:
    """An evaluation apart from any training is reported at once, one within it with the epoch."""
    callback.on_test_end({"loss": 0.3})
    assert reports.all == [{"eval_metrics": {"loss": 0.3}, "force": True}]

    callback.params = {"epochs": 1, "steps": 3}
    callback.on_train_begin()
    callback.on_test_end({"loss": 0.3})
    assert len(reports.all) == 1


@pytest.mark.parametrize(
    ("frameworks", "expected"),
    [
        pytest.param(KERAS | {"tf_keras": None, "tensorflow": None}, Callback, id="keras"),
        pytest.param(
            NO_KERAS | {"tf_keras": framework(), "tf_keras.callbacks": framework(Callback=OldCallback)},
            OldCallback,
            id="keras-2",
        ),
        pytest.param(
            NO_KERAS
            | {
                "tensorflow": framework(),
                "tensorflow.keras": framework(),
                "tensorflow.keras.callbacks": framework(Callback=OldCallback),
            },
            OldCallback,
            id="tensorflow",
        ),
    ],
)
def test_packages(frameworks: dict[str, object], expected: type, load: Callable[..., ModuleType]) -> None:
    """Whichever package is there will do."""
    assert load("keras", frameworks, as_name="keras_callback").TrainJobCallback.__mro__[1] is expected


def test_missing(load: Callable[..., ModuleType]) -> None:
    """Without Keras the import says what to do."""
    with pytest.raises(ImportError, match="pip install keras"):
        load("keras", NO_KERAS | {"keras.callbacks": None, "tf_keras.callbacks": None, "tensorflow.keras": None})
