"""The number of processes that torchrun starts on each node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework import AdmissionWarning, cpus_of, devices_of, sizing_container, stated_processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework import RuntimeInfo


def processes_per_node(info: RuntimeInfo, train_job: TrainJob) -> str:
    """The value of `nproc_per_node`: the TrainJob's, else the runtime's, else `auto`.

    `torchrun` counts the CPUs of the whole machine, so `auto` without GPUs and `cpu` become the CPUs that the
    container has; `auto` becomes 1 when that is not known. GPUs it counts right, for a container sees its own alone. It
    does not find other devices, such as TPUs, so it gets their number.
    """
    wish = stated_processes(train_job)
    if wish is None:
        wish = info.ml_policy.torch.num_proc_per_node if info.ml_policy.torch else None
    if wish is None:
        wish = "auto"
    devices, cpus = devices_of(info.main_container), cpus_of(sizing_container(info, train_job))
    if wish == "auto" and not devices.count:
        return str(cpus or 1)
    if wish in {"auto", "gpu"} and not devices.seen_by_torchrun:
        return str(devices.count)
    if wish == "cpu":
        return str(cpus or wish)
    return str(wish)


def idle_gpus(info: RuntimeInfo, train_job: TrainJob) -> Iterator[AdmissionWarning]:
    """Warn when the number of processes differs from the number of GPUs."""
    gpus, processes = devices_of(info.main_container).count, processes_per_node(info, train_job)
    if not gpus or processes in {"auto", "gpu", str(gpus)}:
        return
    trainer = train_job.spec.trainer
    is_own = trainer is not None and (trainer.num_proc_per_node is not None or trainer.resources_per_node is not None)
    path = "spec.trainer.numProcPerNode" if is_own else f"{info.runtime} spec.mlPolicy.torch.numProcPerNode"
    text = f"starts {processes} processes on a node with {gpus} GPUs; gpu or auto starts one for each GPU"
    yield AdmissionWarning(path, text)
