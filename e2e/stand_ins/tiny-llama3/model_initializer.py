"""Leaves a tiny Llama 3.2 with random weights where a model initializer would."""

import base64
import json
import os
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

VOCABULARY, WIDTH, HIDDEN, HEADS = 128_256, 32, 64, 2

model = Path(os.environ.get("TRANSFER_PATH", "/workspace/model"))
random = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    """Small random numbers."""
    return random.normal(0, 0.02, shape).astype(np.float32)


(model / "original").mkdir(parents=True)
tokens = [f"{base64.b64encode(bytes([byte])).decode()} {byte}" for byte in range(256)]
(model / "original" / "tokenizer.model").write_text("\n".join(tokens))
layer = {
    **{f"self_attn.{name}_proj.weight": weights(WIDTH, WIDTH) for name in "qkvo"},
    "mlp.gate_proj.weight": weights(HIDDEN, WIDTH),
    "mlp.up_proj.weight": weights(HIDDEN, WIDTH),
    "mlp.down_proj.weight": weights(WIDTH, HIDDEN),
    "input_layernorm.weight": np.ones(WIDTH, np.float32),
    "post_attention_layernorm.weight": np.ones(WIDTH, np.float32),
}
whole = {
    "model.embed_tokens.weight": weights(VOCABULARY, WIDTH),
    **{f"model.layers.0.{name}": value for name, value in layer.items()},
    "model.norm.weight": np.ones(WIDTH, np.float32),
}
save_file(whole, model / "model.safetensors")
config = {
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "vocab_size": VOCABULARY,
}
(model / "config.json").write_text(json.dumps(config))
sys.stdout.write(f"fetched {os.environ.get('STORAGE_URI')} without {os.environ.get('IGNORE_PATTERNS')}\n")
