"""Torch: distributed PyTorch, started by `torchrun` on every node (KEP-2170, "The TorchMLPolicySource API").

`torchrun` takes each of its options from the environment variable `PET_<OPTION>`, so the runtime's command stays plain:
`torchrun train.py` means `torchrun --nnodes=5 --nproc-per-node=2 ... train.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework.review import AdmissionWarning
from trainer.framework.runtime_info import NODE_RANK, RENDEZVOUS_PORT
from trainer.framework.trainer_step import trainer_env
from trainer.kube.field_errors import FieldError, forbidden
from trainer.kube.quantity import whole_units

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework.runtime_info import Container, RuntimeInfo
    from trainer.kube.objects import Object

RESERVED = frozenset({"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"})
"""Variables that only this plugin sets."""


class Torch:
    """Tells `torchrun` how many nodes and processes there are, which node this is, and where the first one listens."""

    name = "torch"
    ml_policy_sources = frozenset({"torch"})

    def validate(
        self,
        info: RuntimeInfo,
        old: TrainJob | None,  # noqa: ARG002
        new: TrainJob,
    ) -> Iterator[FieldError | AdmissionWarning]:
        """Refuse reserved variables, and elastic training, which is not supported yet; warn of GPUs that would idle."""
        policy = info.ml_policy.torch
        if policy is None:
            return
        if policy.elastic_policy is not None:
            rule = "elastic training is not supported yet; remove it and set spec.mlPolicy.numNodes"
            yield forbidden(f"{info.runtime} spec.mlPolicy.torch.elasticPolicy", rule)
        for path, names in _env_names(new, info.main_container):
            reserved = sorted(RESERVED.intersection(names))
            if reserved:
                yield forbidden(path, f"must not set {', '.join(reserved)}, which the torch plugin sets; remove it")
        yield from _idle_gpus(info, new)

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Set the `PET_*` variables of the training container, whether or not the TrainJob changes the trainer."""
        if info.ml_policy.torch is None:
            return
        container = info.main_container
        container.set_env(
            [
                {"name": "PET_NNODES", "value": str(info.trainer.count)},
                {"name": "PET_NPROC_PER_NODE", "value": processes_per_node(info, train_job)},
                {"name": "PET_NODE_RANK", "valueFrom": NODE_RANK},
                {"name": "PET_MASTER_ADDR", "value": info.head_address()},
                {"name": "PET_MASTER_PORT", "value": str(RENDEZVOUS_PORT)},
            ]
        )
        container.expose(RENDEZVOUS_PORT)


def processes_per_node(info: RuntimeInfo, train_job: TrainJob) -> str:
    """What to tell `torchrun` about processes: the TrainJob's wish, else the runtime's, else `auto`.

    `torchrun` counts the CPUs of the whole machine, so `auto` without GPUs and `cpu` become the CPUs that the
    container has; `auto` becomes 1 when that is not known.
    """
    trainer = train_job.spec.trainer
    wish = trainer.num_proc_per_node if trainer else None
    if wish is None:
        wish = info.ml_policy.torch.num_proc_per_node if info.ml_policy.torch else None
    if wish is None:
        wish = "auto"
    container = info.main_container
    if wish == "auto" and not _gpus(container):
        return str(_cpus(container) or 1)
    if wish == "cpu":
        return str(_cpus(container) or wish)
    return str(wish)


def _idle_gpus(info: RuntimeInfo, train_job: TrainJob) -> Iterator[AdmissionWarning]:
    """GPUs are asked for, and not as many processes."""
    gpus, processes = _gpus(info.main_container), processes_per_node(info, train_job)
    if not gpus or processes in {"auto", "gpu", str(gpus)}:
        return
    trainer = train_job.spec.trainer
    is_own = trainer is not None and (trainer.num_proc_per_node is not None or trainer.resources_per_node is not None)
    path = "spec.trainer.numProcPerNode" if is_own else f"{info.runtime} spec.mlPolicy.torch.numProcPerNode"
    text = f"starts {processes} processes on a node with {gpus} GPUs; gpu or auto starts one for each GPU"
    yield AdmissionWarning(path, text)


def _gpus(container: Container) -> int:
    """Any vendor's: the first resource, by name, whose name contains `gpu`; requests count before limits."""
    for amounts in _amounts(container):
        for name in sorted(amounts):
            if "gpu" in name.lower() and whole_units(amounts[name]):
                return whole_units(amounts[name])
    return 0


def _cpus(container: Container) -> int:
    """CPUs in whole units, rounded up; requests count before limits."""
    for amounts in _amounts(container):
        if whole_units(amounts.get("cpu", 0)):
            return whole_units(amounts["cpu"])
    return 0


def _amounts(container: Container) -> Iterator[Object]:
    yield container.resources.get("requests") or {}
    yield container.resources.get("limits") or {}


def _env_names(train_job: TrainJob, main: Container) -> Iterable[tuple[str, list[str]]]:
    """Where a TrainJob can set variables of the training container, and which it sets there."""
    yield "spec.trainer.env", [variable["name"] for variable in trainer_env(train_job)]
    for index, override in enumerate(train_job.spec.pod_spec_overrides or []):
        for container in override.containers or []:
            if container.name == main.name:
                path = f"spec.podSpecOverrides[{index}].containers[{container.name}].env"
                yield path, [variable.name for variable in container.env or []]
