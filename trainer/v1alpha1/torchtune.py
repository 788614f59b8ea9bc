"""What Kubeflow Trainer (Go) knows of torchtune: models, recipes, and what the arguments of a TrainJob choose.

It completes the command `tune run` of a TrainJob, and no other; the model is in the name of the runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

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
