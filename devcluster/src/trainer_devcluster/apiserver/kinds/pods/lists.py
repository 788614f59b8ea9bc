"""Lists in pod specifications, which may hold anything where a template is not typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.kube.field_errors import invalid
from trainer_devcluster.apiserver.kinds.pods.pod_spec import dicts
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object


def objects_in(entries: Any, path: str, causes: list[FieldError]) -> list[tuple[str, Object]]:
    """The objects in a list with their paths; whatever else is there becomes a cause."""
    objects = dicts(entries)
    if entries is not None and (not isinstance(entries, list) or len(objects) != len(entries)):
        causes.append(invalid(path, entries, "must be a list of objects"))
    return [(f"{path}[{index}]", entry) for index, entry in enumerate(objects)]


def validate_strings(entries: Any, path: str) -> list[FieldError]:
    """What is wrong with a list of texts."""
    if entries is None or (isinstance(entries, list) and all(isinstance(entry, str) for entry in entries)):
        return []
    return [invalid(path, entries, "must be a list of strings: quote the values")]


def validate_label_name(name: Any, path: str) -> list[FieldError]:
    """What is wrong with a name that has to be a DNS label, if there is one."""
    if not name:
        return []
    if not isinstance(name, str):
        return [invalid(path, name, "must be a string")]
    return [invalid(path, name, problem) for problem in name_problems(name, NameRule.LABEL)]
