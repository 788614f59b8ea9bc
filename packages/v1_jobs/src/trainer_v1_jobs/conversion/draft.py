"""A conversion that is being made: the parts of a TrainJob and of the runtime for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from trainer.api.jobset_labels import JOB_GLOBAL_INDEX
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.losses import Losses
from trainer.kube.objects import Object
from trainer_v1_jobs.conversion.places import NODE, Place, label_value, name_variable, node_rank
from trainer_v1_jobs.conversion.pods import UNBUFFERED, Pods, pods_of, set_env
from trainer_v1_jobs.conversion.restarts import check_backoff_limit, restart_fields
from trainer_v1_jobs.conversion.source import Role, Source

TRAINER_FIELDS: Final = {"command": "command", "args": "args", "env": "env", "resources": "resourcesPerNode"}
"""Members of the container that trains which the TrainJob states, and their names there."""


@dataclass(slots=True)
class Draft:
    """The parts."""

    framework: str
    """Value of the label of runtimes."""
    jobs: list[Object]
    """The replicated Jobs of the runtime."""
    ml_policy: Object = field(default_factory=dict)
    """Of the runtime; empty where it sets no variables."""
    trainer: Object = field(default_factory=dict)
    """`spec.trainer` of the TrainJob; empty where the runtime says it all."""
    success_policy: Object | None = None
    """Of the JobSet."""

    @property
    def has_gang(self) -> bool:
        """Whether the nodes, and their peers, are all pods that must start together."""
        return bool(self.ml_policy) or len(self.jobs) == 1


@dataclass(frozen=True, slots=True)
class Nodes:
    """Equal pods of one Job, whatever their roles."""

    def host(self, number: int) -> str:
        """DNS name of a pod, by its number among all."""
        return Place(NODE).host(number)

    @staticmethod
    def places(roles: tuple[Role, ...]) -> dict[str, Place]:
        """Where the pods of each role are, one role after the other."""
        starts = accumulate((role.replicas for role in roles), initial=0)
        return {
            role.name: Place(NODE, first, is_shared=len(roles) > 1) for role, first in zip(roles, starts, strict=False)
        }

    @property
    def rank(self) -> Object:
        """`valueFrom` of the number of a pod among all."""
        return node_rank()


@dataclass(frozen=True, slots=True)
class PerRoleJobs:
    """Pods of several roles. Each pod is a Job, which numbers it among all; those of a first role are nodes of one."""

    roles: tuple[Role, ...]

    def host(self, number: int) -> str:
        """DNS name of a pod, by its number among all."""
        for role in self.roles:
            if number < role.replicas:
                return self.host_of(role, str(number))
            number -= role.replicas
        raise IndexError(number)

    def host_of(self, role: Role, index: str) -> str:
        """DNS name of a pod, by its role and its index in it, which may be a reference to a variable."""
        return self.places[role.name].host(index)

    def index_of(self, role: Role) -> Object:
        """`valueFrom` of the index of a pod in its role."""
        return self.places[role.name].index

    @property
    def places(self) -> dict[str, Place]:
        """Where the pods of each role are."""
        return {role.name: Place(role.job_name, is_indexed=self.is_first(role)) for role in self.roles}

    def is_first(self, role: Role) -> bool:
        """Whether the pods of a role are one Job, which a runtime must have: its nodes."""
        return role is self.roles[0]

    @property
    def rank(self) -> Object:
        """`valueFrom` of the number of a pod among all, where the first role has one pod."""
        return label_value(JOB_GLOBAL_INDEX)


def draft_nodes(
    source: Source,
    losses: Losses,
    *,
    framework: str,
    ml_policy: Object,
    variables: Iterable[Object],
    runtime_variables: Iterable[Object] = (),
    sidecar_variables: Iterable[Object] = (),
    reserved: AbstractSet[str],
    ends_with_first: bool = False,
    meets_at: int | None = None,
) -> Draft:
    """All pods as nodes of one Job; the TrainJob says what its container runs.

    Args:
        source: a job whose roles have equal pods.
        losses: what is lost is added to it.
        framework: label of the runtime.
        ml_policy: of the runtime.
        variables: of the container that trains, beside those that it has.
        runtime_variables: further ones of that, which a TrainJob must not set.
        sidecar_variables: of all other containers, which the operator gave the same as the one that trains.
        reserved: variables of the container that trains which only a plugin or the operator sets.
        ends_with_first: whether the training is over when the first pod has ended well.
        meets_at: port at which the plugin of the framework has pods meet. Default: none, they meet where the job says.
    """
    role = source.roles[0]
    additions = list(variables)
    names = {variable["name"] for variable in additions}
    beside = list(sidecar_variables)
    pods = pods_of(
        source,
        role,
        losses,
        reserved | names,
        places=Nodes.places(source.roles),
        reserved_beside={variable["name"] for variable in beside},
        meets_at=meets_at,
    )
    set_env(pods.main, additions)
    for sidecar in pods.sidecars:
        set_env(sidecar, beside)
    job_spec = restart_fields(source, role, pods, losses)
    if ends_with_first and source.pods > 1:
        job_spec["successPolicy"] = {"rules": [{"succeededIndexes": "0"}]}
    check_backoff_limit(source, 1, losses)
    trainer = {"numNodes": source.pods, "image": pods.main["image"]}
    trainer |= {member: pods.main.pop(name) for name, member in TRAINER_FIELDS.items() if pods.main.get(name)}
    set_env(pods.main, runtime_variables)
    return Draft(framework, [replicated_job(NODE, pods, job_spec, is_trainer=True)], ml_policy, trainer)


def draft_per_role(
    source: Source,
    losses: Losses,
    *,
    framework: str,
    variables: Callable[[Role, PerRoleJobs], list[Object]],
    ends_with: str,
    roles: tuple[Role, ...] = (),
    ends_with_first: bool = False,
) -> Draft:
    """Each role as a Job of its own, with variables written out; the number of pods is that of the runtime.

    Args:
        source: a job whose roles differ.
        losses: what is lost is added to it.
        framework: label of the runtime.
        variables: what every container of a role gets.
        ends_with: role whose end is that of the training; "" if that is the end of all.
        roles: those of the job in another order. Default: as it has them.
        ends_with_first: whether the first pod of the first role is enough for it. Default: all of them.
    """
    per_role = PerRoleJobs(roles or source.roles)
    jobs = []
    for role in per_role.roles:
        additions = [name_variable(), *variables(role, per_role), UNBUFFERED]
        names = {variable["name"] for variable in additions}
        pods = pods_of(source, role, losses, names, places=per_role.places, reserved_beside=names)
        for container in pods.template["spec"]["containers"]:
            set_env(container, additions)
        is_first = per_role.is_first(role)
        size = role.replicas if is_first else 1
        job_spec: Object = {"parallelism": size, "completions": size} | restart_fields(source, role, pods, losses)
        if is_first and ends_with_first and size > 1:
            job_spec["successPolicy"] = {"rules": [{"succeededIndexes": "0"}]}
        job = replicated_job(role.job_name, pods, job_spec, is_trainer=is_first)
        jobs.append(job | ({} if is_first else {"replicas": role.replicas}))
    check_backoff_limit(source, source.pods, losses)
    success = {"operator": "All", "targetReplicatedJobs": [ends_with.lower()]} if source.role(ends_with) else None
    return Draft(framework, jobs, success_policy=success)


def replicated_job(name: str, pods: Pods, job_spec: Object, *, is_trainer: bool = False) -> Object:
    """A replicated Job of a runtime."""
    template: Object = {"spec": job_spec | {"template": pods.template}}
    if is_trainer:
        template = {"metadata": {"labels": {ANCESTOR_LABEL: "trainer"}}} | template
    return {"name": name, "template": template}
