"""The environment variables of distributed JAX (KEP-2145), and the values that people may give them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainer.framework import RENDEZVOUS_PORT, container_overrides, devices_of, trainer_env
from trainer.kube.field_errors import FieldError, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework import RuntimeInfo
    from trainer.kube.objects import Object

COORDINATOR_ADDRESS = "JAX_COORDINATOR_ADDRESS"
"""Address of process 0 as `host:port`; `jax.distributed.initialize` reads it unless an argument is given."""
NUM_PROCESSES = "JAX_NUM_PROCESSES"
"""Number of processes of all nodes; the training passes it to JAX."""
PROCESS_ID = "JAX_PROCESS_ID"
"""Index of the process; the training passes it to JAX."""
LOCAL_DEVICE_IDS = "JAX_LOCAL_DEVICE_IDS"
"""Comma-separated indexes of the process's GPUs, absent for all; JAX reads it."""
INITIALIZATION_TIMEOUT = "JAX_INITIALIZATION_TIMEOUT"
"""Seconds for which processes wait for each other; the training passes it to JAX."""
COORDINATOR_BIND_ADDRESS = "JAX_COORDINATOR_BIND_ADDRESS"
"""Bind address of process 0 as `host:port`; JAX reads it."""

DEFAULTS = {INITIALIZATION_TIMEOUT: "300", COORDINATOR_BIND_ADDRESS: f"[::]:{RENDEZVOUS_PORT}"}
"""Variables that runtimes and TrainJobs may set, and their values where these do not: five minutes, and all addresses
of the pod, be they IPv4 or IPv6. Both are the defaults of JAX."""

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):(?P<port>[0-9]+)")


def check_values(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    """Refuse values with which JAX fails, or with which its processes do not find each other."""
    for path, variable in _variables(info, train_job):
        value = variable.get("value")
        if value is None or "$(" in value:  # known only in the pod
            continue
        rule = _rule(variable["name"], value, devices_of(info.main_container).count)
        if rule:
            yield invalid(f"{path}[{variable['name']}]", value, rule)


def _rule(name: str, value: str, gpus: int) -> str:
    """The rule that the value of a variable breaks; "" without one."""
    if name == INITIALIZATION_TIMEOUT and not (re.fullmatch("[0-9]+", value) and int(value)):
        return "must be a whole number of seconds, at least 1"
    if name == COORDINATOR_BIND_ADDRESS:
        address = _ADDRESS.fullmatch(value)
        if address is None or int(address["port"]) != RENDEZVOUS_PORT:
            return f"must be host:{RENDEZVOUS_PORT}, the port at which the other processes expect the coordinator"
    if name == LOCAL_DEVICE_IDS and not re.fullmatch("[0-9]+(,[0-9]+)*", value):
        return "must be numbers of devices with commas between them, such as 0,1"
    if name == LOCAL_DEVICE_IDS and gpus and max(map(int, value.split(","))) >= gpus:
        return f"must be numbers below {gpus}, the GPUs of a node"
    return ""


def _variables(info: RuntimeInfo, train_job: TrainJob) -> Iterator[tuple[str, Object]]:
    """The variables of the training container, each with the path of the list that it comes from."""
    main = info.main_container
    found: dict[str, tuple[str, Object]] = {}
    template = f"spec.template.spec.replicatedJobs[{info.trainer.name}].template.spec.template.spec"
    for variable in main.env:
        found[variable["name"]] = f"{info.runtime} {template}.containers[{main.name}].env", variable
    for path, change in container_overrides(train_job, info.trainer, main):
        for changed in change.env or []:
            if found.get(changed.name, ("", None))[1] == changed.to_object():
                found[changed.name] = f"{path}.env", changed.to_object()
    for variable in trainer_env(train_job):
        found[variable["name"]] = "spec.trainer.env", variable
    yield from found.values()
