"""Leaves a tiny Llama 2 with random weights, in files of the usual form, in a directory."""

import json
import sys
from pathlib import Path

import numpy as np
import sentencepiece
from safetensors.numpy import save_file

VOCABULARY, WIDTH, HIDDEN, HEADS = 300, 32, 64, 2
TEXT = "Below is an instruction that describes a task. Write a response that appropriately completes the request."

model = Path(sys.argv[1])
model.mkdir(parents=True)
random = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    """Small random numbers."""
    return random.normal(0, 0.02, shape).astype(np.float32)


def layer(number: int) -> dict[str, np.ndarray]:
    """Weights of a layer, named as transformers does."""
    prefix = f"model.layers.{number}"
    return {
        **{f"{prefix}.self_attn.{name}_proj.weight": weights(WIDTH, WIDTH) for name in "qkvo"},
        f"{prefix}.mlp.gate_proj.weight": weights(HIDDEN, WIDTH),
        f"{prefix}.mlp.up_proj.weight": weights(HIDDEN, WIDTH),
        f"{prefix}.mlp.down_proj.weight": weights(WIDTH, HIDDEN),
        f"{prefix}.input_layernorm.weight": np.ones(WIDTH, np.float32),
        f"{prefix}.post_attention_layernorm.weight": np.ones(WIDTH, np.float32),
    }


sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter([TEXT] * 10),
    model_prefix=str(model / "tokenizer"),
    model_type="bpe",
    vocab_size=VOCABULARY,
    byte_fallback=True,
    minloglevel=2,
)
parts = [
    {"model.embed_tokens.weight": weights(VOCABULARY, WIDTH), **layer(0)},
    {**layer(1), "model.norm.weight": np.ones(WIDTH, np.float32), "lm_head.weight": weights(VOCABULARY, WIDTH)},
]
for number, part in enumerate(parts, start=1):
    save_file(part, model / f"model-0000{number}-of-00002.safetensors")
config = {
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "vocab_size": VOCABULARY,
}
(model / "config.json").write_text(json.dumps(config))
