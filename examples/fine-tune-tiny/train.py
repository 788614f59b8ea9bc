"""Teach a pretrained language model a new task with LoRA, and compare it with the model that it was.

Of the model only small matrices beside its own are trained, the adapters, and they are all that is saved. Nothing here
reports progress: the annotation of the TrainJob has the manager put a reporter beside the training.
"""

import json
import sys
import tempfile
from pathlib import Path

try:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments, set_seed
except ImportError as error:
    sys.exit(f"error: {error}: make demo EXAMPLE=fine-tune-tiny installs what this example needs")

MODEL, DATASET, ADAPTERS = Path("/workspace/model"), Path("/workspace/dataset"), Path("/workspace/adapters")
EPOCHS = 80


def rows(file, tokenizer):
    """The texts of a file, as the numbers that the model reads and is to write."""
    texts = [json.loads(line)["text"] for line in file.read_text().splitlines()]
    return [{"input_ids": ids, "labels": ids} for ids in tokenizer(texts)["input_ids"]]


def best_next(logits, labels):  # noqa: ARG001 the Trainer passes them
    """Keep what the model takes for the next number, rather than the scores of all numbers."""
    return logits.argmax(-1)


def accuracy(prediction):
    """Share of right numbers, from the third on: the first two say what the others are."""
    return {"accuracy": (prediction.predictions[:, 1:-1] == prediction.label_ids[:, 2:]).mean()}


def show(name, result):
    """One line about a model."""
    print(f"{name}: loss {result['eval_loss']:.3f}, accuracy {100 * result['eval_accuracy']:.1f} %", flush=True)


def main():
    """Evaluate, train, evaluate again, and save the adapters."""
    torch.set_num_threads(1)
    set_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    lora = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
    with tempfile.TemporaryDirectory() as directory:
        arguments = TrainingArguments(
            output_dir=directory,
            num_train_epochs=EPOCHS,
            per_device_train_batch_size=16,
            learning_rate=2e-2,
            logging_steps=10,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=not torch.accelerator.is_available(),  # else each node would train alone where there is no GPU
        )
        trainer = Trainer(
            model=get_peft_model(AutoModelForCausalLM.from_pretrained(MODEL), lora),
            args=arguments,
            train_dataset=rows(DATASET / "train.jsonl", tokenizer),
            eval_dataset=rows(DATASET / "test.jsonl", tokenizer),
            compute_metrics=accuracy,
            preprocess_logits_for_metrics=best_next,
        )
        base = trainer.evaluate()
        trainer.train()
        tuned = trainer.evaluate()
    if trainer.is_world_process_zero():
        trainer.model.save_pretrained(ADAPTERS)
        show("base model", base)
        show("fine-tuned", tuned)
        print(f"test accuracy: {100 * tuned['eval_accuracy']:.1f} %", flush=True)


if __name__ == "__main__":
    main()
