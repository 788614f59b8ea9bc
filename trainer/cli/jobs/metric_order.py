"""Which metrics tell most about a training, where there is room only for a few, and how they are called there."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainer.cli.jobs.progress import Metric

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
_SHORT = 7
"""Characters of a value that are shown as they are."""


def by_interest(metrics: Iterable[Metric]) -> list[Metric]:
    """The metrics, the most telling first: a loss, an accuracy, the others of these kinds, and what is left."""
    ranked = sorted(metrics, key=_rank)
    losses = [metric for metric in ranked if _kind(metric) == 0]
    qualities = [metric for metric in ranked if _kind(metric) == 1]
    first = [*losses[:1], *qualities[:1]]
    return [*first, *(metric for metric in ranked if metric not in first)]


def label(metric: Metric) -> str:
    """The metric's name, with `eval` before it where the name alone does not say so."""
    if metric.is_eval and not _EVAL_PREFIX.match(metric.name):
        return f"eval {metric.name}"
    return metric.name


def short_value(text: str) -> str:
    """A number in few characters, with four significant digits: `0.2347`, `1e-05`."""
    if len(text) <= _SHORT:
        return text
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    return min(f"{number:.4g}", text, key=len)


def in_room(texts: Iterable[str], room: int | None) -> str:
    """As many of the first texts as fit into this many cells, each whole; None: all of them."""
    shown = ""
    for text in texts:
        longer = f"{shown}  {text}" if shown else text
        if room is not None and cell_len(longer) > room:
            break
        shown = longer
    return shown


def _rank(metric: Metric) -> tuple[int, bool]:
    kind = _kind(metric)
    prefers_eval = kind == 1
    return kind, metric.is_eval != prefers_eval


def _kind(metric: Metric) -> int:
    return _kind_of(metric.name)


@lru_cache(maxsize=4096)
def _kind_of(metric_name: str) -> int:
    name = _PREFIX.sub("", metric_name.lower())
    if _LOSS.search(name):
        return 0
    if _MACHINERY.search(name):
        return 3
    return 1 if _QUALITY.search(name) else 2
