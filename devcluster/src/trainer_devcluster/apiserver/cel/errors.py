"""Errors: what is wrong with an expression, before and while it is evaluated."""

from __future__ import annotations

from typing import NamedTuple


class Issue(NamedTuple):
    """One thing that is wrong with the text of an expression."""

    position: int
    """Index of the character where it is noticed."""
    message: str

    def render(self, source: str) -> str:
        """The issue with its place, and the line with a mark below it."""
        before = source[: self.position]
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1)
        text = (source.split("\n")[line - 1] if source else "").replace("\t", " ")
        return f"ERROR: <input>:{line}:{column + 1}: {self.message}\n | {text}\n | {'.' * column}^"


class CompileError(ValueError):
    """An expression that cannot be evaluated; the text describes every issue."""

    def __init__(self, source: str, issues: list[Issue]) -> None:
        self.issues = sorted(set(issues))
        super().__init__("\n".join(issue.render(source) for issue in self.issues))


class EvaluationError(Exception):
    """An expression has no value for the variables that it is evaluated with."""


def no_such_overload() -> EvaluationError:
    """The function that is called does not take values of these types."""
    return EvaluationError("no such overload")


def no_such_key(key: object) -> EvaluationError:
    """A map or object does not have what is asked for."""
    return EvaluationError(f"no such key: {'true' if key is True else 'false' if key is False else key}")
