"""A script that is started without torchrun: `torch.distributed.init_process_group()` reads these variables itself.

Every node runs it once, so a process is a node: `RANK` is the index of the node, and `WORLD_SIZE` the number of nodes.
torchrun gives its workers their own values, whatever it finds here. A number of processes other than 1 in runtime or
TrainJob says that something starts several: then `WORLD_SIZE` would be wrong, so that it and `RANK` are left out. The
default `auto` says nothing of the kind, since only torchrun reads it.

Not for elastic trainings, whose ranks change, nor for `tune run`, whose recipes for one device take these variables for
a distributed training.
"""

from __future__ import annotations

from trainer.api.trainjob import TrainJob
from trainer.framework import NODE_RANK, RuntimeInfo
from trainer.kube.objects import Object
from trainer.plugins.torch.processes import chosen_processes
from trainer.plugins.torch.torchtune_command import is_tune_run


def variables(info: RuntimeInfo, train_job: TrainJob) -> list[Object]:
    """The variables of `init_method="env://"` for one process on each node."""
    policy, container = info.ml_policy.torch, info.main_container
    if policy is None or policy.elastic_policy is not None or is_tune_run(container.command, container.args):
        return []
    found: list[Object] = [
        {"name": "MASTER_ADDR", "value": info.head_address()},
        {"name": "MASTER_PORT", "value": str(info.rendezvous_port)},
    ]
    if str(chosen_processes(info, train_job)) in {"auto", "1"}:
        found.append({"name": "WORLD_SIZE", "value": str(info.trainer.count)})
        found.append({"name": "RANK", "valueFrom": NODE_RANK})
    return found
