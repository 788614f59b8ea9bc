"""The models that we ship a runtime of torchtune for, and the GPU memory that fine-tuning them takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from trainer.plugins.torch.torchtune_recipes import VARIANTS, DeviceScope, Method, Variant, find_variant

_ORIGINAL: Final = ("tokenizer.path=/workspace/model/original/tokenizer.model",)
_SENTENCES: Final = ("tokenizer.path=/workspace/model/tokenizer.model",)
_META, _MISTRAL, _GOOGLE = "Meta", "Mistral AI", "Google"


@dataclass(frozen=True, slots=True)
class Model:
    """A model with what its runtime does unless a TrainJob says otherwise."""

    runtime: str
    """Name of the runtime."""
    title: str
    name: str
    """That of torchtune, the start of its configurations."""
    repository: str
    """Weights in the Hugging Face Hub."""
    parameters: int
    """Those of the model without adapters, in millions; the end-to-end tests count them and those that follow."""
    quantized: int
    """Those of them that QLoRA stores in four bits each."""
    adapters: int
    """Those of the adapters that the configurations of LoRA train."""
    method: Method
    gpus: int
    paths: tuple[str, ...]
    """Overrides that say where the files are."""
    owner: str = ""
    """Who grants access to the weights. Defaults to nobody: they are free."""
    weights_storage: str = "20Gi"
    output_storage: str = "20Gi"

    @property
    def variant(self) -> Variant:
        """The recipe of the runtime."""
        found = find_variant(self.name, self.method, DeviceScope.ONE if self.gpus == 1 else DeviceScope.SEVERAL)
        assert found is not None
        return found

    @property
    def on_one_node(self) -> Iterator[Variant]:
        """All that torchtune has for the model on one node."""
        return (each for each in VARIANTS[self.name] if each.devices != DeviceScope.NODES)

    def state(self, variant: Variant, gpus: int) -> float:
        """GiB of weights, gradients and optimizer on each GPU, in bf16; activations come on top.

        The recipe for all weights on one device updates them in the backward pass, so that it keeps no gradients, and
        its optimizer is in the memory of the CPU where that of the GPU is full.
        """
        trained = _GRADIENT_AND_ADAM * self.adapters
        size: float = _BF16 * self.parameters
        if variant.method is Method.QLORA:
            size = _NF4 * self.quantized + _BF16 * (self.parameters - self.quantized)
        if variant.method is Method.FULL:
            trained = _GRADIENT_AND_ADAM * self.parameters if variant.devices is DeviceScope.SEVERAL else 0
        else:
            size += _BF16 * self.adapters
        return (size + trained) * 1e6 / gpus / 2**30


_BF16: Final = 2
_NF4: Final = 0.5 + 1 / 64
"""Bytes of a quantized parameter, with its share of the scale of a block."""
_GRADIENT_AND_ADAM: Final = 6
"""Bytes for each trained parameter beside itself."""

MODELS: Final = (
    Model(
        runtime="torchtune-gemma-2b",
        title="Gemma 2B",
        name="gemma/2B",
        repository="google/gemma-2b",
        parameters=2506,
        quantized=1982,
        adapters=76,
        method=Method.LORA,
        gpus=1,
        paths=_SENTENCES,
        owner=_GOOGLE,
    ),
    Model(
        runtime="torchtune-llama3.1-70b",
        title="Llama 3.1 70B",
        name="llama3_1/70B",
        repository="meta-llama/Llama-3.1-70B-Instruct",
        parameters=70554,
        quantized=68451,
        adapters=195,
        method=Method.LORA,
        gpus=8,
        paths=_ORIGINAL,
        owner=_META,
        weights_storage="200Gi",
        output_storage="400Gi",
    ),
    Model(
        runtime="torchtune-llama3.1-8b",
        title="Llama 3.1 8B",
        name="llama3_1/8B",
        repository="meta-llama/Llama-3.1-8B-Instruct",
        parameters=8030,
        quantized=6979,
        adapters=20,
        method=Method.LORA,
        gpus=1,
        paths=_ORIGINAL,
        owner=_META,
        weights_storage="40Gi",
        output_storage="80Gi",
    ),
    Model(
        runtime="torchtune-llama3.2-1b",
        title="Llama 3.2 1B",
        name="llama3_2/1B",
        repository="meta-llama/Llama-3.2-1B-Instruct",
        parameters=1236,
        quantized=973,
        adapters=42,
        method=Method.FULL,
        gpus=2,
        paths=_ORIGINAL,
        owner=_META,
    ),
    Model(
        runtime="torchtune-llama3.2-3b",
        title="Llama 3.2 3B",
        name="llama3_2/3B",
        repository="meta-llama/Llama-3.2-3B-Instruct",
        parameters=3213,
        quantized=2819,
        adapters=90,
        method=Method.FULL,
        gpus=2,
        paths=_ORIGINAL,
        owner=_META,
        output_storage="40Gi",
    ),
    Model(
        runtime="torchtune-mistral-7b",
        title="Mistral 7B",
        name="mistral/7B",
        repository="mistralai/Mistral-7B-v0.1",
        parameters=7242,
        quantized=6979,
        adapters=160,
        method=Method.LORA,
        gpus=1,
        # The files that the configurations of torchtune name are those of another format.
        paths=(
            *_SENTENCES,
            "checkpointer.checkpoint_files=[model-00001-of-00002.safetensors,model-00002-of-00002.safetensors]",
        ),
        owner=_MISTRAL,
        weights_storage="40Gi",
        output_storage="80Gi",
    ),
    Model(
        runtime="torchtune-qwen2.5-1.5b",
        title="Qwen2.5 1.5B",
        name="qwen2_5/1.5B",
        repository="Qwen/Qwen2.5-1.5B-Instruct",
        parameters=1544,
        quantized=1310,
        adapters=35,
        method=Method.FULL,
        gpus=2,
        paths=(
            "tokenizer.path=/workspace/model/vocab.json",
            "tokenizer.merges_file=/workspace/model/merges.txt",
        ),
    ),
)
"""By the names of their runtimes."""

MEASURED: Final = {
    "gemma/2B_lora_single_device": "9.0 GiB on an H100, 4 sequences of 512 tokens",
    "llama3_1/8B_full_single_device": "18.9 GiB on a 4090",
    "llama3_1/8B_lora_single_device": "16.2 GiB on a 4090",
    "llama3_1/8B_qlora_single_device": "7.4 GiB on a 4090",
    "llama3_1/70B_full": "13.9 GiB on each of 8 A100, with CPU offload",
    "llama3_1/70B_lora": "27.6 GiB on each of 8 A100",
    "llama3_2/1B_full_single_device": "9.5 GiB on an H100, 4 sequences of 512 tokens",
    "llama3_2/1B_lora_single_device": "7.7 GiB on an H100, 4 sequences of 512 tokens",
}
"""Peaks of GPU memory, by configuration: from `python -m benchmarks.fine_tuning` on an H100, others from the README of
torchtune 0.6.1."""
