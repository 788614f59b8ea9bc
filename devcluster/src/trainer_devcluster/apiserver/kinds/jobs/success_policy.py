"""Validation of a Job's success policy (batch/v1, KEP-3998)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.kube.field_errors import invalid, required, too_long, too_many
from trainer_devcluster.apiserver.kinds.causes import not_negative
from trainer_devcluster.apiserver.kinds.jobs.indexes import count_indexes

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_MAX_RULES = 20
_MAX_INDEXES_LENGTH = 64 * 1024
_RULES = "spec.successPolicy.rules"


def validate_success_policy(policy: Object | None, completions: int) -> list[FieldError]:
    """What is wrong with the success policy of an Indexed Job that has so many completions, which may change."""
    if policy is None:
        return []
    rules: list[Object] = policy.get("rules") or []
    if not rules:
        return [required(_RULES, "at least one rules must be specified when the successPolicy is specified")]
    causes = [too_many(_RULES, len(rules), _MAX_RULES)] if len(rules) > _MAX_RULES else []
    for index, rule in enumerate(rules):
        causes += _validate_rule(rule, f"{_RULES}[{index}]", completions)
    return causes


def _validate_rule(rule: Object, path: str, completions: int) -> list[FieldError]:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        return [required(path, "at least one of succeededCount or succeededIndexes must be specified")]
    causes, total = _validate_indexes(indexes, f"{path}.succeededIndexes", completions)
    if count is not None:
        causes += _validate_count(count, f"{path}.succeededCount", completions, total)
    return causes


def _validate_indexes(text: str | None, path: str, completions: int) -> tuple[list[FieldError], int | None]:
    """The complaints about a list of indexes, and how many indexes it has: none at all if it is malformed."""
    if text is None:
        return [], None
    causes = [too_long(path, _MAX_INDEXES_LENGTH)] if len(text) > _MAX_INDEXES_LENGTH else []
    try:
        return causes, count_indexes(text, completions)
    except ValueError as error:
        return [*causes, invalid(path, text, f"error parsing succeededIndexes: {error}")], 0


def _validate_count(count: Any, path: str, completions: int, listed: int | None) -> list[FieldError]:
    causes = not_negative(path, count)
    if causes:
        return causes
    if count > completions:
        detail = f"must be less than or equal to {completions} (the number of specified completions)"
        causes.append(invalid(path, count, detail))
    if listed is not None and count > listed:
        what = "the number of indexes in the specified succeededIndexes field"
        causes.append(invalid(path, count, f"must be less than or equal to {listed} ({what})"))
    return causes
