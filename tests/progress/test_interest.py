"""The order of metrics by interest."""

from __future__ import annotations

import pytest

from trainer.progress.interest import MetricValue, by_interest


@pytest.mark.parametrize(
    ("train", "evaluation", "names"),
    [
        pytest.param(
            ["grad_norm", "learning_rate", "loss"],
            ["eval_accuracy", "eval_loss", "eval_runtime"],
            ["loss", "eval_accuracy", "eval_loss", "grad_norm", "learning_rate", "eval_runtime"],
            id="transformers",
        ),
        pytest.param(["lossy", "blossom", "flawless"], [], ["lossy", "blossom", "flawless"], id="only whole words"),
        pytest.param(
            ["train/total_loss", "tokens_per_second"], [], ["train/total_loss", "tokens_per_second"], id="path"
        ),
    ],
)
def test_order(train: list[str], evaluation: list[str], names: list[str]) -> None:
    """A loss comes first, then an accuracy, and what only tells of the machinery last."""
    metrics = [
        *(MetricValue(name, "1") for name in train),
        *(MetricValue(name, "1", is_eval=True) for name in evaluation),
    ]

    assert [metric.name for metric in by_interest(metrics)] == names
