"""Which metrics tell most."""

from __future__ import annotations

import pytest

from trainer.cli.jobs.metric_order import by_interest, in_room, label, short_value
from trainer.cli.jobs.progress import Metric


@pytest.mark.parametrize(
    ("train", "evaluation", "names"),
    [
        pytest.param(
            ["grad_norm", "learning_rate", "loss"],
            ["eval_accuracy", "eval_loss", "eval_runtime"],
            ["loss", "eval_accuracy", "eval_loss", "grad_norm", "learning_rate", "eval_runtime"],
            id="transformers",
        ),
        pytest.param(["acc", "val_acc", "val_loss"], [], ["val_loss", "acc", "val_acc"], id="keras"),
        pytest.param(["aux", "lr"], [], ["aux", "lr"], id="unknown ones before machinery"),
        pytest.param(["train-rmse"], ["validation-rmse"], ["validation-rmse", "train-rmse"], id="xgboost"),
        pytest.param(["lossy", "blossom", "flawless"], [], ["lossy", "blossom", "flawless"], id="only whole words"),
        pytest.param(
            ["train/total_loss", "tokens_per_second"], [], ["train/total_loss", "tokens_per_second"], id="path"
        ),
    ],
)
def test_order(train: list[str], evaluation: list[str], names: list[str]) -> None:
    """A loss comes first, then an accuracy, and what only tells of the machinery last."""
    metrics = [*(Metric(name, "1") for name in train), *(Metric(name, "1", is_eval=True) for name in evaluation)]

    assert [metric.name for metric in by_interest(metrics)] == names


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        pytest.param(Metric("loss", "1"), "loss", id="training"),
        pytest.param(Metric("loss", "1", is_eval=True), "eval loss", id="evaluation"),
        pytest.param(Metric("eval_loss", "1", is_eval=True), "eval_loss", id="its name says so"),
    ],
)
def test_label(metric: Metric, text: str) -> None:
    """Metrics of the evaluation can be told from those of the training."""
    assert label(metric) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("0.2347", "0.2347", id="short"),
        pytest.param("0.1000", "0.1000", id="digits are kept"),
        pytest.param("0.23471234", "0.2347", id="long"),
        pytest.param("123456789.5", "1.235e+08", id="large"),
        pytest.param("12345678", "12345678", id="no shorter way"),
        pytest.param("0.0000123456", "1.235e-05", id="small"),
        pytest.param("1" * 400, "1" * 400, id="beyond floats"),
        pytest.param("not a number", "not a number", id="somebody else wrote it"),
    ],
)
def test_short_value(value: str, text: str) -> None:
    """Numbers are shown with four significant digits where they are long."""
    assert short_value(value) == text


@pytest.mark.parametrize(
    ("room", "text"),
    [(None, "ab  cde  f"), (10, "ab  cde  f"), (9, "ab  cde"), (6, "ab"), (1, ""), (-5, "")],
)
def test_room(room: int | None, text: str) -> None:
    """Texts are shown whole or not at all."""
    assert in_room(["ab", "cde", "f"], room) == text
