"""PaddlePaddle: `python -m paddle.distributed.launch train.py` on every node, which reads its options from `PADDLE_*`.

The launchers meet at the first node, and give their processes ranks and addresses. The launcher whose own address is
that of `PADDLE_MASTER` serves the others there, so both are the DNS name of the pod (`POD_IP` is the launcher's option
`--host`, which need not be an IP address): names are known when the template of the pods is written, addresses are not.
A PaddleJob had another template for its first pod.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainer.api.trainjob import TrainJob
from trainer.framework import NODE_RANK, PROCESSES, RuntimeInfo, check_processes, check_reserved_env, stated_processes
from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.objects import Object

NODES = "PADDLE_NNODES"
"""Number of nodes."""
RANK = "PADDLE_RANK"
"""Index of the node, from 0."""
MASTER = "PADDLE_MASTER"
"""Address at which the launchers meet, as `host:port`."""
HOST = "POD_IP"
"""DNS name of the node, by which the processes of other nodes find its own."""
JOB = "PADDLE_JOB_ID"
"""Name of the training, under which the launchers meet."""
PROCESSES_PER_NODE = "PADDLE_NPROC_PER_NODE"
"""Processes on every node; unset, the launcher starts one for each device, or one on the CPUs."""
LOGS = "PADDLE_LOG_DIR"
"""Directory of the launcher's log files; it prints the file of the node's first process."""

RESERVED = frozenset({NODES, RANK, MASTER, HOST, JOB, PROCESSES_PER_NODE})
"""Variables that only this plugin sets."""


class Paddle:
    """Sets number of nodes and processes, the index of the node, and where the launchers meet.

    Training is collective; the wheels and images of PaddlePaddle 3 have no parameter servers.
    """

    name = "paddle"
    ml_policy_sources = frozenset({"paddle"})

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[FieldError]:
        """Refuse reserved variables and processes without a GPU of their own."""
        if info.ml_policy.paddle is None:
            return
        yield from check_reserved_env(info, new, RESERVED, self.name)
        yield from _check_processes(info, new)

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Set the variables of the training container."""
        if info.ml_policy.paddle is None:
            return
        container, stated = info.main_container, stated_processes(train_job)
        endpoints = info.endpoints_of(info.trainer)
        variables: list[Object] = [
            {"name": NODES, "value": str(info.trainer.count)},
            {"name": RANK, "valueFrom": NODE_RANK},
            {"name": MASTER, "value": f"{info.head_address()}:{info.rendezvous_port}"},
            {"name": HOST, "value": f"{endpoints.prefix}-0-$({RANK}).{endpoints.domain}"},
            {"name": JOB, "value": info.job_name},
        ]
        if isinstance(stated, int):
            variables.append({"name": PROCESSES_PER_NODE, "value": str(stated)})
        # A variable of the runtime keeps its place, which may be before the variable that it refers to.
        container.env = [variable for variable in container.env if variable["name"] not in RESERVED]
        container.set_env(variables)
        if all(variable["name"] != LOGS for variable in container.env):
            # Else it writes beside the script, where a ConfigMap may be mounted, and fails.
            container.set_env([{"name": LOGS, "value": f"/tmp/paddle/$({JOB})-$({RANK})"}])  # noqa: S108
        container.expose(info.rendezvous_port)


def _check_processes(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    stated, gpus = stated_processes(train_job), info.devices_of(info.main_container).count
    wrong = list(check_processes(stated, gpus, "one process of PaddlePaddle uses all CPUs of a node"))
    yield from wrong
    if not wrong and gpus and isinstance(stated, int) and stated > gpus:
        yield invalid(PROCESSES, stated, f"must be at most {gpus}, the GPUs of a node: two processes cannot use one")
