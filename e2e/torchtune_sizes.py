"""Prints how many parameters the models of configurations of torchtune have, without making their weights."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from omegaconf import OmegaConf
from torchtune.config import instantiate
from torchtune.modules.peft import get_adapter_params

spec = find_spec("torchtune")
assert spec is not None
(PACKAGE,) = spec.submodule_search_locations or []
CONFIGURATIONS = Path(PACKAGE).parent / "recipes" / "configs"


def sizes(configuration: str) -> dict[str, int]:
    """Parameters of the model, those that QLoRA quantizes, and those of adapters, if there are any."""
    fields = OmegaConf.to_container(OmegaConf.load(CONFIGURATIONS / f"{configuration}.yaml").model, resolve=True)
    assert isinstance(fields, dict)
    # What is to be quantized needs weights.
    fields["_component_"] = fields["_component_"].replace("qlora", "lora")
    with torch.device("meta"):
        model = instantiate(OmegaConf.create(fields))
    adapters = sum(each.numel() for each in get_adapter_params(model).values())
    layers = [
        each.numel()
        for name, each in model.named_parameters()
        if name.startswith("layers.") and each.dim() == 2 and "lora_" not in name
    ]
    counted = {"parameters": sum(each.numel() for each in model.parameters()) - adapters, "quantized": sum(layers)}
    return counted | ({"adapters": adapters} if adapters else {})


sys.stdout.write(json.dumps({name: sizes(name) for name in sys.argv[1:]}))
