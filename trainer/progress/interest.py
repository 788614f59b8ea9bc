"""Which of the metrics of a training people want to see first, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple


class MetricValue(NamedTuple):
    """The last value of a metric."""

    name: str
    value: str
    """The number as the training printed it."""
    is_eval: bool = False
    """Whether it was measured on evaluation data. Default: on training data."""


_PREFIX = re.compile(r"^(eval|evaluation|val|valid|validation|test|train|training)[_./ -]+")
_EVAL_PREFIX = re.compile(r"^(eval|evaluation|val|valid|validation|test)[_./ -]+", re.IGNORECASE)
_LOSS = re.compile(r"(^|[_./ -])(loss|nll|cross_?entropy|objective)$")
_QUALITY = re.compile(
    r"(^|[_./ -])(acc|accuracy|top_?\d+|f1|auc|auroc|mAP|iou|dice|bleu|rouge\w*|wer|cer|perplexity|ppl|reward|score"
    r"|precision|recall|r2|error|m?mse|rmse|mae|merror|mlogloss|logloss)($|[_./@ -])",
    re.IGNORECASE,
)
_MACHINERY = re.compile(
    r"(^|[_./ -])(lr|learning_?rate|grad_?norm|runtime|time|seconds|samples_per_second|steps_per_second|per_second"
    r"|flos|flops|memory|mem|throughput|tokens\w*|step|epoch|gpu\w*)($|[_./ -])",
    re.IGNORECASE,
)


def by_interest(metrics: Iterable[MetricValue]) -> list[MetricValue]:
    """The metrics by interest: a loss, an accuracy, others of these kinds, and the rest."""
    ranked = sorted(metrics, key=_rank)
    losses = [metric for metric in ranked if _kind(metric.name) == 0]
    qualities = [metric for metric in ranked if _kind(metric.name) == 1]
    first = [*losses[:1], *qualities[:1]]
    return [*first, *(metric for metric in ranked if metric not in first)]


def label(metric: MetricValue) -> str:
    """The metric's name, prefixed with `eval` unless the name says so."""
    if metric.is_eval and not _EVAL_PREFIX.match(metric.name):
        return f"eval {metric.name}"
    return metric.name


def _rank(metric: MetricValue) -> tuple[int, bool]:
    kind = _kind(metric.name)
    return kind, metric.is_eval != (kind == 1)


@lru_cache(maxsize=4096)
def _kind(metric_name: str) -> int:
    name = _PREFIX.sub("", metric_name.lower())
    if _LOSS.search(name):
        return 0
    if _MACHINERY.search(name):
        return 3
    return 1 if _QUALITY.search(name) else 2
