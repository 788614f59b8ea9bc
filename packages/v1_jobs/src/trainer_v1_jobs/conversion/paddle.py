"""PaddleJob: workers that `paddle.distributed.launch` joins to one training, or parameter servers and trainers."""

from __future__ import annotations

from typing import Final

from trainer.api.losses import Losses
from trainer.kube.objects import Object
from trainer_v1_jobs.api.kinds import PaddleJob
from trainer_v1_jobs.conversion.draft import Draft, Nodes, PerRoleJobs, draft_nodes, draft_per_role
from trainer_v1_jobs.conversion.places import TRAINJOB_NAME, name_variable
from trainer_v1_jobs.conversion.pods import UNBUFFERED, declared_port
from trainer_v1_jobs.conversion.source import Role, Source

FRAMEWORK: Final = "paddle"
RESERVED: Final = frozenset(
    {"PADDLE_NNODES", "PADDLE_RANK", "PADDLE_MASTER", "POD_IP", "PADDLE_JOB_ID", "PADDLE_NPROC_PER_NODE"}
)
"""Variables that only the plugin sets."""

_SERVER: Final = "Master"


def draft(source: Source, losses: Losses, port: int) -> Draft:
    """The parts of a PaddleJob; `port` is where nodes meet."""
    assert isinstance(source.job, PaddleJob), "each kind has a draft of its own"
    if source.job.spec.elastic_policy is not None:
        losses.add("spec.elasticPolicy", "is left out: the number of nodes is fixed, and the operator did not scale it")
    if source.role(_SERVER) is not None or source.version == "v1alpha1":
        return draft_per_role(
            source,
            losses,
            framework=FRAMEWORK,
            variables=lambda role, per_role: _operator_variables(source, role, per_role),
            ends_with=_SERVER,
        )
    return draft_nodes(
        source,
        losses,
        framework=FRAMEWORK,
        ml_policy={"paddle": {}},
        variables=[UNBUFFERED],
        sidecar_variables=[
            name_variable(),
            *_meeting(Nodes().host(0), port),
            {"name": "PADDLE_NNODES", "value": str(source.pods)},
            UNBUFFERED,
        ],
        reserved=RESERVED,
        meets_at=port,
    )


def _meeting(host: str, port: int) -> list[Object]:
    return [
        {"name": "PADDLE_JOB_ID", "value": f"$({TRAINJOB_NAME})"},
        {"name": "PADDLE_MASTER", "value": f"{host}:{port}"},
    ]


def _operator_variables(source: Source, role: Role, per_role: PerRoleJobs) -> list[Object]:
    """What the operator gives every container; a launcher serves the others if its own name is that of the master.

    The operator had another template for the first pod, with its address.
    """
    first = source.roles[0]
    variables = [
        *_meeting(per_role.host(0), declared_port(source, first)),
        {"name": "TASK_INDEX", "valueFrom": per_role.index_of(role)},
        {"name": "POD_IP", "value": per_role.host_of(role, "$(TASK_INDEX)")},
        {"name": "PADDLE_NNODES", "value": str(source.pods)},
    ]
    if source.role(_SERVER) is not None:
        kind = "PADDLE_SERVER_NUM" if role.name == _SERVER else "PADDLE_TRAINER_NUM"
        variables.append({"name": kind, "value": "1"})
    return variables
