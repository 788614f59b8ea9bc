"""Torch: distributed PyTorch, started by `torchrun` on every node (KEP-2170, "The TorchMLPolicySource API").

`torchrun` takes each of its options from the environment variable `PET_<OPTION>`, so the runtime's command stays plain:
`torchrun train.py` means `torchrun --nnodes=5 --nproc-per-node=2 ... train.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework.reserved_env import check_reserved_env
from trainer.framework.resources import gpus_of
from trainer.framework.review import AdmissionWarning
from trainer.framework.runtime_info import NODE_RANK, RENDEZVOUS_PORT
from trainer.kube.field_errors import FieldError, forbidden
from trainer.plugins.torch.processes import processes_per_node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework.runtime_info import RuntimeInfo

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
        yield from check_reserved_env(info, new, RESERVED, self.name)
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


def _idle_gpus(info: RuntimeInfo, train_job: TrainJob) -> Iterator[AdmissionWarning]:
    """GPUs are asked for, and not as many processes."""
    gpus, processes = gpus_of(info.main_container), processes_per_node(info, train_job)
    if not gpus or processes in {"auto", "gpu", str(gpus)}:
        return
    trainer = train_job.spec.trainer
    is_own = trainer is not None and (trainer.num_proc_per_node is not None or trainer.resources_per_node is not None)
    path = "spec.trainer.numProcPerNode" if is_own else f"{info.runtime} spec.mlPolicy.torch.numProcPerNode"
    text = f"starts {processes} processes on a node with {gpus} GPUs; gpu or auto starts one for each GPU"
    yield AdmissionWarning(path, text)
