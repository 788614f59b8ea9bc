"""TensorFlow: every node is a worker of a `MultiWorkerMirroredStrategy`, which reads the variable `TF_CONFIG`.

`TF_CONFIG` names all workers and says which one this is, so it differs from pod to pod although all pods of a Job have
one template. Kubernetes fills the difference in: it replaces `$(NAME)` in the value of a variable by that of a variable
defined before, even of one that comes from the pod's annotations, as the index of a pod does.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from trainer.framework import NODE_RANK, check_one_process_per_node, check_reserved_env, nodes_field
from trainer.kube.field_errors import FieldError, invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework import RuntimeInfo

CONFIG = "TF_CONFIG"
"""The workers and the index of this one, as JSON; TensorFlow reads it."""
TASK_INDEX = "TF_TASK_INDEX"
"""Index of the worker, from 0."""

RESERVED = frozenset({CONFIG, TASK_INDEX})
"""Variables that only this plugin sets."""

LONGEST_VARIABLE = 32 * 4096
"""Bytes of `NAME=value` and the zero byte behind it with which Linux starts a program: MAX_ARG_STRLEN, 32 pages."""


class TensorFlow:
    """Sets the addresses of the workers and the index of each.

    Every node is a worker that uses all GPUs of its node, and the first one is the chief: there are no parameter
    servers and evaluators. A single node gets no `TF_CONFIG`, as with TFJob: the strategy trains alone.
    """

    name = "tensorflow"
    ml_policy_sources = frozenset({"tensorflow"})

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[FieldError]:
        """Refuse reserved variables, more than one process per node, and more nodes than `TF_CONFIG` can name."""
        if info.ml_policy.tensorflow is None:
            return
        yield from check_reserved_env(info, new, RESERVED, self.name)
        yield from check_one_process_per_node(new)
        yield from _check_length(info, new)

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Set `TF_CONFIG` of the training container when there are several nodes."""
        if info.ml_policy.tensorflow is None or info.trainer.count == 1:
            return
        info.head_address()  # refuses pods without DNS names
        container = info.main_container
        # A variable of the runtime keeps its place, which may be before the variable that it refers to.
        container.env = [variable for variable in container.env if variable["name"] not in RESERVED]
        container.set_env(
            [
                {"name": TASK_INDEX, "valueFrom": NODE_RANK},
                {"name": CONFIG, "value": _config(_workers(info, info.trainer.count), f"$({TASK_INDEX})")},
            ]
        )
        container.expose(info.conventions.rendezvous_port)


def _workers(info: RuntimeInfo, count: int) -> Iterator[str]:
    """Where the first workers listen."""
    endpoints = info.endpoints_of(info.trainer)
    return (f"{endpoints.of(0, index)}:{info.conventions.rendezvous_port}" for index in range(count))


def _config(workers: Iterable[str], index: str) -> str:
    """`TF_CONFIG` of the worker with this index, which may be a reference. DNS names hold no `$` to be mistaken."""
    cluster = json.dumps({"worker": list(workers)}, separators=(",", ":"))
    return f'{{"cluster":{cluster},"task":{{"type":"worker","index":{index}}},"environment":"cloud"}}'


def _check_length(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    count = info.trainer.count
    most = _most_workers(info)
    if count <= most:
        return
    rule = f"must be at most {most}: the names of more workers are longer than the environment variable {CONFIG} may be"
    yield invalid(nodes_field(info, train_job), count, rule)


def _most_workers(info: RuntimeInfo) -> int:
    """The most workers that `TF_CONFIG` can name, at most the number of nodes."""
    length = len(f"{CONFIG}={_config([], '')}\0")
    for index, worker in enumerate(_workers(info, info.trainer.count)):
        length += len(f'"{worker}"') + (1 if index else 0)
        if length + len(str(index)) > LONGEST_VARIABLE:
            return index
    return info.trainer.count
