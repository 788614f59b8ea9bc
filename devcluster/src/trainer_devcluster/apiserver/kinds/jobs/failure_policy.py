"""Validation of a Job's pod failure policy (batch/v1, KEP-3329)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from trainer.kube.field_errors import OMITTED, duplicate, invalid, not_supported, required, too_many
from trainer_devcluster.apiserver.kinds.pods.pod_spec import all_containers
from trainer_devcluster.apiserver.objects.names import qualified_name_problems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_MAX_RULES = 20
_MAX_VALUES = 255
_MAX_PATTERNS = 20
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")


def validate_failure_policy(spec: Object) -> list[FieldError]:
    """What is wrong with the pod failure policy of a Job's specification."""
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return []
    path, rules = "spec.podFailurePolicy.rules", policy.get("rules") or []
    causes = [too_many(path, len(rules), _MAX_RULES)] if len(rules) > _MAX_RULES else []
    for index, rule in enumerate(rules):
        causes += _validate_rule(spec, rule, f"{path}[{index}]")
    return causes


def one_of(path: str, value: str | None, options: Sequence[str]) -> list[FieldError]:
    """A complaint when a field is absent or none of its options."""
    if not value:
        return [required(path, f"valid values: [{' '.join(map(_quoted, options))}]")]
    return [] if value in options else [not_supported(path, value, options)]


def _quoted(text: str) -> str:
    return f'"{text}"'


def _validate_rule(spec: Object, rule: Object, path: str) -> list[FieldError]:
    action, codes, conditions = rule.get("action"), rule.get("onExitCodes"), rule.get("onPodConditions") or []
    causes = one_of(f"{path}.action", action, _ACTIONS)
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        causes.append(invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set"))
    if codes is not None:
        names = {container.get("name") for container in all_containers(spec["template"]["spec"])}
        causes += _validate_exit_codes(codes, f"{path}.onExitCodes", names)
    causes += _validate_conditions(conditions, f"{path}.onPodConditions")
    if codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        causes.append(invalid(path, OMITTED, detail))
    if codes is None and not conditions:
        causes.append(invalid(path, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required"))
    return causes


def _validate_exit_codes(requirement: Object, path: str, containers: set[str | None]) -> list[FieldError]:
    operator, name = requirement.get("operator"), requirement.get("containerName")
    causes = one_of(f"{path}.operator", operator, _OPERATORS)
    if name is not None and name not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        causes.append(invalid(f"{path}.containerName", name, detail))
    return causes + _validate_values(requirement.get("values") or [], f"{path}.values", operator)


def _validate_values(values: Sequence[int], path: str, operator: str | None) -> list[FieldError]:
    causes: list[FieldError] = []
    if not values:
        causes.append(invalid(path, list(values), "at least one value is required"))
    elif len(values) > _MAX_VALUES:
        causes.append(too_many(path, len(values), _MAX_VALUES))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            causes.append(invalid(f"{path}[{index}]", value, "must not be 0 for the In operator"))
        if value in seen:
            causes.append(duplicate(f"{path}[{index}]", value))
        seen.add(value)
    if any(former > value for former, value in pairwise(values)):
        causes.append(invalid(path, list(values), "must be ordered"))
    return causes


def _validate_conditions(patterns: Sequence[Object], path: str) -> list[FieldError]:
    causes = [too_many(path, len(patterns), _MAX_PATTERNS)] if len(patterns) > _MAX_PATTERNS else []
    for index, pattern in enumerate(patterns):
        kind = pattern.get("type") or ""
        causes += [invalid(f"{path}[{index}].type", kind, problem) for problem in qualified_name_problems(kind)]
        causes += one_of(f"{path}[{index}].status", pattern.get("status"), _STATUSES)
    return causes
