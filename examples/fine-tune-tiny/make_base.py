"""Make what a team would find on its Hub and in its bucket: a tiny pretrained language model, and data for a new task.

The model has learned rising sequences, such as 3 5 7 9 1 (modulo 10). The data has falling ones, such as 9 7 5 3 1,
which it continues wrongly. Nothing is downloaded.
"""

import json
import sys
from pathlib import Path

try:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
except ImportError as error:
    sys.exit(f"error: {error}: make demo EXAMPLE=fine-tune-tiny installs what this example needs")

LENGTH = 16
STEPS = 300
BATCH = 64
FOR_TEST = 8


def sequences(direction):
    """All sequences that begin with any number and rise, or fall, by 1 to 4."""
    starts, strides = torch.cartesian_prod(torch.arange(10), torch.arange(1, 5)).T.unsqueeze(-1)
    return (starts + direction * strides * torch.arange(LENGTH)) % 10


def pretrained():
    """A Llama with 33,000 parameters that continues rising sequences."""
    config = LlamaConfig(
        vocab_size=10,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=LENGTH,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    rising = sequences(1)
    for _ in range(STEPS):
        batch = rising[torch.randint(len(rising), (BATCH,))]
        loss = model(input_ids=batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def main(directory):
    """Write the repository of the model, and a bucket with the dataset and one for models."""
    torch.set_num_threads(1)
    set_seed(0)
    model = directory / "model"
    pretrained().save_pretrained(model)
    words = Tokenizer(models.WordLevel({str(number): number for number in range(10)}, unk_token="0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(model)

    falling = sequences(-1)
    lines = [json.dumps({"text": " ".join(map(str, row.tolist()))}) for row in falling[torch.randperm(len(falling))]]
    dataset = directory / "data" / "falling"
    dataset.mkdir(parents=True)
    (directory / "models").mkdir()
    (dataset / "train.jsonl").write_text("\n".join(lines[FOR_TEST:]) + "\n")
    (dataset / "test.jsonl").write_text("\n".join(lines[:FOR_TEST]) + "\n")
    print(f"made a model and {len(lines)} sequences", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
