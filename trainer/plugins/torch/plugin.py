"""Torch: distributed PyTorch, started by `torchrun` on every node (KEP-2170, "The TorchMLPolicySource API").

`torchrun` takes each of its options from the environment variable `PET_<OPTION>`, so the runtime's command stays plain:
`torchrun train.py` means `torchrun --nnodes=5 --nproc-per-node=2 ... train.py`.

* **A fixed number of nodes**: see `static`.
* **An elastic number of nodes**: see `elastic`.

`tune run` of torchtune starts torchrun itself: see `torchtune`. Scripts may also do without it: see `plain_script`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainer.api.trainjob import TrainJob
from trainer.framework import NODE_RANK, Component, Finding, RuntimeInfo, Watch, check_reserved_env, trainer_env
from trainer.kube.objects import Object
from trainer.plugins.torch import elastic, env_injection, plain_script, torchtune
from trainer.plugins.torch.processes import check_gpus, idle_gpus, processes_per_node

RESERVED = frozenset(
    {"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_STANDALONE"}
)
"""Variables that only this plugin sets; an elastic training has some more."""


class Torch:
    """Sets torchrun's number of nodes and processes, the node rank and the rendezvous endpoint."""

    name = "torch"
    ml_policy_sources = frozenset({"torch"})

    def watches(self) -> Iterator[Watch]:
        """The autoscalers of elastic trainings."""
        yield elastic.WATCH

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[Finding]:
        """Refuse reserved variables, sizes out of bounds, missing GPUs and containers; warn of GPUs that would idle."""
        policy = info.ml_policy.torch
        if policy is None:
            return
        is_elastic = policy.elastic_policy is not None
        yield from check_reserved_env(info, new, RESERVED | elastic.RESERVED if is_elastic else RESERVED, self.name)
        yield from check_gpus(info, new)
        yield from idle_gpus(info, new)
        yield from elastic.validate(info, new)
        yield from env_injection.validate(info)
        yield from torchtune.validate(info, new)

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Set the `PET_*` variables of the training container, whether or not the TrainJob changes the trainer."""
        policy = info.ml_policy.torch
        if policy is None or not info.trains:
            return
        bounds = info.trainer.elastic
        if policy.elastic_policy is None or bounds is None:
            nodes, rendezvous = str(info.trainer.count), self.rendezvous(info, train_job)
        else:
            elastic.endure(info, train_job, policy.elastic_policy)
            nodes = f"{bounds.least}:{bounds.most}"
            rendezvous = elastic.rendezvous(info, train_job, policy.elastic_policy)
        variables: list[Object] = [
            {"name": "PET_NNODES", "value": nodes},
            {"name": "PET_NPROC_PER_NODE", "value": processes_per_node(info, train_job)},
            *rendezvous,
        ]
        for container in env_injection.targets(info):
            env_injection.inject(container, variables)
        if info.gets_variables(train_job):
            env_injection.inject(info.main_container, self.complete(info, train_job, variables))
            info.main_container.expose(info.rendezvous_port)

    def rendezvous(self, info: RuntimeInfo, train_job: TrainJob) -> list[Object]:
        """The variables of the rendezvous of a fixed number of nodes."""
        variables: list[Object] = [
            {"name": "PET_NODE_RANK", "valueFrom": NODE_RANK},
            {"name": "PET_MASTER_ADDR", "value": info.head_address()},
            {"name": "PET_MASTER_PORT", "value": str(info.rendezvous_port)},
        ]
        if info.trainer.count == 1 and not _names_meeting_point(info, train_job):
            variables.append({"name": "PET_STANDALONE", "value": "1"})
        return variables

    def complete(self, info: RuntimeInfo, train_job: TrainJob, variables: list[Object]) -> list[Object]:
        """Complete a command of torchtune; returns the variables of the training container, given those of torchrun."""
        torchtune.complete(info, train_job)
        own = plain_script.variables(info, train_job)
        return [*variables, *own, *torchtune.checkpoint_variables(info, train_job)]

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
        """The HorizontalPodAutoscaler of an elastic training that has metrics."""
        yield from elastic.build(info, train_job)


_MEETING_POINT_VARIABLES = frozenset({"PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT"})
_MEETING_POINT_OPTION = re.compile(r"--(rdzv|master)[-_]")
"""The beginning of `--rdzv-endpoint`, `--master_addr` and so on, also within a line for a shell."""


def _names_meeting_point(info: RuntimeInfo, train_job: TrainJob) -> bool:
    container = info.main_container
    names = {variable["name"] for variable in (*container.env, *trainer_env(train_job))}
    words = (*container.command, *container.args)
    return bool(names & _MEETING_POINT_VARIABLES) or any(map(_MEETING_POINT_OPTION.search, words))
