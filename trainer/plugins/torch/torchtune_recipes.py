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


class DeviceScope(StrEnum):
    """The devices that a recipe runs on."""

    ONE = "one device"
    SEVERAL = "several devices"
    NODES = "several nodes"


@dataclass(frozen=True, slots=True)
class Variant:
    """A recipe with its configurations, one for each model that has it."""

    method: Method
    devices: DeviceScope
    recipe: str
    suffix: str
    """The end of the configurations' names, after the model."""

    def config_of(self, model: str) -> str:
        """Name of the configuration of one of the models."""
        return model + self.suffix


_FULL_ONE = Variant(Method.FULL, DeviceScope.ONE, "full_finetune_single_device", "_full_single_device")
_LOW_MEMORY = Variant(Method.FULL, DeviceScope.ONE, "full_finetune_single_device", "_full_low_memory")
_FULL = Variant(Method.FULL, DeviceScope.SEVERAL, "full_finetune_distributed", "_full")
_FULL_NODES = Variant(Method.FULL, DeviceScope.NODES, "full_finetune_distributed", "_full_multinode")
_LORA_ONE = Variant(Method.LORA, DeviceScope.ONE, "lora_finetune_single_device", "_lora_single_device")
_LORA = Variant(Method.LORA, DeviceScope.SEVERAL, "lora_finetune_distributed", "_lora")
_QLORA_ONE = Variant(Method.QLORA, DeviceScope.ONE, "lora_finetune_single_device", "_qlora_single_device")
_QLORA = Variant(Method.QLORA, DeviceScope.SEVERAL, "lora_finetune_distributed", "_qlora")

VARIANTS = {
    "code_llama2/7B": (_LOW_MEMORY, _LORA_ONE, _QLORA_ONE),
    "gemma/2B": (_FULL, _LORA_ONE, _LORA, _QLORA_ONE),
    "gemma/7B": (_FULL, _LORA_ONE, _LORA, _QLORA_ONE),
    "gemma2/27B": (_FULL, _LORA_ONE, _LORA, _QLORA_ONE),
    "gemma2/2B": (_FULL, _LORA_ONE, _LORA, _QLORA_ONE),
    "gemma2/9B": (_FULL, _LORA_ONE, _LORA, _QLORA_ONE),
    "llama2/13B": (_FULL, _LORA, _QLORA_ONE),
    "llama2/70B": (_LORA, _QLORA),
    "llama2/7B": (_LOW_MEMORY, _FULL, _LORA_ONE, _LORA, _QLORA_ONE, _QLORA),
    "llama3/70B": (_FULL, _LORA),
    "llama3/8B": (_FULL_ONE, _FULL, _LORA_ONE, _LORA, _QLORA_ONE),
    "llama3_1/405B": (_QLORA,),
    "llama3_1/70B": (_FULL, _LORA),
    "llama3_1/8B": (_FULL_ONE, _FULL, _LORA_ONE, _LORA, _QLORA_ONE),
    "llama3_2/1B": (_FULL_ONE, _FULL, _LORA_ONE, _LORA, _QLORA_ONE),
    "llama3_2/3B": (_FULL_ONE, _FULL, _LORA_ONE, _LORA, _QLORA_ONE),
    "llama3_2_vision/11B": (_FULL_ONE, _FULL, _LORA_ONE, _LORA, _QLORA_ONE, _QLORA),
    "llama3_2_vision/90B": (_FULL, _LORA, _QLORA),
    "llama3_3/70B": (_FULL, _FULL_NODES, _LORA, _QLORA),
    "mistral/7B": (_LOW_MEMORY, _FULL, _LORA_ONE, _LORA, _QLORA_ONE),
    "phi3/mini": (_LOW_MEMORY, _FULL, _LORA_ONE, _LORA, _QLORA_ONE),
    "phi4/14B": (_LOW_MEMORY, _FULL, _LORA_ONE, _LORA, _QLORA_ONE),
    "qwen2/0.5B": (_FULL_ONE, _FULL, _LORA_ONE, _LORA),
    "qwen2/1.5B": (_FULL_ONE, _FULL, _LORA_ONE, _LORA),
    "qwen2/7B": (_FULL_ONE, _FULL, _LORA_ONE, _LORA),
    "qwen2_5/0.5B": (_FULL_ONE, _FULL, _LORA_ONE, _LORA),
    "qwen2_5/1.5B": (_FULL_ONE, _FULL, _LORA_ONE, _LORA),
    "qwen2_5/14B": (_LORA_ONE,),
    "qwen2_5/32B": (_LORA,),
    "qwen2_5/3B": (_FULL_ONE, _FULL, _LORA_ONE, _LORA),
    "qwen2_5/72B": (_LORA,),
    "qwen2_5/7B": (_FULL_ONE, _FULL, _LORA_ONE, _LORA),
}
"""The variants of each model, by its name."""

MODELS = tuple(sorted(VARIANTS))
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


def find_variant(model: str, method: Method, devices: DeviceScope) -> Variant | None:
    """The variant for model, method and devices; None if torchtune has none."""
    return next((found for found in VARIANTS[model] if (found.method, found.devices) == (method, devices)), None)


def variant_of(recipe: str | None, config: str | None) -> Variant | None:
    """The variant of a recipe and a configuration; None if the table lacks it."""
    for model, variants in VARIANTS.items():
        for variant in variants:
            if (variant.recipe, variant.config_of(model)) == (recipe, config):
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
