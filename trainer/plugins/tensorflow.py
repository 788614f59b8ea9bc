"""TensorFlow: every pod reads from the variable `TF_CONFIG` who the others are, and what it is itself.

The nodes are workers. Replicated Jobs of these names have the roles that they had in a TFJob:

* `chief`: one pod, whose end is that of the training; it coordinates parameter servers, else it is another worker;
* `ps`: parameter servers, which never end;
* `evaluator`: no member of the cluster, which it watches from outside. It may never end.

They get image and variables of the TrainJob as the nodes do, and run the command of the nodes unless the runtime gives
their container another one; `resourcesPerNode` is for nodes. Their numbers are the `parallelism` of the runtime.

`TF_CONFIG` differs from pod to pod although all pods of a Job have one template. Kubernetes fills the difference in: it
replaces `$(NAME)` in the value of a variable by that of a variable defined before, even of one that comes from the
annotations of the pod, as its index does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from trainer.api.trainingruntime import TENSORFLOW_ROLES
from trainer.api.trainjob import TrainJob
from trainer.framework import (
    NODE_RANK,
    PodSet,
    RuntimeInfo,
    check_one_process_per_node,
    check_reserved_env,
    nodes_field,
)
from trainer.kube.field_errors import FieldError, invalid

CONFIG = "TF_CONFIG"
"""The tasks of all roles, and which of them this is, as JSON; TensorFlow reads it."""
TASK_INDEX = "TF_TASK_INDEX"
"""Index of the task in its role, from 0."""

RESERVED = frozenset({CONFIG, TASK_INDEX})
"""Variables that only this plugin sets."""

LONGEST_VARIABLE = 32 * 4096
"""Bytes of `NAME=value` and the zero byte behind it with which Linux starts a program: MAX_ARG_STRLEN, 32 pages."""


CHIEF, SERVERS, EVALUATOR = TENSORFLOW_ROLES
"""Names of the replicated Jobs of these roles."""


class TensorFlow:
    """Sets the addresses of all tasks, and the role and index of each.

    A single node without other roles gets no `TF_CONFIG`, as with TFJob: it trains alone. Without a chief it is the
    first worker that saves and reports.
    """

    name = "tensorflow"
    ml_policy_sources = frozenset({"tensorflow"})

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[FieldError]:
        """Refuse reserved variables, several processes per node, wrong roles, and more pods than `TF_CONFIG` names."""
        if info.ml_policy.tensorflow is None:
            return
        yield from check_reserved_env(info, new, RESERVED, self.name)
        yield from check_one_process_per_node(new)
        wrong = list(_check_sizes(info))
        yield from wrong or _check_length(info, new)

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Set `TF_CONFIG` of all roles when there are several pods, and what follows from there being roles."""
        if info.ml_policy.tensorflow is None or (info.trainer.count == 1 and not info.peers):
            return
        info.head_address()  # refuses pods without DNS names
        cluster = json.dumps({role: [*names] for role, names in _tasks(info)}, separators=(",", ":"))
        _set_config(info.trainer, _config(cluster, "worker", f"$({TASK_INDEX})"))
        info.main_container.expose(info.rendezvous_port)
        for peer in info.peers:
            container = peer.main_container
            _set_config(peer, _config(cluster, peer.name, f"$({TASK_INDEX})"))
            if peer.name != EVALUATOR:
                container.expose(info.rendezvous_port)
            if not container.command and not container.args:
                container.command, container.args = list(info.main_container.command), list(info.main_container.args)
        _end_and_report(info)


def _set_config(pod_set: PodSet, config: str) -> None:
    """Set both variables of the container that trains, the index first."""
    container = pod_set.main_container
    # A variable of the runtime keeps its place, which may be before the variable that it refers to.
    container.env = [variable for variable in container.env if variable["name"] not in RESERVED]
    container.set_env([{"name": TASK_INDEX, "valueFrom": NODE_RANK}, {"name": CONFIG, "value": config}])


def _end_and_report(info: RuntimeInfo) -> None:
    """Make a chief end the training and report its progress, and wait for no pods that never end."""
    roles = {peer.name: peer for peer in info.peers}
    chief = roles.pop(CHIEF, None)
    if chief is not None:
        info.report_from(chief)
    endless = [*roles.values(), *([info.trainer] if chief is not None else [])]
    if endless:
        info.succeed_without(endless)


def _tasks(info: RuntimeInfo) -> Iterator[tuple[str, Iterator[str]]]:
    """The roles of the cluster, the workers last, and where each task of them listens."""
    for peer in info.peers:
        if peer.name != EVALUATOR:
            yield peer.name, _endpoints(info, peer)
    yield "worker", _endpoints(info, info.trainer)


def _endpoints(info: RuntimeInfo, pod_set: PodSet) -> Iterator[str]:
    endpoints = info.endpoints_of(pod_set)
    return (f"{endpoints.of(0, index)}:{info.rendezvous_port}" for index in range(pod_set.count))


def _config(cluster: str, role: str, index: str) -> str:
    """`TF_CONFIG` of the task with this index, which may be a reference. DNS names hold no `$` to be mistaken."""
    return f'{{"cluster":{cluster},"task":{{"type":"{role}","index":{index}}},"environment":"cloud"}}'


def _check_sizes(info: RuntimeInfo) -> Iterator[FieldError]:
    """Refuse several chiefs, and Jobs that run their pods one after the other."""
    for peer in info.peers:
        path = _path(info, peer)
        if peer.name == CHIEF and peer.count != 1:
            yield invalid(f"{path}.parallelism", peer.count, "must be 1: a training has one chief")
        completions = info.job_of(peer).template.spec.completions
        if completions is not None and completions != peer.count:
            rule = f"must be left out or {peer.count}, the parallelism: all pods of a role train at the same time"
            yield invalid(f"{path}.completions", completions, rule)


def _check_length(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    """Refuse the first role with which the names of all tasks are longer than a variable may be."""
    roles = {peer.name for peer in info.peers}
    longest = max({"worker", *roles}, key=len)
    length = len(f"{CONFIG}={_config('{}', longest, '')}\0") - 1
    for role, names in _tasks(info):
        pod_set = next((peer for peer in info.peers if peer.name == role), info.trainer)
        length += len(f',"{role}":[]')
        for index, name in enumerate(names):
            length += len(f'"{name}"') + (1 if index else 0)
            if length + len(str(index)) > LONGEST_VARIABLE:
                is_peer = pod_set.is_peer
                field = f"{_path(info, pod_set)}.parallelism" if is_peer else nodes_field(info, train_job)
                what = "pods" if is_peer else "workers"
                rule = f"the names of more {what} are longer than the environment variable {CONFIG} may be"
                yield invalid(field, pod_set.count, f"must be at most {index}: {rule}")
                return


def _path(info: RuntimeInfo, pod_set: PodSet) -> str:
    return f"{info.runtime} spec.template.spec.replicatedJobs[{pod_set.name}].template.spec"
