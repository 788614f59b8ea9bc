"""transformers, without a word about checkpoints but how often they are saved."""

import os

import torch
from record import STEPS, Record
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

torch.manual_seed(0)
config = GPT2Config(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1, bos_token_id=None, eos_token_id=None)
rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 16, (120, 8))]
arguments = TrainingArguments(
    output_dir="output",
    max_steps=STEPS,
    per_device_train_batch_size=4 // int(os.environ.get("WORLD_SIZE", "1")),
    logging_steps=1,
    save_steps=4,
    learning_rate=0.01,
    report_to="none",
    use_cpu=True,
    seed=3,
)


class Recorder(TrainerCallback):
    """Records what is logged."""

    def __init__(self):
        self.record = Record(int(os.environ.get("RANK", "0")))

    def on_log(self, args, state, control, logs=None, **further):
        if "loss" in (logs or {}):
            self.record.step(state.global_step, float(logs["loss"]))


Trainer(GPT2LMHeadModel(config), arguments, train_dataset=rows, callbacks=[Recorder()]).train()
