"""Validation of a Job's pod failure policy and success policy (batch/v1, KEP-3329 and KEP-3998)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trainer.kube.field_errors import OMITTED, forbidden, invalid, not_supported, required
from trainer_devcluster.apiserver.kinds.field_checks import not_negative
from trainer_devcluster.apiserver.kinds.pods.pod_spec import all_containers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_RULES: Final = "spec.successPolicy.rules"
_INDEXES: Final = re.compile(r"(\d+(-\d+)?(,\d+(-\d+)?)*)?")


def validate_failure_policy(spec: Object) -> Iterator[FieldError]:
    """What is wrong with the pod failure policy of a Job's specification."""
    for index, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or []):
        yield from _validate_rule(spec, rule, f"spec.podFailurePolicy.rules[{index}]")


def _validate_rule(spec: Object, rule: Object, path: str) -> Iterator[FieldError]:
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
    yield from _one_of(f"{path}.action", rule.get("action"), _ACTIONS)
    if rule.get("action") == "FailIndex":
        yield forbidden(f"{path}.action", "the dev cluster counts failures for the Job as a whole: use FailJob")
    if codes is not None:
        yield from _validate_exit_codes(spec, codes, f"{path}.onExitCodes")
    for index, pattern in enumerate(conditions):
        if not pattern.get("type"):
            yield required(f"{path}.onPodConditions[{index}].type")
    if codes is not None and conditions:
        yield invalid(path, OMITTED, "specifying both OnExitCodes and OnPodConditions is not supported")
    if codes is None and not conditions:
        yield invalid(path, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required")


def _validate_exit_codes(spec: Object, requirement: Object, path: str) -> Iterator[FieldError]:
    operator, name, values = requirement.get("operator"), requirement.get("containerName"), requirement.get("values")
    yield from _one_of(f"{path}.operator", operator, _OPERATORS)
    if name is not None and all(
        container.get("name") != name for container in all_containers(spec["template"]["spec"])
    ):
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{path}.containerName", name, detail)
    if not values:
        yield invalid(f"{path}.values", [], "at least one value is required")
    elif operator == "In" and 0 in values:
        yield invalid(f"{path}.values[{values.index(0)}]", 0, "must not be 0 for the In operator")


def _one_of(path: str, value: str | None, options: Sequence[str]) -> Iterator[FieldError]:
    """A complaint when a field is absent or none of its options."""
    if not value:
        shown = " ".join(f'"{option}"' for option in options)
        yield required(path, f"valid values: [{shown}]")
    elif value not in options:
        yield not_supported(path, value, options)


def validate_success_policy(policy: Object, completions: int) -> Iterator[FieldError]:
    """What is wrong with the success policy of an Indexed Job that has so many completions, which may change."""
    rules: list[Object] = policy.get("rules") or []
    if not rules:
        yield required(_RULES, "at least one rules must be specified when the successPolicy is specified")
    for index, rule in enumerate(rules):
        path, indexes, count = f"{_RULES}[{index}]", rule.get("succeededIndexes"), rule.get("succeededCount")
        if indexes is None and count is None:
            yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
        if indexes is not None and not _INDEXES.fullmatch(indexes):
            yield invalid(f"{path}.succeededIndexes", indexes, "must be indexes and intervals such as 0,2-5")
        yield from not_negative(f"{path}.succeededCount", count)
        if count is not None and count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            yield invalid(f"{path}.succeededCount", count, detail)
