"""The callback for Lightning."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.progress.callbacks.conftest import Reports, framework

POSITION = {"current_step": 40, "total_steps": 100, "current_epoch": 1, "total_epochs": 3}
AUTOMATIC = SimpleNamespace(automatic_optimization=True)
MANUAL = SimpleNamespace(automatic_optimization=False)


class Callback:
    """Stands for that of a package."""


class OtherCallback:
    """Stands for that of the other package."""


class Trainer(SimpleNamespace):
    """A trainer in its second epoch."""

    def __init__(self, **changes: object) -> None:
        known = {
            "global_step": 40,
            "estimated_stepping_batches": 100,
            "max_steps": -1,
            "max_epochs": 3,
            "current_epoch": 1,
            "num_training_batches": 34,
            "log_every_n_steps": 10,
            "is_global_zero": True,
            "local_rank": 0,
            "sanity_checking": False,
            "is_last_batch": True,
            "callback_metrics": {},
            "fit_loop": SimpleNamespace(total_batch_idx=19),
        }
        super().__init__(**known | changes)


class Unknowable(Trainer):
    """Accumulates batches differently from epoch to epoch."""

    def __getattribute__(self, name: str) -> object:
        if name == "estimated_stepping_batches":
            raise RuntimeError
        return super().__getattribute__(name)


@pytest.fixture
def callback(load: Callable[..., ModuleType]) -> Any:
    module = load("lightning", {"lightning.pytorch": framework(Callback=Callback), "pytorch_lightning": None})
    return module.TrainJobCallback()


def test_training(callback: Any, reports: Reports) -> None:
    """Every step is reported, with metrics at those that are logged, and each epoch when it has ended."""
    trainer = Trainer(callback_metrics={"loss": 0.5})
    callback.on_train_start(trainer, AUTOMATIC)
    callback.on_train_batch_end(trainer, AUTOMATIC, None, None, 6)
    trainer.global_step = 41
    callback.on_train_batch_end(trainer, AUTOMATIC, None, None, 7)
    callback.on_train_epoch_end(trainer, AUTOMATIC)
    callback.on_train_end(trainer, AUTOMATIC)

    later = POSITION | {"current_step": 41}
    assert reports.all == [
        POSITION,
        POSITION | {"train_metrics": {"loss": 0.5}},
        later,
        later | {"current_epoch": 2, "train_metrics": {"loss": 0.5}},
        later | {"current_epoch": 2, "force": True},
    ]


def test_training_that_stops_within_an_epoch(callback: Any, reports: Reports) -> None:
    """An epoch that is not done does not count as done, as it does for Lightning: there is no 100 %."""
    trainer = Trainer(is_last_batch=False)
    callback.on_train_start(trainer, AUTOMATIC)
    callback.on_train_epoch_end(trainer, AUTOMATIC)
    trainer.current_epoch = 2
    callback.on_train_end(trainer, AUTOMATIC)
    assert reports.last == POSITION | {"force": True}


def test_validation(callback: Any, reports: Reports) -> None:
    """What changes while validating is an evaluation metric, and never again one of the training."""
    trainer = Trainer(callback_metrics={"loss": 0.5})
    callback.on_train_start(trainer, AUTOMATIC)
    callback.on_validation_start(trainer, AUTOMATIC)
    trainer.callback_metrics |= {"accuracy": 0.9}
    callback.on_validation_end(trainer, AUTOMATIC)
    assert reports.last == POSITION | {"eval_metrics": {"accuracy": 0.9}}

    callback.on_train_batch_end(trainer, AUTOMATIC, None, None, 0)
    assert reports.last == POSITION | {"train_metrics": {"loss": 0.5}}


def test_sanity_check(callback: Any, reports: Reports) -> None:
    """What the Trainer measures before it trains, to see whether it can, is not reported."""
    trainer = Trainer(sanity_checking=True, callback_metrics={"accuracy": 0.1})
    callback.on_validation_start(trainer, AUTOMATIC)
    callback.on_validation_end(trainer, AUTOMATIC)
    assert reports.all == []


def test_validation_only(callback: Any, reports: Reports) -> None:
    """A validation apart from any training says nothing about its position."""
    trainer = Trainer()
    callback.on_validation_start(trainer, AUTOMATIC)
    trainer.callback_metrics = {"accuracy": 0.9}
    callback.on_validation_end(trainer, AUTOMATIC)
    assert reports.all == [{"eval_metrics": {"accuracy": 0.9}, "force": True}]


@pytest.mark.parametrize(
    ("trainer", "module", "expected"),
    [
        pytest.param(Trainer(), MANUAL, (20, 102), id="optimizers-of-its-own"),
        pytest.param(Trainer(max_epochs=-1), MANUAL, (20, None), id="optimizers-of-its-own-for-ever"),
        pytest.param(Trainer(estimated_stepping_batches=-1), AUTOMATIC, (40, None), id="data-without-length"),
        pytest.param(Unknowable(), AUTOMATIC, (40, None), id="unknowable"),
    ],
)
def test_steps(
    trainer: Trainer, module: object, expected: tuple[int, int | None], callback: Any, reports: Reports
) -> None:
    """Step and total are in the same unit, and there is no total where there is no end."""
    callback.on_train_start(trainer, module)
    assert (reports.last["current_step"], reports.last.get("total_steps")) == expected


def test_epochs_without_end(callback: Any, reports: Reports) -> None:
    """A training that is ended otherwise has no total number of epochs."""
    callback.on_train_start(Trainer(max_epochs=-1), AUTOMATIC)
    assert "total_epochs" not in reports.last


def test_other_processes(callback: Any, reports: Reports) -> None:
    """The others of a node do not report; the metrics are read by all, for that may be a sum over all of them."""

    class Watched(Trainer):
        reads = 0

        def __getattribute__(self, name: str) -> object:
            if name == "callback_metrics":
                type(self).reads += 1
            return super().__getattribute__(name)

    trainer = Watched(is_global_zero=False, local_rank=1)
    callback.on_train_start(trainer, AUTOMATIC)
    callback.on_train_batch_end(trainer, AUTOMATIC, None, None, 0)
    callback.on_train_epoch_end(trainer, AUTOMATIC)
    callback.on_validation_start(trainer, AUTOMATIC)
    callback.on_validation_end(trainer, AUTOMATIC)
    assert reports.all == []
    assert Watched.reads == 4


def test_first_process_of_another_node(callback: Any, reports: Reports) -> None:
    """`report` knows whether the log of its node is the one that is followed, whatever its rank."""
    callback.on_train_start(Trainer(is_global_zero=False), AUTOMATIC)
    assert reports.all == [POSITION]


@pytest.mark.parametrize(
    ("lightning", "pytorch_lightning", "expected"),
    [
        pytest.param(framework(Callback=Callback), None, Callback, id="lightning"),
        pytest.param(None, framework(Callback=OtherCallback), OtherCallback, id="pytorch_lightning"),
        pytest.param(framework(Callback=Callback), framework(Callback=OtherCallback), Callback, id="both"),
    ],
)
def test_packages(
    lightning: object, pytorch_lightning: object, expected: type, load: Callable[..., ModuleType]
) -> None:
    """Either package will do."""
    packages = {"lightning.pytorch": lightning, "pytorch_lightning": pytorch_lightning}
    module = load("lightning", packages, as_name="lightning_callback")
    assert module.TrainJobCallback.__mro__[1] is expected


def test_missing(load: Callable[..., ModuleType]) -> None:
    """Without Lightning the import says what to do."""
    with pytest.raises(ImportError, match="pip install lightning"):
        load("lightning", {"lightning.pytorch": None, "pytorch_lightning": None})
