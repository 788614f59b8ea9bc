"""JAX: distributed JAX (KEP-2145)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from typing import Final, NamedTuple

from trainer.api.trainjob import TrainJob
from trainer.framework import (
    NODE_RANK,
    PROCESSES,
    Container,
    RuntimeInfo,
    check_processes,
    check_reserved_env,
    container_overrides,
    stated_processes,
    trainer_env,
)
from trainer.kube.field_errors import FieldError, invalid, required
from trainer.kube.objects import Object

COORDINATOR_ADDRESS = "JAX_COORDINATOR_ADDRESS"
"""Address of process 0 as `host:port`; `jax.distributed.initialize` reads it unless an argument is given."""
NUM_PROCESSES = "JAX_NUM_PROCESSES"
"""Number of processes of all nodes; the training passes it to JAX."""
PROCESS_ID = "JAX_PROCESS_ID"
"""Index of the process; the training passes it to JAX."""
RESERVED = frozenset({COORDINATOR_ADDRESS, NUM_PROCESSES, PROCESS_ID})
"""Variables that only this plugin sets."""
LOCAL_DEVICE_IDS = "JAX_LOCAL_DEVICE_IDS"
"""Comma-separated indexes of the process's GPUs, absent for all; JAX reads it."""
INITIALIZATION_TIMEOUT = "JAX_INITIALIZATION_TIMEOUT"
"""Seconds for which processes wait for each other; the training passes it to JAX."""
COORDINATOR_BIND_ADDRESS = "JAX_COORDINATOR_BIND_ADDRESS"
"""Bind address of process 0 as `host:port`; JAX reads it."""


# Read here, because no file may keep the event loop waiting.
SCRIPT = resources.files(__package__).joinpath("launcher.sh").read_text("utf-8").partition("\n\n")[2]
"""The program that starts several processes on a node, for any shell; images without one cannot."""


_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):(?P<port>[0-9]+)")
_TPU = "google.com/tpu"


class Jax:
    """Sets the number of processes, the index of each and the coordinator for `jax.distributed.initialize()`.

    The training passes on what JAX does not read by itself: `jax.distributed.initialize(num_processes=
    int(os.environ["JAX_NUM_PROCESSES"]), process_id=int(os.environ["JAX_PROCESS_ID"]),
    initialization_timeout=int(os.environ["JAX_INITIALIZATION_TIMEOUT"]))`.

    A node runs one process, which sees all devices, unless `numProcPerNode` asks for more. Then the command is started
    by a launcher, which gives each process its number and its share of the GPUs.
    """

    name = "jax"
    ml_policy_sources = frozenset({"jax"})

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[FieldError]:
        """Refuse reserved variables, values that JAX cannot use, and nodes whose devices cannot be split."""
        if info.ml_policy.jax is None:
            return
        wrong = list(check_split(info, self.stated_processes(new)))
        yield from wrong
        is_split = not wrong and split_of(info, self.stated_processes(new)).processes > 1
        yield from check_reserved_env(info, new, RESERVED | ({LOCAL_DEVICE_IDS} if is_split else set()), self.name)
        yield from check_values(info, new)

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Set the `JAX_*` variables of the training container, and start several processes where requested."""
        if info.ml_policy.jax is None or not info.gets_variables(train_job):
            return
        container, split = info.main_container, split_of(info, self.stated_processes(train_job))
        container.set_env(
            [
                {"name": NUM_PROCESSES, "value": str(info.trainer.count * split.processes)},
                {"name": PROCESS_ID, "valueFrom": NODE_RANK},  # which a launcher makes the process's
                {"name": COORDINATOR_ADDRESS, "value": f"{info.head_address()}:{info.rendezvous_port}"},
            ]
        )
        present = {variable["name"] for variable in container.env}
        container.set_env(
            {"name": name, "value": value} for name, value in self.defaults(info).items() if name not in present
        )
        container.expose(info.rendezvous_port)
        if split.processes > 1:
            container.command = launched(container.command, split.processes, split.devices)

    def defaults(self, info: RuntimeInfo) -> dict[str, str]:
        """Variables that runtimes and TrainJobs may set, and their values where these do not, which are those of JAX.

        Processes wait five minutes for each other, at all addresses of the pod, IPv4 and IPv6.
        """
        return {INITIALIZATION_TIMEOUT: "300", COORDINATOR_BIND_ADDRESS: f"[::]:{info.rendezvous_port}"}

    def stated_processes(self, train_job: TrainJob) -> int | str | None:
        """The processes of a node that the TrainJob asks for; see `stated_processes`."""
        return stated_processes(train_job)


def launched(command: list[str], processes: int, devices: int) -> list[str]:
    """The command of a container whose node runs several processes of `command`, which needs no quoting so."""
    # Kubernetes would take $( for the beginning of a reference to a variable.
    return ["/bin/sh", "-c", SCRIPT.replace("$(", "$$("), "jax-launcher", str(processes), str(devices), *command]


def check_values(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    """Refuse values with which JAX fails, or with which its processes do not find each other."""
    for path, variable in _variables(info, train_job):
        value = variable.get("value")
        if value is None or "$(" in value:  # known only in the pod
            continue
        rule = _rule(variable["name"], value, info)
        if rule:
            yield invalid(f"{path}[{variable['name']}]", value, rule)


def _rule(name: str, value: str, info: RuntimeInfo) -> str:
    """The rule that the value of a variable breaks; "" without one."""
    if name == INITIALIZATION_TIMEOUT and not (re.fullmatch("[0-9]+", value) and int(value)):
        return "must be a whole number of seconds, at least 1"
    if name == COORDINATOR_BIND_ADDRESS:
        address = _ADDRESS.fullmatch(value)
        port = info.rendezvous_port
        if address is None or int(address["port"]) != port:
            return f"must be host:{port}, the port at which the other processes expect the coordinator"
    gpus = info.devices_of(info.main_container).count
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


_MOST_NAMED: Final = 128
"""The largest number of processes that a message names; a node has fewer devices, whatever a TrainJob says."""


class Split(NamedTuple):
    """The processes of a node."""

    processes: int
    devices: int
    """GPUs of each process, when there are several processes; 0 when these are to run on the CPU."""


def split_of(info: RuntimeInfo, stated: int | str | None) -> Split:
    """The processes of `numProcPerNode`, which `check_split` has found no error in.

    Absent and `auto` are one process, which sees all devices: what JAX recommends. `gpu` is one for each GPU.
    """
    gpus = info.devices_of(info.main_container).count
    processes = stated if isinstance(stated, int) else gpus if stated == "gpu" else 1
    return Split(processes, gpus // processes)


def check_split(info: RuntimeInfo, stated: int | str | None) -> Iterator[FieldError]:
    """Refuse processes that cannot share the devices of a node, and several processes of an unknown command."""
    container, gpus = info.main_container, info.devices_of(info.main_container).count
    wrong = list(check_processes(stated, gpus, "one JAX process uses all CPUs of a node"))
    yield from wrong
    if not wrong and (processes := split_of(info, stated).processes) > 1:
        yield from _check_several(processes, gpus, container)


def _check_several(processes: int, gpus: int, container: Container) -> Iterator[FieldError]:
    if gpus % processes:
        divisors = ", ".join(str(number) for number in range(1, min(gpus, _MOST_NAMED) + 1) if gpus % number == 0)
        yield invalid(PROCESSES, processes, f"must divide the {gpus} GPUs of a node: one of {divisors}")
    if any(_TPU in amounts for amounts in container.resources.values() if isinstance(amounts, dict)):
        yield invalid(PROCESSES, processes, "must be 1 or absent on nodes with TPUs, which one JAX process drives")
    if not container.command:
        rule = f"must be set to start {processes} processes on a node: that of the image is not known here"
        yield required("spec.trainer.command", rule)
