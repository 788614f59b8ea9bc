"""Init containers that plugins put beside a training."""

from __future__ import annotations

from typing import Final

from trainer.framework.building.resources import without_devices
from trainer.framework.building.template import pod_spec_of
from trainer.framework.plugin_api.runtime_info import Container, PodSet, RuntimeInfo
from trainer.kube.objects import Object

_SECURITY: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_OF_ALL: Final = ("runAsUser", "runAsGroup", "runAsNonRoot", "seccompProfile")
"""Fields that Pod Security Standards ask of every container whose pod does not set them."""


def add_init_container(info: RuntimeInfo, pods: PodSet, container: Container, **fields: object) -> None:
    """Have it run before the main container of the pods, in every namespace that admits this one.

    It gets the processors, memory, user and seccomp profile of the main container, and no privileges.

    Args:
        info: whose template gets what a Container has no place for.
        pods: where it runs.
        container: the init container, without resources.
        fields: other fields of the container in the template.
    """
    main = pods.main_container
    container.resources = without_devices(main.resources)  # so that the pod needs no more
    pods.init_containers.append(container)
    spec = pod_spec_of(info.job_of(pods))
    template = {"name": container.name, "securityContext": _SECURITY | _user_of(spec, main.name), **fields}
    spec["initContainers"] = [*(spec.get("initContainers") or []), template]


def _user_of(spec: Object, name: str) -> Object:
    container: Object = next((each for each in spec.get("containers") or [] if each["name"] == name), {})
    own = container.get("securityContext") or {}
    return {field: own[field] for field in _OF_ALL if field in own}
