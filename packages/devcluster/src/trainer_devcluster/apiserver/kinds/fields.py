"""Fields of built-in kinds: small changes of them in place, and the checks that several kinds make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from trainer.kube.errors import ApiError
from trainer.kube.field_errors import FieldError, forbidden, invalid, required
from trainer.kube.names import label_value_problems, qualified_name_problems
from trainer.kube.objects import Object, metadata_of, name_of
from trainer.kube.quantity import parse_quantity
from trainer.kube.resource import PODS, Resource
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems
from trainer_devcluster.apiserver.wire import answers


def fill(obj: Object, **defaults: object) -> None:
    """Set the fields that are absent, null or an empty text, which all are the same to built-in kinds."""
    for field, value in defaults.items():
        if (present := obj.get(field)) is None or present == "":
            obj[field] = value


def section(obj: Object, field: str) -> Object:
    """The object in a field, made when absent; {} that is not stored when something else stands there."""
    value = obj.get(field)
    if value is None:
        value = obj[field] = {}
    return value if isinstance(value, dict) else {}


def take_over(target: Object, source: Object, fields: Iterable[str]) -> None:
    """Make the fields of `target` what they are in `source`, absent ones included."""
    for field in fields:
        target.pop(field, None)
        if field in source:
            target[field] = source[field]


def dicts(entries: Any) -> list[Object]:
    """The objects in a list that may be absent or hold something else."""
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


IMMUTABLE = "field is immutable"
_QUANTITY_TEXT: Final = "must be greater than or equal to 0"
NOT_A_QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WITH_VALUES: Final = ("In", "NotIn")
_WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")


def all_containers(spec: Object) -> Iterator[Object]:
    """Init and app containers; entries that are no objects are left to validation."""
    for field in ("initContainers", "containers"):
        yield from dicts(spec.get(field))


def unchanged(field: str, new: object, old: object) -> list[FieldError]:
    """A complaint when an immutable field has changed."""
    return [] if new == old else [invalid(field, new, IMMUTABLE)]


def not_negative(field: str, value: Any) -> list[FieldError]:
    """A complaint when a number is there and below zero, or is no whole number."""
    if value is None:
        return []
    if not isinstance(value, int) or isinstance(value, bool):
        return [invalid(field, value, "must be an integer")]
    return [] if value >= 0 else [invalid(field, value, "must be greater than or equal to 0")]


def object_reference(field: str, reference: Object | None) -> list[FieldError]:
    """Complaints about a reference to an object of whichever version (CrossVersionObjectReference)."""
    causes: list[FieldError] = []
    for part in ("kind", "name"):
        text = (reference or {}).get(part)
        if not text:
            causes.append(required(f"{field}.{part}"))
        else:
            problems = name_problems(text, NameRule.PATH_SEGMENT)
            causes += [invalid(f"{field}.{part}", text, problem) for problem in problems]
    return causes


def validate_quantity(path: str, value: Any) -> list[FieldError]:
    """What is wrong with an amount of a resource that cannot be negative."""
    try:
        amount = parse_quantity(value)
    except ValueError:
        return [invalid(path, value, NOT_A_QUANTITY)]
    return [invalid(path, value, _QUANTITY_TEXT)] if amount < 0 else []


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


def refused(obj: Object, message: str, resource: Resource = PODS) -> ApiError:
    """A 403 that calls the object by its name, or by what its name will begin with."""
    return answers.forbidden(resource, name_of(obj) or metadata_of(obj).get("generateName") or "Unknown!", message)
