"""The job that is converted, in the form that the conversion reads."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from trainer.api.invalid_object import InvalidObjectError
from trainer.kube.field_errors import required
from trainer.kube.objects import Object, mapping_at
from trainer.v1alpha1.discovery import Version
from trainer_v1_jobs.api.kinds import Job, JobKind
from trainer_v1_jobs.api.policies import RestartPolicy, RunPolicy
from trainer_v1_jobs.api.reading import normalised, read_job
from trainer_v1_jobs.conversion.old_labels import depends_on_role


@dataclass(frozen=True, slots=True)
class Role:
    """The pods of one role, with the operator's defaults."""

    name: str
    """Such as Worker."""
    replicas: int
    restart_policy: RestartPolicy
    template: Object
    """The pod template as it was written, without nulls; it is not changed."""
    path: str
    """Such as `spec.pytorchReplicaSpecs[Worker]`."""

    @property
    def job_name(self) -> str:
        """Name of a replicated Job for these pods alone."""
        return self.name.lower()

    @property
    def containers_path(self) -> str:
        """Where its containers are."""
        return f"{self.path}.template.spec.containers"


@dataclass(frozen=True, slots=True)
class Source:
    """A valid job."""

    kind: JobKind
    job: Job
    """Its model."""
    metadata: Object
    """As it was written."""
    roles: tuple[Role, ...]
    """Those with pods, in the order in which the operator numbers them."""
    version: Version
    """The version of the API that the TrainJob is for."""

    @property
    def run_policy(self) -> RunPolicy | None:
        """How the job runs and ends."""
        return self.job.spec.run_policy

    @property
    def pods(self) -> int:
        """All pods."""
        return sum(role.replicas for role in self.roles)

    def role(self, *names: str) -> Role | None:
        """The first role of these names that has pods."""
        return next((role for role in self.roles if role.name in names), None)

    @property
    def has_equal_roles(self) -> bool:
        """Whether all pods are equal, whatever their role, and are started again in the same way."""
        first, *others = [_comparable(role, self.kind) for role in self.roles]
        return all(other == first for other in others)


def source_of(obj: Object, kind: JobKind, version: Version) -> Source:
    """Read a job strictly.

    Raises:
        InvalidObjectError: fields are wrong; the message has a line for each.
    """
    obj = without_nulls(normalised(obj, kind))
    job = read_job(obj, kind)
    written = mapping_at(obj, "spec", kind.replicas_field)
    specs = kind.replica_specs(job)
    roles = tuple(
        Role(
            name,
            specs[name].replicas or 1,
            specs[name].restart_policy or kind.restart_policies.get(name, kind.restart_policy),
            written[name]["template"],
            f"spec.{kind.replicas_field}[{name}]",
        )
        for name in kind.roles
        if name in specs and specs[name].replicas != 0
    )
    if not roles:
        error = required(f"spec.{kind.replicas_field}", "no role has a pod: give one of them replicas")
        raise InvalidObjectError(f"{kind.resource.kind} {job.metadata.name}", (error,))
    return Source(kind, job, mapping_at(obj, "metadata"), roles, version)


def without_nulls(value: Any) -> Any:
    """A copy without nulls, which are absent fields."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [without_nulls(member) for member in value]
    return value


def _comparable(role: Role, kind: JobKind) -> tuple[str, Object]:
    """What pods of two roles must have in common to be nodes of one Job: all but the port at which they meet."""
    template = copy.deepcopy(role.template)
    if depends_on_role(template):
        template["role"] = role.name
    template["spec"].pop("restartPolicy", None)
    for container in template["spec"]["containers"]:
        if container["name"] == kind.container and "ports" in container:
            container["ports"] = [port for port in container["ports"] if port.get("name") != kind.port_name]
            if not container["ports"]:
                del container["ports"]
    return role.restart_policy, template
