"""The containers that get torchrun's variables: the training container, and others that the runtime names.

`envInjection` is for init containers that check the network, or for evaluators beside the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainer.framework import Ancestor, Container, RuntimeInfo
from trainer.kube.field_errors import FieldError, forbidden, listed, not_found
from trainer.kube.objects import Object
from trainer.plugins.torch.elastic import MEETING_POINT

_ADVICE = MEETING_POINT | {
    "PET_RDZV_CONF",
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "WORLD_SIZE",
    "RANK",
}
"""Variables whose value in a container is kept."""


def inject(container: Container, variables: Sequence[Object]) -> None:
    """Set the variables of a container; recommended ones only where it has no value."""
    known = _ADVICE & {variable["name"] for variable in container.env}
    container.set_env(variable for variable in variables if variable["name"] not in known)


def targets(info: RuntimeInfo) -> Iterator[Container]:
    """The containers that the runtime names; names that `validate` refuses are skipped."""
    for _, job_name, container_name in _named(info):
        if found := _find(info, job_name, container_name):
            yield found


def validate(info: RuntimeInfo) -> Iterator[FieldError]:
    """Refuse names of missing Jobs and containers, and of the training container."""
    jobs = {pod_set.name: pod_set for pod_set in info.pod_sets}
    for field, job_name, container_name in _named(info):
        job = jobs.get(job_name)
        if job is None:
            rule = f"the runtime has no such replicated Job; it has {listed([*jobs])}"
            yield not_found(f"{field}.jobName", job_name, rule)
        elif job.ancestor == Ancestor.TRAINER and container_name == job.main_container.name:
            rule = f"must not name {container_name}, which trains and has the variables anyway"
            yield forbidden(f"{field}.containerNames", rule)
        elif _find(info, job_name, container_name) is None:
            present = [container.name for container in (*job.init_containers, *job.containers)]
            rule = f"replicated Job {job_name} has no such container; it has {listed(present)}"
            yield not_found(f"{field}.containerNames", container_name, rule)


def _named(info: RuntimeInfo) -> Iterator[tuple[str, str, str]]:
    """Path of the target, replicated Job and container of each name in the runtime."""
    injection = info.ml_policy.torch and info.ml_policy.torch.env_injection
    for index, target in enumerate(injection.targets if injection else ()):
        field = f"{info.runtime} spec.mlPolicy.torch.envInjection.targets[{index}]"
        for name in target.container_names:
            yield field, target.job_name.lower(), name


def _find(info: RuntimeInfo, job_name: str, container_name: str) -> Container | None:
    containers = (
        container
        for pod_set in info.pod_sets
        if pod_set.name == job_name
        for container in (*pod_set.containers, *pod_set.init_containers)
    )
    return next((container for container in containers if container.name == container_name), None)
