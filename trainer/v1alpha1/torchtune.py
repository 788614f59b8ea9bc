"""What Kubeflow Trainer (Go) knows of torchtune: models, recipes, and what the arguments of a TrainJob choose.

Only a command `tune run` of the TrainJob is completed; the model is in the name of the runtime:

    tune run [--rdzv_endpoint=<head>] <recipe> --config <configuration> <paths of the runtime>

The arguments of the TrainJob follow as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from trainer.api.trainjob import TrainJob
from trainer.framework import RuntimeInfo, pod_spec_of
from trainer.kube.objects import Object
from trainer.plugins.torch.processes import processes_per_node

COMMAND: Final = ["tune", "run"]
"""The command that is completed."""
MANAGED_KEYS: Final = ("output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file")
"""Settings of the runtime that a TrainJob must not set."""
MULTI_NODE_MODEL: Final = "llama3_3/70B"
"""The only model that trains on several nodes."""
NO_QLORA_MODEL: Final = "qwen2_5/1.5B"
"""The model that torchtune has no QLoRA for."""
SMALL_MODELS: Final = ("llama3_2/1B", "llama3_2/3B")
"""Models whose QLoRA is for one device."""
MODELS: Final = (*SMALL_MODELS, MULTI_NODE_MODEL, NO_QLORA_MODEL)
"""The models that are supported."""


class Method(StrEnum):
    """The part of a model that is trained."""

    FULL = "full"
    LORA = "lora"
    QLORA = "qlora"


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe, and the end of its configuration's name."""

    name: str
    suffix: str


def model_of(runtime: str) -> str:
    """The model in the name of a runtime: `llama3_2/1B` for `torchtune-llama3.2-1b`; "" if it has not three parts."""
    parts = runtime.split("-")
    return f"{parts[1].replace('.', '_')}/{parts[2].upper()}" if len(parts) == 3 else ""


def method_of(args: Sequence[str]) -> Method:
    """The method that the arguments select; a quantized DoRA is a kind of LoRA."""
    if _enables(args, "model.quantize_base") and not _enables(args, "model.use_dora"):
        return Method.QLORA
    return Method.LORA if has_adapters(args) else Method.FULL


def has_adapters(args: Sequence[str]) -> bool:
    """Whether arguments name the layers that get adapters."""
    return any("model.lora_attn_modules" in arg for arg in args)


def recipe_of(method: Method, *, nodes: int, is_one_device: bool) -> Recipe:
    """The recipe for a method, a number of nodes, and whether each has one device."""
    if nodes != 1:
        return Recipe("full_finetune_distributed", "_full_multinode" if nodes > 1 else "_full")
    kind = "full" if method is Method.FULL else "lora"
    if is_one_device:
        return Recipe(f"{kind}_finetune_single_device", f"_{method}_single_device")
    return Recipe(f"{kind}_finetune_distributed", f"_{method}")


def key_of(word: str) -> str:
    """The key of an override: `output_dir` for `output_dir=/tmp`."""
    return word.partition("=")[0]


def _enables(args: Sequence[str], key: str) -> bool:
    pairs = (arg.partition("=") for arg in args)
    return any(key in name and value.strip().casefold() == "true" for name, _, value in pairs)


_OF_COMMAND = frozenset({"PET_MASTER_ADDR", "PET_MASTER_PORT"})
"""Variables of what the command says itself."""


def complete_tune_run(info: RuntimeInfo, train_job: TrainJob, variables: list[Object]) -> list[Object]:
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
