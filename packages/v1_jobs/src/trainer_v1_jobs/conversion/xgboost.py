"""XGBoostJob: the first pod, the master, runs the tracker where all meet; LightGBM finds its workers by their list.

The variables of the operator are written out beside those of the plugin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trainer.api.losses import Losses
from trainer.kube.objects import Object
from trainer_v1_jobs.conversion.draft import Draft, Nodes, PerRoleJobs, draft_nodes, draft_per_role
from trainer_v1_jobs.conversion.places import name_variable
from trainer_v1_jobs.conversion.pods import UNBUFFERED, declared_port
from trainer_v1_jobs.conversion.source import Source

FRAMEWORK: Final = "xgboost"
RESERVED: Final = frozenset(
    {"DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER", "DMLC_NUM_WORKER_PER_NODE"}
)
"""Variables that only the plugin sets."""


def draft(source: Source, losses: Losses, _port: int) -> Draft:
    """The parts of an XGBoostJob."""
    if not source.has_equal_roles:
        return draft_per_role(
            source,
            losses,
            framework=FRAMEWORK,
            variables=lambda _role, per_role: [*operator_variables(source, per_role)],
            ends_with="Master",
        )
    variables = [name_variable(), *operator_variables(source, Nodes()), UNBUFFERED]
    result = draft_nodes(
        source,
        losses,
        framework=FRAMEWORK,
        ml_policy={"xgboost": {}},
        variables=variables,
        sidecar_variables=variables,
        reserved=RESERVED,
        ends_with_first=True,
    )
    # The operator counts pods, and not their GPUs.
    result.trainer["numProcPerNode"] = 1
    return result


def operator_variables(source: Source, pods: Nodes | PerRoleJobs) -> Iterator[Object]:
    """What the operator gives every container, with the names of pods as they are now."""
    master = source.roles[0]
    values = {
        "MASTER_ADDR": pods.host(0),
        "MASTER_PORT": str(declared_port(source, master)),
        "WORLD_SIZE": str(source.pods),
    }
    worker = source.role("Worker")
    if worker is not None:
        values["WORKER_PORT"] = str(declared_port(source, worker))
        values["WORKER_ADDRS"] = ",".join(pods.host(number) for number in range(master.replicas, source.pods))
    yield from ({"name": name, "value": value} for name, value in values.items())
    yield {"name": "RANK", "valueFrom": pods.rank}
