"""The number of JAX processes of a node, and the GPUs of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trainer.framework import devices_of, stated_processes
from trainer.kube.field_errors import FieldError, invalid, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework import Container, RuntimeInfo

_PATH = "spec.trainer.numProcPerNode"
_TPU = "google.com/tpu"


class Split(NamedTuple):
    """The processes of a node."""

    processes: int
    devices: int
    """GPUs of each process, when there are several processes; 0 when these are to run on the CPU."""


def split_of(info: RuntimeInfo, train_job: TrainJob) -> Split:
    """The processes of `numProcPerNode`, for a TrainJob without errors of `check_split`.

    Absent and `auto` are one process, which sees all devices: what JAX recommends. `gpu` is one for each GPU.
    """
    gpus = devices_of(info.main_container).count
    wish = stated_processes(train_job)
    processes = gpus if wish == "gpu" else 1 if wish in {None, "auto"} else int(wish)
    return Split(processes, gpus // processes)


def check_split(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    """Refuse processes that cannot share the devices of a node, and several processes of an unknown command."""
    wish, container = stated_processes(train_job), info.main_container
    gpus = devices_of(container).count
    if wish == "cpu":
        rule = "must be a number, gpu or auto: one JAX process uses all CPUs of a node"
        yield invalid(_PATH, wish, rule)
    elif wish == "gpu" and not gpus:
        rule = "must not be gpu without GPUs; add them to spec.trainer.resourcesPerNode"
        yield invalid(_PATH, wish, rule)
    else:
        processes = split_of(info, train_job).processes
        if processes > 1:
            yield from _check_several(processes, gpus, container)


def _check_several(processes: int, gpus: int, container: Container) -> Iterator[FieldError]:
    if gpus % processes:
        divisors = ", ".join(str(number) for number in range(1, gpus + 1) if gpus % number == 0)
        yield invalid(_PATH, processes, f"must divide the {gpus} GPUs of a node: one of {divisors}")
    if any(_TPU in amounts for amounts in container.resources.values() if isinstance(amounts, dict)):
        yield invalid(_PATH, processes, "must be 1 or absent on nodes with TPUs, which one JAX process drives")
    if not container.command:
        rule = f"must be set to start {processes} processes on a node: that of the image is not known here"
        yield required("spec.trainer.command", rule)
