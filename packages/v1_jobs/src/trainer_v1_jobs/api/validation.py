"""What is wrong with jobs that are valid by their schemas: the rules of the operator's webhooks and controllers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trainer.api import patterns
from trainer.api.pod_template import semantic_pod_template_errors
from trainer.kube.field_errors import FieldError, forbidden, invalid, listed, not_supported, required
from trainer_v1_jobs.api.kinds import ElasticPolicy, Job, JobKind, MPIJob, PyTorchJob
from trainer_v1_jobs.api.policies import ReplicaSpec

_LONGEST_NAME: Final = 63
_MOST_PODS: Final = 100_000
"""Of a job, which is the most that Kubernetes runs of one Job."""
_REQUIRED: Final = {"XGBoostJob": "Master", "JAXJob": "Worker", "MPIJob": "Launcher"}
"""The role that jobs of a kind must have."""
_SINGLE: Final = {
    "PyTorchJob": ("Master",),
    "TFJob": ("Chief", "Master"),
    "XGBoostJob": ("Master",),
    "MPIJob": ("Launcher",),
}
"""The roles that have one pod, all of them together, by kind."""
_POPULATED: Final = {"PyTorchJob": ("Master", "Worker"), "JAXJob": ("Worker",)}
"""The roles that must not all be without a pod, by kind."""


def errors_of(job: Job, kind: JobKind) -> Iterator[FieldError]:
    """Errors of names, roles, containers, pod templates and elastic policies."""
    yield from _check_name(job)
    path = f"spec.{kind.replicas_field}"
    roles = kind.replica_specs(job)
    yield from _check_roles(roles, kind, path)
    for role, replica in roles.items():
        if role in kind.roles:
            field = f"{path}[{role}].template"
            main = kind.container or _main_container(job, role)
            yield from _check_containers(replica, main, f"{field}.spec.containers")
            yield from semantic_pod_template_errors(replica.template, field)
    if isinstance(job, PyTorchJob):
        yield from _check_elastic(job, path)


def _check_name(job: Job) -> Iterator[FieldError]:
    name = job.metadata.name
    if not name and not job.metadata.generate_name:
        yield required("metadata.name")
    elif name and (len(name) > _LONGEST_NAME or not patterns.compiled(patterns.HOST_LABEL).search(name)):
        yield invalid("metadata.name", name, f"{patterns.WORDS[patterns.HOST_LABEL]}; at most {_LONGEST_NAME} of them")


def _check_roles(roles: dict[str, ReplicaSpec], kind: JobKind, path: str) -> Iterator[FieldError]:
    known = {role: replica for role, replica in roles.items() if role in kind.roles}
    for role in roles:
        if role not in known:
            yield not_supported(path, role, kind.roles)
    needed = _REQUIRED.get(kind.resource.kind)
    if needed is not None and needed not in known:
        yield required(f"{path}[{needed}]", f"a {kind.resource.kind} has this role")
    elif not known:
        yield required(path, f"name at least one role: {listed(kind.roles)}")
    able = [role for role in _POPULATED.get(kind.resource.kind, ()) if role in known]
    if able and all(known[role].replicas == 0 for role in able):
        yield invalid(f"{path}[{able[-1]}].replicas", 0, "must be at least 1")
    pods = sum(1 if replica.replicas is None else replica.replicas for replica in known.values())
    if pods > _MOST_PODS:
        yield invalid(path, pods, f"must have at most {_MOST_PODS} replicas of all roles together")
    single = [role for role in _SINGLE.get(kind.resource.kind, ()) if role in known]
    for role in single:
        if known[role].replicas not in {None, 1}:
            yield invalid(f"{path}[{role}].replicas", known[role].replicas, "must be 1")
    if len(single) > 1:
        yield invalid(path, single, "must not have both: a training has one chief, which Master is another name of")


def _main_container(job: Job, role: str) -> str | None:
    """The container that an MPIJob names, which its launcher must have; workers without it have their first."""
    return job.spec.main_container if isinstance(job, MPIJob) and role == "Launcher" else None


def _check_containers(replica: ReplicaSpec, wanted: str | None, path: str) -> Iterator[FieldError]:
    containers = replica.template["spec"]["containers"]
    names = [container["name"] for container in containers]
    if wanted and wanted not in names:
        yield required(path, f"one must be called {wanted}, which trains; there are {listed(names)}")
    for container in containers:
        if not container.get("image"):
            yield required(f"{path}[{container['name']}].image")


def _check_elastic(job: PyTorchJob, path: str) -> Iterator[FieldError]:
    policy = job.spec.elastic_policy
    if policy is None:
        return
    if "Worker" not in job.spec.pytorch_replica_specs:
        yield required(f"{path}[Worker]", "an elastic PyTorchJob has workers")
    if policy.n_proc_per_node is not None and job.spec.nproc_per_node is not None:
        rule = "must not be set together with spec.nprocPerNode, which has taken its place; remove it"
        yield forbidden("spec.elasticPolicy.nProcPerNode", rule)
    yield from _check_bounds(policy)


def _check_bounds(policy: ElasticPolicy) -> Iterator[FieldError]:
    least, most = policy.min_replicas, policy.max_replicas
    if least is not None and most is not None and least > most:
        yield invalid("spec.elasticPolicy.minReplicas", least, f"must not be greater than maxReplicas, which is {most}")
