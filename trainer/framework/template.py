"""A runtime's JobSet template, brought into the form that JobSet and Kubernetes accept.

Runtimes are written as the KEP does: Jobs are called `Node`, a command is one line, ports in `env` are numbers.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from trainer.framework.errors import BuildError
from trainer.framework.pod_template import check_pod_template
from trainer.kube.field_errors import invalid, required

if TYPE_CHECKING:
    from trainer.api.jobset import JobSetSpec, ReplicatedJob
    from trainer.kube.objects import Object

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def normalised(template: JobSetSpec, runtime: str) -> JobSetSpec:
    """A copy with lower-case names, split commands and string values in `env`.

    Raises:
        BuildError: names clash or cannot be part of a host name, a command has an open quote, or a pod template
            cannot be read.
    """
    template = template.model_copy(deep=True)
    path = f"{runtime} spec.template.spec"
    for job in template.replicated_jobs or []:
        _normalise_job(job, f"{path}.replicatedJobs[{job.name}]")
    names = [job.name for job in template.replicated_jobs or []]
    if not names:
        raise BuildError(required(f"{path}.replicatedJobs", "must not be empty"))
    for name in names:
        if names.count(name) > 1:
            raise BuildError(invalid(f"{path}.replicatedJobs", name, "is taken twice; case does not count"))
    _lower_references(template)
    return template


def split_command(command: list[str], field: str) -> list[str]:
    """A command of one item with spaces as the words that a shell would see; other commands as they are.

    Raises:
        BuildError: a quote is not closed.
    """
    if len(command) != 1 or not re.search(r"\s", command[0]):
        return list(command)
    try:
        return shlex.split(command[0])
    except ValueError as error:
        rule = f"cannot be split into words ({error}); write a list of words instead"
        raise BuildError(invalid(field, command[0], rule)) from error


def pod_spec_of(job: ReplicatedJob) -> Object:
    """The pod spec of a replicated Job of a normalised template, which may be changed in place."""
    spec: Object = job.template.spec.template["spec"]
    return spec


def _normalise_job(job: ReplicatedJob, path: str) -> None:
    job.name = job.name.lower()
    if not _DNS_LABEL.fullmatch(job.name):
        rule = "must consist of letters, digits and -, because it is part of host names"
        raise BuildError(invalid(f"{path}.name", job.name, rule))
    check_pod_template(job.template.spec.template, f"{path}.template.spec.template")
    for kind in ("containers", "initContainers"):
        for container in pod_spec_of(job).get(kind) or []:
            _normalise_container(container, f"{path}.template.spec.template.spec.{kind}[{container['name']}]")


def _normalise_container(container: Object, path: str) -> None:
    if container.get("command"):
        container["command"] = split_command(container["command"], f"{path}.command")
    for variable in container.get("env") or []:
        if isinstance(variable.get("value"), int):
            variable["value"] = str(variable["value"])


def _lower_references(template: JobSetSpec) -> None:
    """Other parts of the template speak of replicated Jobs by name."""
    for job in template.replicated_jobs or []:
        for dependency in job.depends_on or []:
            dependency.name = dependency.name.lower()
    policies = [template.success_policy, *((template.failure_policy and template.failure_policy.rules) or [])]
    for policy in policies:
        if policy and policy.target_replicated_jobs:
            policy.target_replicated_jobs = [name.lower() for name in policy.target_replicated_jobs]
    if template.coordinator:
        template.coordinator.replicated_job = template.coordinator.replicated_job.lower()
