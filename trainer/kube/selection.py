"""Selection: which objects of a resource a list, a watch or a cache is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.kube.objects import labels_of, namespace_of
from trainer.kube.selectors import FieldSelector, LabelSelector


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects of a resource that a list or watch selects."""

    namespace: str | None = None
    """None selects all namespaces."""
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    """Ask for apiVersion, kind and metadata alone (PartialObjectMetadata). Default: whole objects."""

    def __str__(self) -> str:
        """The selection in the notation of kubectl's flags; empty for everything."""
        parts = {
            "namespace": self.namespace,
            "labels": self.label_selector,
            "fields": self.field_selector,
            "metadata-only": "true" if self.metadata_only else "",
        }
        return " ".join(f"{name}={value}" for name, value in parts.items() if value)


EVERYTHING = Selection()


class Matcher:
    """Decides whether an object belongs to a selection, as the API server would."""

    def __init__(self, selection: Selection) -> None:
        """Parse the selectors.

        Raises:
            ValueError: a selector is malformed.
        """
        self._namespace = selection.namespace
        self._labels = LabelSelector.parse(selection.label_selector)
        self._fields = FieldSelector.parse(selection.field_selector)
        self._has_labels = bool(selection.label_selector)

    def matches(self, obj: Mapping[str, Any]) -> bool:
        """Whether the object is selected."""
        if self._namespace and namespace_of(obj) != self._namespace:
            return False
        if self._has_labels and not self._labels.matches(labels_of(obj)):
            return False
        return self._fields.matches({path: _field(obj, path) for path, _, _ in self._fields.requirements})


def _field(obj: Mapping[str, Any], path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
