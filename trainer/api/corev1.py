"""The few core/v1 types that appear in our own specs."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from trainer.api.model import ApiModel, JsonObject, Quantity, list_map


class EnvVar(ApiModel):
    """One environment variable of a container."""

    name: Annotated[str, Field(min_length=1)]
    """Name of the variable."""
    value: str | None = None
    """Literal value; references of the form $(NAME) to variables defined before are expanded."""
    value_from: JsonObject | None = None
    """Source of the value, such as fieldRef, configMapKeyRef or secretKeyRef; cannot be combined with value."""


EnvVars = Annotated[list[EnvVar], Field(json_schema_extra=list_map("name"))]


class LocalObjectReference(ApiModel):
    """An object in the same namespace."""

    name: Annotated[str, Field(min_length=1)]
    """Name of the object."""


class Volume(ApiModel):
    """A volume of a pod; everything but its name is handed on as it is."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, Field(min_length=1)]
    """Name of the volume, by which containers mount it."""


class VolumeMount(ApiModel):
    """A volume in the file system of a container; everything but its path is handed on as it is."""

    model_config = ConfigDict(extra="allow")

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

    limits: dict[str, Quantity] | None = None
    """The most that the container may use, by resource name."""
    requests: dict[str, Quantity] | None = None
    """What the container needs to be scheduled, by resource name; resources with a limit only request the limit."""
    claims: Annotated[list[ResourceClaim], Field(json_schema_extra=list_map("name"))] | None = None
    """Claims of the pod (dynamic resource allocation) that the container uses."""
