"""torchtune: only a command `tune run` of the TrainJob is completed.

    tune run [--rdzv_endpoint=<head>] <recipe> --config <configuration> <paths of the runtime>

The arguments of the TrainJob follow as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainer.api.trainjob import TrainJob
from trainer.framework import RuntimeInfo, pod_spec_of
from trainer.kube.objects import Object
from trainer.plugins.torch.processes import processes_per_node
from trainer.v1alpha1.torchtune import COMMAND, MANAGED_KEYS, key_of, method_of, model_of, recipe_of

_OF_COMMAND = frozenset({"PET_MASTER_ADDR", "PET_MASTER_PORT"})
"""Variables of what the command says itself."""


def complete(info: RuntimeInfo, train_job: TrainJob, variables: list[Object]) -> list[Object]:
    """Complete the command `tune run` of a TrainJob; returns those of the variables that the container still needs."""
    trainer = train_job.spec.trainer
    if trainer is None or trainer.command != COMMAND:
        return variables
    nodes, processes = info.trainer.count, processes_per_node(info, train_job)
    gpus = info.devices_of(info.main_container).count
    is_one_device = processes == "1" or gpus == 1
    recipe = recipe_of(method_of(trainer.args or []), nodes=nodes, is_one_device=is_one_device)
    has_peers = nodes > 1 or (gpus > 1 if processes == "auto" else int(processes) > 1)
    endpoint = f"--rdzv_endpoint={info.head_address()}:{info.rendezvous_port}"
    info.main_container.command = [
        *COMMAND,
        *([endpoint] if has_peers else []),
        recipe.name,
        "--config",
        f"{model_of(train_job.spec.runtime_ref.name)}{recipe.suffix}",
        *_paths(info),
    ]
    return [variable for variable in variables if variable["name"] not in _OF_COMMAND]


def _paths(info: RuntimeInfo) -> Iterator[str]:
    """The paths that the runtime's own command sets, which its volumes make right."""
    for container in pod_spec_of(info.job_of(info.trainer))["containers"]:
        if container["name"] == info.main_container.name:
            yield from (word for word in container.get("command") or [] if key_of(word) in MANAGED_KEYS)
