"""Validation of what containers request and may use (core/v1 ResourceRequirements)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.kube.field_errors import invalid, required
from trainer.kube.quantity import Quantity
from trainer_devcluster.apiserver.kinds.amounts import validate_quantity
from trainer_devcluster.apiserver.objects.names import qualified_name_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_OF_CONTAINERS: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD: Final = _OF_CONTAINERS | {
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "storage",
    "persistentvolumeclaims", "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage", "services.nodeports", "services.loadbalancers",
}  # fmt: skip
_HUGE_PAGES: Final = "hugepages-"
_NATIVE: Final = "kubernetes.io/"


def validate_resources(resources: Object, path: str) -> list[FieldError]:
    """What is wrong with the `resources` of a container at `path`."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    causes = [cause for name, amount in limits.items() for cause in _validate_entry(name, amount, f"{path}.limits")]
    wrong = {name for name in limits if any(cause.field == f"{path}.limits[{name}]" for cause in causes)}
    for name, amount in requests.items():
        problems = list(_validate_entry(name, amount, f"{path}.requests"))
        causes += problems or ([] if name in wrong else _compare(name, amount, limits.get(name), path))
    return causes


def _validate_entry(name: str, amount: object, path: str) -> Iterator[FieldError]:
    place = f"{path}[{name}]"
    yield from _validate_name(name, place)
    problems = validate_quantity(place, amount)
    yield from problems
    if not problems and not _may_be_fractional(name) and Quantity.parse(amount).amount % 1:
        yield invalid(place, amount, "must be an integer")


def _validate_name(name: str, path: str) -> Iterator[FieldError]:
    for problem in qualified_name_problems(name):
        yield invalid(path, name, problem)
    if "/" not in name:
        if name in _OF_CONTAINERS or name.startswith(_HUGE_PAGES):
            return
        if name not in _STANDARD:
            yield invalid(path, name, "must be a standard resource type or fully qualified")
        yield invalid(path, name, "must be a standard resource for containers")
    elif _NATIVE not in name and name.startswith("requests."):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def _may_be_fractional(name: str) -> bool:
    return name in _OF_CONTAINERS


def _can_be_overcommitted(name: str) -> bool:
    """Of others a container gets what it asks for, no more and no less."""
    return ("/" not in name or _NATIVE in name) and not name.startswith(_HUGE_PAGES)


def _compare(name: str, amount: object, limit: object, path: str) -> list[FieldError]:
    if limit is None:
        if _can_be_overcommitted(name):
            return []
        return [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    wanted, allowed = Quantity.parse(amount), Quantity.parse(limit)
    if not _can_be_overcommitted(name) and wanted.amount != allowed.amount:
        return [invalid(f"{path}.requests", str(wanted), f"must be equal to {name} limit of {allowed}")]
    if wanted.amount > allowed.amount:
        return [invalid(f"{path}.requests", str(wanted), f"must be less than or equal to {name} limit of {allowed}")]
    return []
