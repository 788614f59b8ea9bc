"""XGBoost: distributed gradient boosting, whose workers meet at a tracker on the first node.

XGBoost reads none of the variables by itself. The training of the first node starts the tracker, and every worker
passes on where that is, see `examples/xgboost-digits`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainer.api.trainjob import TrainJob
from trainer.framework import (
    NODE_RANK,
    PROCESSES,
    AdmissionWarning,
    Finding,
    RuntimeInfo,
    check_processes,
    check_reserved_env,
    stated_processes,
)
from trainer.kube.field_errors import invalid
from trainer.kube.objects import Object

TRACKER_HOST = "DMLC_TRACKER_URI"
"""Where the tracker listens: DNS name of the first node."""
TRACKER_PORT = "DMLC_TRACKER_PORT"
"""Port of the tracker."""
TASK_ID = "DMLC_TASK_ID"
"""Index of the node, from 0."""
WORKERS = "DMLC_NUM_WORKER"
"""Workers of all nodes, for which the tracker waits."""
WORKERS_PER_NODE = "DMLC_NUM_WORKER_PER_NODE"
"""Workers that the training starts on this node, itself included. A variable of this project only."""

RESERVED = frozenset({TRACKER_HOST, TRACKER_PORT, TASK_ID, WORKERS, WORKERS_PER_NODE})
"""Variables that only this plugin sets."""


class XGBoost:
    """Sets the address of the tracker, the index of the node, and the number of workers.

    One worker uses all CPUs of a node and one GPU, so there is one for each GPU, or one without GPUs. A node runs the
    command once: with several workers it is the training that starts them.
    """

    name = "xgboost"
    ml_policy_sources = frozenset({"xgboost"})

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[Finding]:
        """Refuse reserved variables and workers without a GPU of their own; warn of workers that would wait or idle."""
        if info.ml_policy.xgboost is None:
            return
        yield from check_reserved_env(info, new, RESERVED, self.name)
        yield from self._check_workers(info, new)

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Set the `DMLC_*` variables of the training container."""
        if info.ml_policy.xgboost is None or not info.gets_variables(train_job):
            return
        info.main_container.set_env(self.variables(info, self.workers_per_node(info, train_job)))
        info.main_container.expose(info.rendezvous_port)

    def variables(self, info: RuntimeInfo, workers: int) -> list[Object]:
        """The variables of a node with that many workers."""
        return [
            {"name": TRACKER_HOST, "value": info.head_address()},
            {"name": TRACKER_PORT, "value": str(info.rendezvous_port)},
            {"name": TASK_ID, "valueFrom": NODE_RANK},
            {"name": WORKERS, "value": str(info.trainer.count * workers)},
            {"name": WORKERS_PER_NODE, "value": str(workers)},
        ]

    def stated_workers(self, train_job: TrainJob) -> int | str | None:
        """The workers of a node that the TrainJob asks for; see `stated_processes`."""
        return stated_processes(train_job)

    def workers_per_node(self, info: RuntimeInfo, train_job: TrainJob) -> int:
        """The number in the TrainJob; else one for each GPU, or one."""
        stated = self.stated_workers(train_job)
        return stated if isinstance(stated, int) else max(info.devices_of(info.main_container).count, 1)

    def _check_workers(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Finding]:
        stated, gpus = self.stated_workers(train_job), info.devices_of(info.main_container).count
        workers = self.workers_per_node(info, train_job)
        wrong = list(check_processes(stated, gpus, "one XGBoost worker uses all CPUs of a node"))
        if wrong:
            yield from wrong
        elif gpus and workers > gpus:
            rule = f"must be at most {gpus}, the GPUs of a node: two XGBoost workers cannot use one"
            yield invalid(PROCESSES, workers, rule)
        elif workers < gpus:
            text = f"is {workers} on a node with {gpus} GPUs, of which a worker uses one; auto means one for each GPU"
            yield AdmissionWarning(PROCESSES, text)
        elif stated in {None, "auto"} and workers > 1:
            text = (
                f"is one for each GPU: XGBoost waits until the training has started {workers} workers on every node, "
                f"as {WORKERS_PER_NODE} says; for a training that is one worker set it to 1"
            )
            yield AdmissionWarning(PROCESSES, text)
