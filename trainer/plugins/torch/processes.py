"""The number of processes that torchrun starts on each node."""

from __future__ import annotations

from collections.abc import Iterator

from trainer.api.trainjob import TrainJob
from trainer.framework import (
    PROCESSES,
    AdmissionWarning,
    RuntimeInfo,
    check_processes,
    cpus_of,
    stated_processes,
)
from trainer.kube.field_errors import FieldError, required


def processes_per_node(info: RuntimeInfo, train_job: TrainJob) -> str:
    """The value of `nproc_per_node`: the TrainJob's, else the runtime's, else `auto`.

    `torchrun` counts the CPUs of the whole machine, so `auto` without GPUs and `cpu` become the CPUs that the
    container has; `auto` becomes 1 when that is not known. GPUs it counts right, for a container sees its own alone. It
    does not find other devices, such as TPUs, so it gets their number.
    """
    stated = chosen_processes(info, train_job)
    if stated == "cpu":
        return str(cpus_of(info.sizing_container(train_job)) or stated)
    if stated not in {"auto", "gpu"}:
        return str(stated)
    devices = info.devices_of(info.main_container)
    if stated == "auto" and not devices.count:
        return str(cpus_of(info.sizing_container(train_job)) or 1)
    return str(stated if devices.seen_by_torchrun else devices.count)


def chosen_processes(info: RuntimeInfo, train_job: TrainJob) -> int | str:
    """A number, cpu, gpu or auto: the TrainJob's, else the runtime's, else `auto`."""
    stated = stated_processes(train_job)
    if stated is not None:
        return stated
    return (info.ml_policy.torch and info.ml_policy.torch.num_proc_per_node) or "auto"


def check_gpus(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    """Refuse `gpu` on nodes without GPUs, where torchrun fails; a TrainJob adds them also if its runtime says it."""
    gpus, stated = info.devices_of(info.main_container).count, stated_processes(train_job)
    yield from check_processes(stated, gpus)
    if stated is None and not gpus and chosen_processes(info, train_job) == "gpu":
        rule = f"must have GPUs, since {info.runtime} spec.mlPolicy.torch.numProcPerNode is gpu"
        yield required("spec.trainer.resourcesPerNode", f"{rule}; or set {PROCESSES}")


def idle_gpus(info: RuntimeInfo, train_job: TrainJob) -> Iterator[AdmissionWarning]:
    """Warn when the number of processes differs from the number of GPUs."""
    gpus = info.devices_of(info.main_container).count
    if not gpus or (processes := processes_per_node(info, train_job)) in {"auto", "gpu", str(gpus)}:
        return
    trainer = train_job.spec.trainer
    is_own = trainer is not None and (trainer.num_proc_per_node is not None or trainer.resources_per_node is not None)
    path = PROCESSES if is_own else f"{info.runtime} spec.mlPolicy.torch.numProcPerNode"
    text = f"starts {processes} processes on a node with {gpus} GPUs; gpu or auto starts one for each GPU"
    yield AdmissionWarning(path, text)
