"""The recipes and configurations of torchtune, by model, method and devices.

The facts are those of `_recipe_registry.py` of torchtune 0.6.1, the last release; `tune ls` prints them. Recipes that
do something else than to fine-tune on instructions, such as DPO or distillation, are for the user to choose.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Method(StrEnum):
    """The part of a model that is trained."""

    FULL = "full fine-tuning"
    LORA = "LoRA"
    QLORA = "QLoRA"


class Devices(StrEnum):
    """The devices that a recipe runs on."""

    ONE = "one device"
    SEVERAL = "several devices"
    NODES = "several nodes"


@dataclass(frozen=True, slots=True)
class Variant:
    """A recipe with its configurations for a list of models."""

    method: Method
    devices: Devices
    recipe: str
    suffix: str
    """The end of the configurations' names, after the model."""
    models: tuple[str, ...]
    """Models that have such a configuration."""

    def config_of(self, model: str) -> str:
        """Name of the configuration of one of the models."""
        return model + self.suffix


VARIANTS = (
    Variant(
        Method.FULL,
        Devices.ONE,
        "full_finetune_single_device",
        "_full_single_device",
        (
            *("llama3/8B", "llama3_1/8B", "llama3_2/1B", "llama3_2/3B", "llama3_2_vision/11B"),
            *("qwen2/0.5B", "qwen2/1.5B", "qwen2/7B", "qwen2_5/0.5B", "qwen2_5/1.5B", "qwen2_5/3B", "qwen2_5/7B"),
        ),
    ),
    Variant(
        Method.FULL,
        Devices.ONE,
        "full_finetune_single_device",
        "_full_low_memory",
        ("llama2/7B", "code_llama2/7B", "mistral/7B", "phi3/mini", "phi4/14B"),
    ),
    Variant(
        Method.FULL,
        Devices.SEVERAL,
        "full_finetune_distributed",
        "_full",
        (
            *("llama2/7B", "llama2/13B", "llama3/8B", "llama3/70B", "llama3_1/8B", "llama3_1/70B", "llama3_2/1B"),
            *("llama3_2/3B", "llama3_2_vision/11B", "llama3_2_vision/90B", "llama3_3/70B", "mistral/7B"),
            *("gemma/2B", "gemma/7B", "gemma2/2B", "gemma2/9B", "gemma2/27B", "phi3/mini", "phi4/14B"),
            *("qwen2/0.5B", "qwen2/1.5B", "qwen2/7B", "qwen2_5/0.5B", "qwen2_5/1.5B", "qwen2_5/3B", "qwen2_5/7B"),
        ),
    ),
    Variant(Method.FULL, Devices.NODES, "full_finetune_distributed", "_full_multinode", ("llama3_3/70B",)),
    Variant(
        Method.LORA,
        Devices.ONE,
        "lora_finetune_single_device",
        "_lora_single_device",
        (
            *("llama2/7B", "code_llama2/7B", "llama3/8B", "llama3_1/8B", "llama3_2/1B", "llama3_2/3B"),
            *("llama3_2_vision/11B", "mistral/7B", "gemma/2B", "gemma/7B", "gemma2/2B", "gemma2/9B", "gemma2/27B"),
            *("phi3/mini", "phi4/14B", "qwen2/0.5B", "qwen2/1.5B", "qwen2/7B", "qwen2_5/0.5B", "qwen2_5/1.5B"),
            *("qwen2_5/3B", "qwen2_5/7B", "qwen2_5/14B"),
        ),
    ),
    Variant(
        Method.LORA,
        Devices.SEVERAL,
        "lora_finetune_distributed",
        "_lora",
        (
            *("llama2/7B", "llama2/13B", "llama2/70B", "llama3/8B", "llama3/70B", "llama3_1/8B", "llama3_1/70B"),
            *("llama3_2/1B", "llama3_2/3B", "llama3_2_vision/11B", "llama3_2_vision/90B", "llama3_3/70B", "mistral/7B"),
            *("gemma/2B", "gemma/7B", "gemma2/2B", "gemma2/9B", "gemma2/27B", "phi3/mini", "phi4/14B"),
            *("qwen2/0.5B", "qwen2/1.5B", "qwen2/7B", "qwen2_5/0.5B", "qwen2_5/1.5B", "qwen2_5/3B", "qwen2_5/7B"),
            *("qwen2_5/32B", "qwen2_5/72B"),
        ),
    ),
    Variant(
        Method.QLORA,
        Devices.ONE,
        "lora_finetune_single_device",
        "_qlora_single_device",
        (
            *("llama2/7B", "llama2/13B", "code_llama2/7B", "llama3/8B", "llama3_1/8B", "llama3_2/1B", "llama3_2/3B"),
            *("llama3_2_vision/11B", "mistral/7B", "gemma/2B", "gemma/7B", "gemma2/2B", "gemma2/9B", "gemma2/27B"),
            *("phi3/mini", "phi4/14B"),
        ),
    ),
    Variant(
        Method.QLORA,
        Devices.SEVERAL,
        "lora_finetune_distributed",
        "_qlora",
        ("llama2/7B", "llama2/70B", "llama3_1/405B", "llama3_2_vision/11B", "llama3_2_vision/90B", "llama3_3/70B"),
    ),
)

MODELS = tuple(sorted({model for variant in VARIANTS for model in variant.models}))
"""All models that torchtune can fine-tune."""

SINGLE_DEVICE_RECIPES = frozenset(
    {
        "full_finetune_single_device",
        "lora_finetune_single_device",
        "lora_dpo_single_device",
        "ppo_full_finetune_single_device",
        "knowledge_distillation_single_device",
        "generate",
        "dev/generate_v2",
        "eleuther_eval",
        "quantize",
    }
)
"""Recipes that refuse torchrun's options; all other recipes require torchrun."""


def find_variant(model: str, method: Method, devices: Devices) -> Variant | None:
    """The variant for model, method and devices; None if torchtune has none."""
    return next((found for found in variants_of(model) if (found.method, found.devices) == (method, devices)), None)


def variants_of(model: str) -> list[Variant]:
    """All variants for a model."""
    return [variant for variant in VARIANTS if model in variant.models]


def variant_of(recipe: str | None, config: str | None) -> Variant | None:
    """The variant of a recipe and a configuration; None if the table lacks it."""
    for variant in VARIANTS:
        if variant.recipe == recipe and config in {variant.config_of(model) for model in variant.models}:
            return variant
    return None


def model_of(config: str) -> str | None:
    """The model of a configuration: `llama2/7B` for `llama2/7B_lora`."""
    return next((model for model in MODELS if config.startswith(f"{model}_")), None)


def model_named(name: str) -> str | None:
    """The model at the end of a runtime's name: `llama3_2/1B` for `torchtune-llama3.2-1b`."""
    parts = name.replace(".", "_").casefold().split("-")
    wanted = "/".join(parts[-2:]) if len(parts) > 2 else None
    # Names have no dot in the family of a model, and one in its size: qwen2/0.5B.
    return next((model for model in MODELS if model.replace(".", "_").casefold() == wanted), None)
