"""The page about the runtimes of torchtune: how each trains, and the memory that it takes."""

from __future__ import annotations

from typing import Any, Final

import yaml

from hack.reference.markdown import code, page, table
from hack.torchtune_models import MEASURED, MODELS, Model
from trainer.plugins.torch.torchtune_recipes import DeviceScope, Method, Variant

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
        "A training of several epochs that starts again [goes on after the last complete one]"
        "(../checkpoints.md#torchtune).",
        "## GPU memory",
        "The state is what weights, gradients and optimizer take on each GPU, computed from the parameters of the "
        "configuration in bf16; full fine-tuning on one device pages its optimizer to the memory of the CPU. What a "
        "batch needs comes on top, so a GPU must have more than the state. What was measured on an H100 is "
        "what PyTorch had reserved at most, by `python -m benchmarks.fine_tuning`; the rest is from "
        "[torchtune's README](https://github.com/pytorch/torchtune/tree/v0.6.1#memory-and-training-speed).",
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
    gpus = 1 if variant.devices is DeviceScope.ONE else max(model.gpus, 2)
    return (
        code(model.runtime),
        str(variant.method),
        str(gpus),
        code(_written(settings(model, variant, gpus))) if variant != model.variant else "",
        code(configuration),
        f"{model.state(variant, gpus):.1f}",
        MEASURED.get(configuration, ""),
    )


def settings(model: Model, variant: Variant, gpus: int) -> dict[str, Any]:
    """What `spec.trainer` of a TrainJob says to get the variant instead of that of the runtime."""
    said: dict[str, Any] = {}
    if variant.method is not model.method:
        if variant.method is Method.FULL:
            said["command"] = ["tune", "run"]
        if _ARGS[variant.method]:
            said["args"] = [_ARGS[variant.method]]
    if gpus != model.gpus:
        said["resourcesPerNode"] = {"limits": {"nvidia.com/gpu": gpus}}
    return said


def _written(said: dict[str, Any]) -> str:
    """The settings in one line of YAML."""
    text = yaml.safe_dump(said, default_flow_style=True, sort_keys=False, width=1000).strip()
    return text[1:-1]
