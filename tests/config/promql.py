"""What a PromQL expression asks for, read well enough to hold it against the metrics that exist."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_MATCHERS = re.compile(r"\{([^{}]*)\}")
_MATCHER = re.compile(r"([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)")
_WORD = re.compile(r"[a-zA-Z_:][\w:]*(?!\s*\()\b")
_KEYWORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan", "group_left", "group_right"}


@dataclass(frozen=True)
class Question:
    """Metrics and labels of an expression."""

    metrics: dict[str, frozenset[str]]
    """Names of series, each with the labels that its selectors match."""
    grouping: frozenset[str]
    """Labels by which something is grouped or joined."""


def question(expression: str) -> Question:
    """Read an expression that promtool takes."""
    expression = _STRING.sub('""', expression)
    grouping = {label.strip() for group in _GROUPING.findall(expression) for label in group.split(",") if label.strip()}
    rest = _GROUPING.sub(" ", re.sub(r"\[[^\]]*\]", " ", expression))
    metrics: dict[str, set[str]] = {}
    position = 0
    while match := _WORD.search(rest, position):
        name, position = match.group(), match.end()
        if re.match(r"\s*\(", rest[position:]) or name in _KEYWORDS:
            continue
        if rest[match.start() - 1 : match.start()].isdigit():
            continue
        labels = metrics.setdefault(name, set())
        if selector := _MATCHERS.match(rest, position):
            labels.update(_MATCHER.findall(selector.group(1)))
            position = selector.end()
    return Question({name: frozenset(labels) for name, labels in metrics.items()}, frozenset(grouping))
