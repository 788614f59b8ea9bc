"""Object metadata and conditions (Kubernetes `meta/v1`)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from trainer.api import patterns
from trainer.api.model import ApiModel, Int64, JsonObject, Time, text

ServedVersion: TypeAlias = Annotated[
    Literal["trainer.kubeflow.org/v2alpha1", "trainer.kubeflow.org/v1alpha1"],
    Field(json_schema_extra={"enum": ["trainer.kubeflow.org/v2alpha1"]}),  # of the only CRDs with this shape
]
"""The apiVersion of a TrainJob or runtime: the one that the cluster serves. The shape is always that of v2alpha1."""

Labels: TypeAlias = dict[str, Annotated[str, Field(json_schema_extra=text(pattern=patterns.LABEL_VALUE, longest=63))]]
"""Labels of an object, by key."""


class TemplateMetadata(ApiModel):
    """What a template may say about the metadata of the objects made from it."""

    labels: Labels | None = None
    """Labels of the objects made from the template."""
    annotations: dict[str, str] | None = None
    """Annotations of the objects made from the template."""

    def merged(self, changes: TemplateMetadata) -> TemplateMetadata:
        """This metadata with changes, which win where keys are equal."""
        return TemplateMetadata(
            labels=(self.labels or {}) | (changes.labels or {}) or None,
            annotations=(self.annotations or {}) | (changes.annotations or {}) or None,
        )


class ObjectMetadata(TemplateMetadata):
    """Metadata of a stored object (Kubernetes API conventions, "Metadata")."""

    name: str = ""
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None
    owner_references: list[JsonObject] | None = None
    managed_fields: list[JsonObject] | None = None
    self_link: str | None = None


class Condition(ApiModel):
    """One aspect of an object's state (Kubernetes `metav1.Condition`)."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """Aspect of the state, in CamelCase."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition holds."""
    reason: Annotated[str, Field(min_length=1, max_length=1024)]
    """Why the condition last changed, one CamelCase word for programs."""
    message: Annotated[str, Field(max_length=32768)] = ""
    """Why the condition last changed, for people."""
    last_transition_time: Time
    """When the status last changed from one value to another."""
    observed_generation: Annotated[Int64, Field(ge=0)] | None = None
    """The metadata.generation that the condition was derived from."""
