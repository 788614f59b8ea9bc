"""What is lost where an object is converted: members without a counterpart, each with what to do instead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object

TEMPLATE_METADATA: Final = frozenset({"labels", "annotations"})
"""What a template may say about metadata in our models."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Members without a counterpart, with their paths in the object that is converted."""

    found: list[FieldError] = field(default_factory=list)

    def add(self, path: str, message: str) -> None:
        """Note one."""
        self.found.append(FieldError(path, message))

    def metadata(self, metadata: Object, path: str) -> Object:
        """The labels and annotations of a template, which is all that it may say in the model."""
        for name in sorted(metadata.keys() - TEMPLATE_METADATA):
            self.add(f"{path}.{name}", "has no counterpart: a template has labels and annotations only")
        return {name: value for name, value in metadata.items() if name in TEMPLATE_METADATA}
