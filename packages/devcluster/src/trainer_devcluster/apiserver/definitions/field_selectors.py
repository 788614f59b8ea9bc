"""Field selectors: which fields of a kind can be selected by, and their values in an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trainer.kube.objects import Object, name_of, namespace_of
from trainer.kube.selectors import FieldSelector, LabelSelector
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_kube_testing.api_semantics import statuses

_EVERY_KIND: Final = ("metadata.name", "metadata.namespace")

_BUILT_IN: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "pods"): (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
    ("", "events"): (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
        "reportingComponent", "source", "type",
    ),
    ("", "namespaces"): ("status.phase",),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "secrets"): ("type",),
    ("", "services"): ("spec.clusterIP", "spec.type"),
    ("batch", "jobs"): ("status.successful",),
}  # fmt: skip

Values = Callable[["Object"], str]

_SPECIAL: Final[dict[str, Values]] = {
    "status.successful": lambda obj: str((obj.get("status") or {}).get("succeeded") or 0),
    "spec.unschedulable": lambda obj: "true" if (obj.get("spec") or {}).get("unschedulable") else "false",
    "spec.hostNetwork": lambda obj: "true" if (obj.get("spec") or {}).get("hostNetwork") else "false",
    "source": lambda obj: (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or "",
}


class Selectors:
    """The label and field selectors of one list, watch or deletecollection request."""

    def __init__(self, definition: ResourceDefinition, label_selector: str, field_selector: str) -> None:
        """Parse both.

        Raises:
            ApiError: 400, a selector cannot be parsed, or names a field that the kind does not select by.
        """
        try:
            self._labels = LabelSelector.parse(label_selector)
            self._fields = FieldSelector.parse(field_selector)
        except ValueError as error:
            raise statuses.bad_request(str(error)) from error
        supported = _BUILT_IN.get((definition.resource.group, definition.resource.plural), ())
        supported += definition.selectable_fields
        for path, _, _ in self._fields.requirements:
            if path not in _EVERY_KIND + supported:
                raise statuses.bad_request(_not_supported(path, definition, supported))

    @property
    def select_everything(self) -> bool:
        """Whether there is nothing to check."""
        return not self._labels.requirements and not self._fields.requirements

    def match(self, obj: Object) -> bool:
        """Whether an object is selected."""
        if not self._labels.matches((obj.get("metadata") or {}).get("labels") or {}):
            return False
        values = {path: _value(obj, path) for path, _, _ in self._fields.requirements}
        return self._fields.matches(values)


def _not_supported(path: str, definition: ResourceDefinition, supported: tuple[str, ...]) -> str:
    """What the real server says, which has one text for kinds with fields of their own and another for all others."""
    resource = definition.resource
    if (resource.group, resource.plural) == ("batch", "jobs"):
        return f'field label "{path}" not supported for batchv1.Job'
    if supported or definition.is_custom:
        return f"field label not supported: {path}"
    listed = ", ".join(f'"{name}"' for name in _EVERY_KIND)
    return f'"{path}" is not a known field selector: only {listed}'


def _value(obj: Object, path: str) -> str:
    if path == "metadata.name":
        return name_of(obj)
    if path == "metadata.namespace":
        return namespace_of(obj)
    special = _SPECIAL.get(path)
    if special is not None:
        return special(obj)
    value: object = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
