"""What is wrong with label selectors, as the API server's validation words it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.kube.field_errors import forbidden, invalid, required
from trainer_devcluster.apiserver.kinds.pods.pod_spec import dicts
from trainer_devcluster.apiserver.objects.names import label_value_problems, qualified_name_problems

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_WITH_VALUES: Final = ("In", "NotIn")
_WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")


def validate_label_selector(selector: Object, path: str) -> list[FieldError]:
    """What is wrong with a metav1.LabelSelector."""
    causes: list[FieldError] = []
    for key, value in (selector.get("matchLabels") or {}).items():
        causes += [invalid(f"{path}.matchLabels", key, problem) for problem in qualified_name_problems(key)]
        causes += [invalid(f"{path}.matchLabels[{key}]", value, problem) for problem in label_value_problems(value)]
    for index, entry in enumerate(dicts(selector.get("matchExpressions"))):
        causes += _validate_requirement(entry, f"{path}.matchExpressions[{index}]")
    return causes


def _validate_requirement(entry: Object, path: str) -> list[FieldError]:
    key, operator, values = entry.get("key") or "", entry.get("operator") or "", entry.get("values") or []
    causes: list[FieldError] = []
    if operator in _WITH_VALUES and not values:
        causes.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in _WITHOUT_VALUES and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        causes.append(forbidden(f"{path}.values", detail))
    elif operator not in _WITH_VALUES + _WITHOUT_VALUES:
        causes.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    causes += [invalid(f"{path}.key", key, problem) for problem in qualified_name_problems(key)]
    return causes + [
        invalid(f"{path}.values[{index}]", value, problem)
        for index, value in enumerate(values)
        for problem in label_value_problems(value)
    ]
