"""The number of processes that MPI starts on each node: the slots of the hostfile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework import devices_of, stated_processes
from trainer.kube.field_errors import FieldError, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework import RuntimeInfo

_FIELD = "spec.trainer.numProcPerNode"


def slots_per_node(info: RuntimeInfo, train_job: TrainJob) -> int:
    """The TrainJob's number, else the runtime's, else one for each GPU of a node, else 1.

    `auto` and `gpu` of the TrainJob stand for the GPUs, whatever the runtime says.
    """
    wish = _wish(train_job)
    if wish is not None and wish.isdigit():
        return int(wish)
    policy = info.ml_policy.mpi
    if wish is None and policy is not None and policy.num_proc_per_node is not None:
        return policy.num_proc_per_node
    return devices_of(info.trainer.main_container).count or 1


def check_slots(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    """Refuse a number of processes that a hostfile cannot have."""
    wish = _wish(train_job)
    if wish == "cpu":
        yield invalid(_FIELD, wish, "must be an integer, gpu or auto: an MPI runtime does not count CPUs")
    if wish == "gpu" and not devices_of(info.trainer.main_container).count:
        yield invalid(_FIELD, wish, "the nodes have no GPUs; ask for some in resourcesPerNode, or write an integer")


def _wish(train_job: TrainJob) -> str | None:
    wish = stated_processes(train_job)
    return None if wish is None else str(wish)
