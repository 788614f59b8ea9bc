"""Lets the recipes of torchtune for one device train a tiny Llama 3.2 without GPUs.

The SDK can neither shrink a model nor name a device. Python imports a module of this name when it starts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torchtune.utils
from torchtune.models.llama3_2 import _model_builders as builders

SIZES = {"num_layers": 1, "num_heads": 2, "num_kv_heads": 2, "embed_dim": 32, "intermediate_dim": 64}


def shrunk(build: Callable[..., Any], *arguments: Any, **sizes: Any) -> Any:
    """The model of a builder, with the sizes of the stand-in."""
    return build(*arguments, **{**sizes, **SIZES, "max_seq_len": 256})


builders.llama3_2 = partial(shrunk, builders.llama3_2)
builders.lora_llama3_2 = partial(shrunk, builders.lora_llama3_2)
torchtune.utils.get_device = lambda *_, **__: torch.device("cpu")
