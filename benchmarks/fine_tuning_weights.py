"""Makes what fine-tuning a model of a runtime of torchtune starts from: weights of full size, a tokenizer, and data.

The weights are random. They have the names, shapes and files that the configuration of torchtune loads, so that
memory and time are those of the real model. The tokenizers know single bytes, and every row of the data is longer
than the longest sequence, so that each batch has as many tokens as it can have.
"""

from __future__ import annotations

import base64
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import sentencepiece
import torch
from omegaconf import OmegaConf
from safetensors.torch import save_file
from torchtune.config import instantiate
from torchtune.models.convert_weights import tune_to_hf
from torchtune.models.qwen2._convert_weights import qwen2_tune_to_hf
from torchtune.models.qwen2._tokenizer import bytes_to_unicode
from torchtune.modules.peft import get_adapter_params

ROWS = 512
SENTENCE = "The quick brown fox jumps over the lazy dog while 1234567890 ships pass by. "


def make_model(configuration: str, directory: Path) -> None:
    """Write weights, their description and the tokenizer of a configuration."""
    spec = find_spec("torchtune")
    assert spec is not None
    (package,) = spec.submodule_search_locations or []
    config = OmegaConf.load(Path(package).parent / "recipes" / "configs" / f"{configuration}.yaml")
    weights, description = _weights(config)
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps(description))
    files = _files(config)
    names = sorted(weights)
    share = -(-len(names) // len(files))
    for number, file in enumerate(files):
        part = names[number * share : (number + 1) * share]
        save_file({name: weights[name].contiguous().cpu() for name in part}, directory / file)
    _make_tokenizer(config.tokenizer._component_, directory)


def _weights(config: Any) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Random weights by their names in the Hub, and what the checkpointer reads of `config.json`."""
    fields: Any = OmegaConf.to_container(config.model, resolve=True)
    fields["_component_"] = fields["_component_"].replace("qlora", "lora")
    with torch.device("meta"):
        model = instantiate(OmegaConf.create(fields))
    adapters = get_adapter_params(model)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    state = {
        name: torch.empty(each.shape, dtype=torch.bfloat16, device=device).normal_(0, 0.02)
        for name, each in model.state_dict().items()
        if name not in adapters
    }
    attention = model.layers[0].attn
    sizes = {
        "num_heads": attention.num_heads,
        "num_kv_heads": attention.num_kv_heads,
        "dim": attention.embed_dim,
        "head_dim": attention.head_dim,
    }
    if config.checkpointer.model_type == "QWEN2":
        tied = "output.weight" not in state
        converted = qwen2_tune_to_hf(state, **sizes, tie_word_embeddings=tied)
    else:
        tied = False
        converted = tune_to_hf(state, **sizes)
    description = {
        "num_attention_heads": attention.num_heads,
        "num_key_value_heads": attention.num_kv_heads,
        "hidden_size": attention.embed_dim,
        "head_dim": attention.head_dim,
        "vocab_size": model.tok_embeddings.num_embeddings,
        "tie_word_embeddings": tied,
    }
    return converted, description


def _files(config: Any) -> list[str]:
    """The files that the shipped runtime loads: safetensors, also where the configuration names another format."""
    named: Any = OmegaConf.to_container(config.checkpointer.checkpoint_files)
    if isinstance(named, dict):
        last = int(named["max_filename"])
        return [named["filename_format"].format(f"{number:05}", f"{last:05}") for number in range(1, last + 1)]
    return [name.replace("pytorch_model", "model").replace(".bin", ".safetensors") for name in named]


def _make_tokenizer(component: str, directory: Path) -> None:
    if "llama3" in component:
        (directory / "original").mkdir()
        tokens = [f"{base64.b64encode(bytes([byte])).decode()} {byte}" for byte in range(256)]
        (directory / "original" / "tokenizer.model").write_text("\n".join(tokens))
    elif "qwen2" in component:
        letters = {letter: number for number, letter in enumerate(bytes_to_unicode().values())}
        (directory / "vocab.json").write_text(json.dumps(letters))
        (directory / "merges.txt").write_text("#version: 0.2\n")
    else:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([SENTENCE] * 10),
            model_prefix=str(directory / "tokenizer"),
            model_type="bpe",
            vocab_size=300,
            byte_fallback=True,
            minloglevel=2,
        )


def make_data(directory: Path, longest: int) -> None:
    """Write rows in the form of the dataset Alpaca, each longer than the longest sequence in every tokenizer."""
    (directory / "data").mkdir(parents=True)
    row = {"instruction": "Continue.", "input": "", "output": SENTENCE * (longest // 8)}
    table = pa.Table.from_pylist([row] * ROWS)
    pq.write_table(table, directory / "data" / "train.parquet")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["data", target, length]:
            make_data(Path(target), int(length))
        case ["model", name, target]:
            make_model(name, Path(target))
        case _:
            raise SystemExit("usage: fine_tuning_weights.py data DIRECTORY LENGTH | model CONFIGURATION DIRECTORY")
