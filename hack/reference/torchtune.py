"""The page about the runtimes of torchtune: how each trains, and the memory that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hack.reference.markdown import code, page, table
from hack.torchtune_models import MEASURED, MODELS
from trainer.plugins.torch.torchtune_recipes import Devices, Method

if TYPE_CHECKING:
    from hack.torchtune_models import Model
    from trainer.plugins.torch.torchtune_recipes import Variant

_ARGS: Final = {
    Method.FULL: "",
    Method.LORA: "model.lora_attn_modules=[q_proj,v_proj]",
    Method.QLORA: "model.quantize_base=True",
}


def torchtune() -> str:
    """The page docs/reference/torchtune.md."""
    ours = [_runtime(model) for model in MODELS]
    return page(
        "Runtimes of torchtune",
        "A TrainJob that only names the runtime trains as the first table says; with the settings of the second it "
        "gets another recipe and configuration of torchtune 0.6.1, which `tune cat` prints. The plugin torch chooses "
        "them by model, method and number of GPUs.",
        table(("runtime", "weights", "method", "GPUs", "recipe", "configuration"), ours),
        "## GPU memory",
        "The state is what weights, gradients and optimizer take on each GPU, computed from the parameters of the "
        "configuration in bf16; full fine-tuning on one device pages its optimizer to the memory of the CPU. What a "
        "batch needs comes on top, so a GPU must have more than the state. What torchtune has measured is in "
        "[its README](https://github.com/pytorch/torchtune/tree/v0.6.1#memory-and-training-speed).",
        table(
            (
                "runtime",
                "method",
                "GPUs",
                "`trainer` of the TrainJob",
                "configuration",
                "state, GiB, computed",
                "measured",
            ),
            (_variant(model, variant) for model in MODELS for variant in model.on_one_node),
        ),
        "`command: [tune, run]` leaves the method of the runtime behind. With more GPUs of one node the state is "
        "divided among them.",
    )


def _runtime(model: Model) -> tuple[str, ...]:
    variant = model.variant
    names = (variant.recipe, variant.config_of(model.name))
    return (code(model.runtime), code(model.repository), str(variant.method), str(model.gpus), *map(code, names))


def _variant(model: Model, variant: Variant) -> tuple[str, ...]:
    configuration = variant.config_of(model.name)
    gpus = 1 if variant.devices is Devices.ONE else max(model.gpus, 2)
    return (
        code(model.runtime),
        str(variant.method),
        str(gpus),
        code(_settings(model, variant, gpus)) if variant != model.variant else "",
        code(configuration),
        f"{model.state(variant, gpus):.1f}",
        MEASURED.get(configuration, ""),
    )


def _settings(model: Model, variant: Variant, gpus: int) -> str:
    """What a TrainJob says to get the variant instead of that of the runtime."""
    words = []
    if variant.method is not model.method:
        words += ["command: [tune, run]"] if variant.method is Method.FULL else []
        words += [f"args: ['{_ARGS[variant.method]}']"] if _ARGS[variant.method] else []
    if gpus != model.gpus:
        words.append(f"resourcesPerNode: {{limits: {{nvidia.com/gpu: {gpus}}}}}")
    return ", ".join(words)
