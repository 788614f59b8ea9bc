"""Teach a tiny language model to continue sequences such as 3 5 7 9 1 with the Trainer of Hugging Face transformers.

The model is made here, with random weights, and so is its data: nothing is downloaded. Of each sequence, modulo 10, the
first two numbers say what the others are.
"""

import tempfile

import torch
from huggingface_callback import TrainJobCallback
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

EPOCHS = 4
BATCH_PER_PROCESS = 16
LENGTH = 16
COPIES = 16  # of each sequence, in an epoch
FOR_EVALUATION = 8


def sequences():
    """All sequences, in an order that is random and always the same: those for training, those for evaluation."""
    starts, steps = torch.cartesian_prod(torch.arange(10), torch.arange(1, 5)).T.unsqueeze(-1)
    all_of_them = (starts + steps * torch.arange(LENGTH)) % 10
    shuffled = all_of_them[torch.randperm(len(all_of_them), generator=torch.Generator().manual_seed(0))]
    rows = [{"input_ids": row, "labels": row} for row in shuffled]
    return rows[FOR_EVALUATION:] * COPIES, rows[:FOR_EVALUATION]


def best_next(logits, labels):  # noqa: ARG001 the Trainer passes them
    """Keep what the model takes for the next number, rather than the scores of all numbers."""
    return logits.argmax(-1)


def accuracy(prediction):
    """Share of right numbers, from the third on."""
    return {"accuracy": (prediction.predictions[:, 1:-1] == prediction.label_ids[:, 2:]).mean()}


def main():
    """Train, and print the accuracy on sequences that were not trained on."""
    torch.set_num_threads(1)
    set_seed(0)
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
    train, evaluation = sequences()
    with tempfile.TemporaryDirectory() as directory:
        arguments = TrainingArguments(
            output_dir=directory,
            num_train_epochs=EPOCHS,
            per_device_train_batch_size=BATCH_PER_PROCESS,
            learning_rate=1e-2,
            logging_steps=10,
            eval_strategy="epoch",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=not torch.accelerator.is_available(),  # else each node would train alone where there is no GPU
        )
        trainer = Trainer(
            model=LlamaForCausalLM(config),
            args=arguments,
            train_dataset=train,
            eval_dataset=evaluation,
            compute_metrics=accuracy,
            preprocess_logits_for_metrics=best_next,
            callbacks=[TrainJobCallback()],
        )
        trainer.train()
        result = trainer.evaluate()
    if trainer.is_world_process_zero():
        print(f"test accuracy: {100 * result['eval_accuracy']:.1f} %", flush=True)


if __name__ == "__main__":
    main()
