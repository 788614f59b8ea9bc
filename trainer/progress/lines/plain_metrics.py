"""The metrics in an ordinary line of a training's log, by the names that trainings use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

METRICS_LIMIT: Final = 16
"""Most metrics of one line."""

_NUMBER: Final = r"[-+]?(?:\d{1,20}+(?:\.\d{0,20}+)?|\.\d{1,20}+)(?:[eE][-+]?\d{1,3}+)?"
_PAIR: Final = re.compile(
    r"(?<![\w./@-])(?:(?P<part>(?i:train|training|val|valid|validation|test|eval|avg|average|lm|learning|grad))\.? )?"
    r"(?P<name>[A-Za-z][\w./@-]{0,47}+)['\"]?(?P<sign>\s{0,2}[:=]\s{0,6}|\s{1,4})['\"]?\[?"
    rf"(?P<value>{_NUMBER})(?![\w/]|[.:]\d| / ?\d)"
)
_ALONE: Final = re.compile(_NUMBER)
_TOKENS: Final = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])")
_NAMES: Final = """
    acc acc1 acc5 accuracies accuracy auc aucpr auroc bleu bpb bpc celoss cer dice elbo entropy error f1
    fid gnorm iou kl l1 l2 learn logloss loss losses lr mae map mape merror miou mlogloss mse ndcg nll
    perplexity ppl precision psnr r2 recall return reward rmse rouge score ssim top1 top5 wer
"""
_KNOWN: Final = frozenset(_NAMES.split())
_KNOWN_PAIRS: Final = frozenset({("learning", "rate"), ("grad", "norm"), ("cross", "entropy")})
_TRAINING: Final = frozenset({"train", "training"})
_EVALUATION: Final = frozenset({"val", "valid", "validation", "eval", "evaluation", "test", "dev"})
_SET: Final = re.compile(r"(?P<set>\b(?:training|train|valid\w{0,16}|test\w{0,16}|eval\w{0,16}))'s ")


class Found(NamedTuple):
    """A metric in a line."""

    name: str
    """As in the line, words joined by `_`."""
    value: str
    """The number, digit by digit."""
    start: int
    """Where it begins in the line."""

    @property
    def is_eval(self) -> bool:
        """Whether its name says that it was measured on evaluation data."""
        return is_of_evaluation(self.name)


def metrics_in(text: str) -> Iterator[Found]:
    """The metrics of a line, at most `METRICS_LIMIT`; a name that occurs again counts once."""
    if "'s " in text:  # LightGBM: valid_0's l2: 0.2
        text = _SET.sub(lambda found: f"{found['set']}_", text)
    names = set[str]()
    for found in _PAIR.finditer(text):
        name = found["name"] if found["part"] is None else f"{found['part']}_{found['name']}"
        if is_metric(name) and name not in names:
            names.add(name)
            yield Found(name, found["value"].lstrip("+"), found.start())
            if len(names) == METRICS_LIMIT:
                return


def is_number(text: str) -> bool:
    """Whether a cell of a table is a number."""
    return _ALONE.fullmatch(text) is not None


@lru_cache(maxsize=1024)
def is_metric(name: str) -> bool:
    """Whether trainings use this name for what they measure."""
    tokens = _tokens(name)
    return not _KNOWN.isdisjoint(tokens) or any(pair in _KNOWN_PAIRS for pair in pairwise(tokens))


@lru_cache(maxsize=1024)
def is_of_training(name: str) -> bool:
    """Whether the name of a metric begins with a word for training data."""
    return next(iter(_tokens(name)), "") in _TRAINING


@lru_cache(maxsize=1024)
def is_of_evaluation(name: str) -> bool:
    """Whether the name of a metric begins with a word for evaluation data."""
    return next(iter(_tokens(name)), "") in _EVALUATION


def _tokens(name: str) -> tuple[str, ...]:
    return tuple(token.lower() for token in _TOKENS.split(name) if token)
