"""The shape of a runtime's pod templates, checked before anything reads them.

Pod templates are plain JSON that the API server stores unchecked. Only the fields that we read or merge are described
here; the rest is for Kubernetes to judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from trainer.api.corev1 import ResourceRequirements, Volume, VolumeMount
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.metadata import TemplateMetadata
from trainer.api.model import ApiModel, JsonObject
from trainer.framework.errors import BuildError
from trainer.kube.field_errors import FieldError

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def check_pod_template(template: Object, path: str) -> None:
    """Refuse a pod template that cannot be read.

    Raises:
        BuildError: it has an error for each wrong field; `path` is where the template is.
    """
    try:
        _PodTemplate.from_object(template)
    except InvalidObjectError as error:
        raise BuildError(*(FieldError(f"{path}.{wrong.field}", wrong.message) for wrong in error.errors)) from error


class _EnvVar(ApiModel):
    name: Annotated[str, Field(min_length=1)]
    value: str | int | float | bool | None = None


class _Port(ApiModel):
    container_port: int
    protocol: str | None = None


class _Container(ApiModel):
    name: Annotated[str, Field(min_length=1)]
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[_EnvVar] | None = None
    env_from: list[JsonObject] | None = None
    ports: list[_Port] | None = None
    volume_mounts: list[VolumeMount] | None = None
    resources: ResourceRequirements | None = None


class _PodSpec(ApiModel):
    containers: Annotated[list[_Container], Field(min_length=1)]
    init_containers: list[_Container] | None = None
    volumes: list[Volume] | None = None
    tolerations: list[JsonObject] | None = None
    node_selector: dict[str, str] | None = None


class _PodTemplate(ApiModel):
    metadata: TemplateMetadata | None = None
    spec: _PodSpec
