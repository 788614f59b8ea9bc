"""Recognise handwritten digits with PyTorch, data-parallel over all processes that Flux starts on all nodes.

Every process trains on its share of the data set that scikit-learn ships, and the gradients are averaged over gloo.
"""

import os
import time

import torch
import torch.distributed as dist
from report import report
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

STEPS = 200
LEARNING_RATE = 0.5

RANK, WORLD = int(os.environ["FLUX_TASK_RANK"]), int(os.environ["FLUX_JOB_SIZE"])


def load_tensors():
    """The share of this process of the images and labels to train on, and all those to test on."""
    digits = load_digits()
    x_train, x_test, y_train, y_test = train_test_split(
        torch.tensor(digits.data / 16, dtype=torch.float32),
        torch.tensor(digits.target),
        test_size=0.2,
        random_state=0,
        stratify=digits.target,
    )
    return x_train[RANK::WORLD], y_train[RANK::WORLD], x_test, y_test


def main():
    """Train, and let rank 0 print the accuracy on digits that were not trained on."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    # MASTER_ADDR and MASTER_PORT are in the environment: Flux hands that of the first node on to all processes.
    dist.init_process_group("gloo", rank=RANK, world_size=WORLD)
    print(f"rank {RANK} of {WORLD} on {os.uname().nodename}", flush=True)

    x_train, y_train, x_test, y_test = load_tensors()
    model = nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    started = time.monotonic()
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x_train), y_train)
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= WORLD
        optimizer.step()
        report(current_step=step, total_steps=STEPS, train_metrics={"loss": loss})

    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    report(eval_metrics={"accuracy": accuracy}, force=True)
    if RANK == 0:
        print(f"trained in {time.monotonic() - started:.1f} s", flush=True)
        print(f"test accuracy: {100 * accuracy:.1f} %", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
