"""TFJob: workers, perhaps with a chief, parameter servers and an evaluator, which read their roles from TF_CONFIG.

Each role is a Job. Where there are workers these are the nodes, and the plugin sets TF_CONFIG; else it is written out.
"""

from __future__ import annotations

import json
from typing import Final

from trainer.api.losses import Losses
from trainer.kube.objects import Object
from trainer_v1_jobs.api.kinds import TFJob
from trainer_v1_jobs.conversion.draft import Draft, PerRoleJobs, draft_nodes, draft_per_role, replicated_job
from trainer_v1_jobs.conversion.places import NODE, Place
from trainer_v1_jobs.conversion.pods import declared_port, pods_of
from trainer_v1_jobs.conversion.restarts import check_backoff_limit, restart_fields
from trainer_v1_jobs.conversion.source import Role, Source

FRAMEWORK: Final = "tensorflow"
RESERVED: Final = frozenset({"TF_CONFIG", "TF_TASK_INDEX"})
"""Variables that only the plugin sets."""

_CHIEFS: Final = ("Chief", "Master")
_ROLES: Final = {"Chief": "chief", "Master": "chief", "PS": "ps", "Evaluator": "evaluator", "Worker": NODE}
"""The replicated Jobs of the roles."""
_FIRST_WORKER: Final[Object] = {"rules": [{"succeededIndexes": "0"}]}


def draft(source: Source, losses: Losses, port: int) -> Draft:
    """The parts of a TFJob; `port` is where tasks meet."""
    _check(source, losses)
    workers = source.role("Worker")
    if source.pods == 1 or (len(source.roles) == 1 and workers and source.version == "v2alpha1"):
        return draft_nodes(
            source,
            losses,
            framework=FRAMEWORK,
            ml_policy={} if source.version == "v1alpha1" else {"tensorflow": {}},
            variables=(),
            reserved=RESERVED,
            ends_with_first=not _waits_for_all(source),
            meets_at=port,
        )
    if workers is None or source.version == "v1alpha1":
        return _draft_written_out(source, losses)
    jobs = [_job(source, role, port, losses) for role in source.roles]
    check_backoff_limit(source, len(jobs), losses)
    # The workers come first, as in the runtimes that we ship: they are the nodes.
    jobs.sort(key=lambda job: job["name"] != NODE)
    return Draft(FRAMEWORK, jobs, {"tensorflow": {}}, {"numNodes": workers.replicas})


def _tf_job(source: Source) -> TFJob:
    assert isinstance(source.job, TFJob), "each kind has a draft of its own"
    return source.job


def _waits_for_all(source: Source) -> bool:
    """Whether a training without a chief has succeeded when all workers have, and not when the first has."""
    return _tf_job(source).spec.success_policy == "AllWorkers"


def _check(source: Source, losses: Losses) -> None:
    spec = _tf_job(source).spec
    master = source.role("Master")
    if master is not None and source.pods > 1:
        losses.add(master.path, "becomes the role chief, also in TF_CONFIG: TensorFlow 2 knows no master")
    if spec.success_policy and source.role(*_CHIEFS) is not None:
        losses.add("spec.successPolicy", "has no effect, as before: the training ends with its chief")
    if spec.enable_dynamic_worker:
        rule = "is left out: TF_CONFIG names all tasks, their number is fixed, and a worker that fails counts"
        losses.add("spec.enableDynamicWorker", rule)


def _job(source: Source, role: Role, port: int, losses: Losses) -> Object:
    places = {each.name: Place(_ROLES[each.name]) for each in source.roles}
    pods = pods_of(source, role, losses, RESERVED, places=places, meets_at=port)
    fields = restart_fields(source, role, pods, losses)
    if role.name == "Worker":
        if source.role(*_CHIEFS) is None and role.replicas > 1 and not _waits_for_all(source):
            fields["successPolicy"] = _FIRST_WORKER
        return replicated_job(NODE, pods, fields, is_trainer=True)
    return replicated_job(_ROLES[role.name], pods, {"parallelism": role.replicas} | fields)


def _draft_written_out(source: Source, losses: Losses) -> Draft:
    chief = source.role(*_CHIEFS)
    # The first worker can end the training where workers are the first role, for these are one Job.
    workers_first = sorted(source.roles, key=lambda role: role.name != "Worker")
    return draft_per_role(
        source,
        losses,
        framework=FRAMEWORK,
        variables=lambda role, per_role: _operator_variables(source, role, per_role),
        ends_with=chief.name if chief is not None else "Worker",
        roles=source.roles if chief is not None else tuple(workers_first),
        ends_with_first=chief is None and not _waits_for_all(source),
    )


def _operator_variables(source: Source, role: Role, per_role: PerRoleJobs) -> list[Object]:
    """TF_CONFIG, whose index Kubernetes fills in."""
    cluster = {
        _task(each): [
            f"{per_role.host_of(each, str(index))}:{declared_port(source, each)}" for index in range(each.replicas)
        ]
        for each in source.roles
        if each.name != "Evaluator"
    }
    text = json.dumps(cluster, separators=(",", ":"))
    task = f'{{"type":"{_task(role)}","index":$(TF_TASK_INDEX)}}'
    config = f'{{"cluster":{text},"task":{task},"environment":"cloud"}}'
    return [{"name": "TF_TASK_INDEX", "valueFrom": per_role.index_of(role)}, {"name": "TF_CONFIG", "value": config}]


def _task(role: Role) -> str:
    return "worker" if role.name == "Worker" else _ROLES[role.name]
