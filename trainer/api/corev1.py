"""The few core/v1 types that appear in our own specs; their schemas are those of Kubernetes."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import ConfigDict, Field

from trainer.api import patterns
from trainer.api.bounds import LONGEST_WORD, MOST_WORDS
from trainer.api.builtin_schemas import built_in
from trainer.api.model import ApiModel, JsonObject, Quantity, atomic_list, list_map, text

Words: TypeAlias = Annotated[
    list[Annotated[str, Field(json_schema_extra=text(longest=LONGEST_WORD))]],
    Field(json_schema_extra=atomic_list(MOST_WORDS)),
]
"""A command or its arguments."""


class EnvVar(ApiModel):
    """One environment variable of a container."""

    model_config = ConfigDict(json_schema_extra=built_in("EnvVar"))

    name: Annotated[str, Field(min_length=1)]
    """Name of the variable."""
    value: str | None = None
    """Literal value; references of the form $(NAME) to variables defined before are expanded."""
    value_from: JsonObject | None = None
    """Source of the value, such as fieldRef, configMapKeyRef or secretKeyRef; cannot be combined with value."""


EnvVars = Annotated[list[EnvVar], Field(json_schema_extra=list_map("name", 1024))]

EnvFromSource: TypeAlias = Annotated[JsonObject, Field(json_schema_extra=built_in("EnvFromSource"))]
"""A ConfigMap or Secret whose keys become environment variables."""


class SchedulingGate(ApiModel):
    """Something that a pod waits for before it is scheduled."""

    name: Annotated[str, Field(min_length=1)]
    """Name of the gate, such as example.com/gate; who put it there removes it."""


Toleration: TypeAlias = Annotated[JsonObject, Field(json_schema_extra=built_in("Toleration"))]
"""A taint of nodes that pods tolerate."""

Affinity: TypeAlias = Annotated[JsonObject, Field(json_schema_extra=built_in("Affinity"))]
"""Nodes and other pods that pods must, or had better, be placed near or apart from."""

PodSecurityContext: TypeAlias = Annotated[JsonObject, Field(json_schema_extra=built_in("PodSecurityContext"))]
"""Users, groups and kernel settings of all containers of a pod."""

SecurityContext: TypeAlias = Annotated[JsonObject, Field(json_schema_extra=built_in("SecurityContext"))]
"""User, privileges and capabilities of one container."""

PodTemplate: TypeAlias = Annotated[JsonObject, Field(json_schema_extra=built_in("PodTemplateSpec"))]
"""Metadata and spec of pods."""

PersistentVolumeClaim: TypeAlias = Annotated[JsonObject, Field(json_schema_extra=built_in("PersistentVolumeClaim"))]
"""A claim for storage."""


class LocalObjectReference(ApiModel):
    """An object in the same namespace."""

    name: Annotated[str, Field(min_length=1, json_schema_extra=text(pattern=patterns.OBJECT_NAME, longest=253))]
    """Name of the object."""


class Volume(ApiModel):
    """A volume of a pod; everything but its name is handed on as it is."""

    model_config = ConfigDict(extra="allow", json_schema_extra=built_in("Volume"))

    name: Annotated[str, Field(min_length=1)]
    """Name of the volume, by which containers mount it."""


class VolumeMount(ApiModel):
    """A volume in the file system of a container; everything but its path is handed on as it is."""

    model_config = ConfigDict(extra="allow", json_schema_extra=built_in("VolumeMount"))

    mount_path: Annotated[str, Field(min_length=1)]
    """Path in the container."""


class ResourceClaim(ApiModel):
    """A claim of the pod that a container uses."""

    name: Annotated[str, Field(min_length=1)]
    """Name of an entry of the pod's resourceClaims."""
    request: str | None = None
    """Name of a request of the claim; all of them when absent."""


class ResourceRequirements(ApiModel):
    """Compute resources of a container."""

    model_config = ConfigDict(json_schema_extra=built_in("ResourceRequirements"))

    limits: dict[str, Quantity] | None = None
    """The most that the container may use, by resource name."""
    requests: dict[str, Quantity] | None = None
    """What the container needs to be scheduled, by resource name; resources with a limit only request the limit."""
    claims: list[ResourceClaim] | None = None
    """Claims of the pod (dynamic resource allocation) that the container uses."""
