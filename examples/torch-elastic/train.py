"""Recognise handwritten digits with PyTorch on nodes that come and go while it trains.

torchrun starts all processes anew whenever the number of nodes changes or one of them fails. So rank 0 writes a
checkpoint after every epoch. Every start begins with the last one, which rank 0 reads and sends to the others.
"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from report import report
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS = int(os.environ.get("EPOCHS", "300"))
CHECKPOINT = Path(os.environ.get("CHECKPOINTS", "/checkpoints")) / "last.pt"
BATCH = 64
"""Of all processes together, so that the training does not depend on how many there are."""


def load_tensors():
    """The digits as tensors: training images and labels, test images and labels."""
    digits = load_digits()
    x_train, x_test, y_train, y_test = train_test_split(
        digits.data / 16, digits.target, test_size=0.2, random_state=0, stratify=digits.target
    )
    train = TensorDataset(torch.tensor(x_train, dtype=torch.float32), torch.tensor(y_train))
    test = TensorDataset(torch.tensor(x_test, dtype=torch.float32), torch.tensor(y_test))
    return train, test


def last_state(rank):
    """What the last checkpoint holds, on all processes; None before there is one."""
    found = [torch.load(CHECKPOINT) if rank == 0 and CHECKPOINT.exists() else None]
    dist.broadcast_object_list(found, src=0)
    return found[0]


def save_state(epoch, model, optimizer):
    """Replace the checkpoint; whoever is killed meanwhile leaves the one before."""
    state = {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    unfinished = CHECKPOINT.with_suffix(".new")
    torch.save(state, unfinished)
    unfinished.replace(CHECKPOINT)


def main():
    """Train from the last checkpoint on, and let rank 0 print the accuracy on digits that were not trained on."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    state = last_state(rank)
    done = 0
    if state is not None:
        done = state["epoch"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    # torchrun starts Python unbuffered: a line and its end would be written one after the other, with others between.
    print(f"rank {rank} of {world} goes on after epoch {done}\n", end="", flush=True)

    train, test = load_tensors()
    sampler = DistributedSampler(train, seed=0)
    loader = DataLoader(train, batch_size=max(1, BATCH // world), sampler=sampler)
    parallel = DistributedDataParallel(model)
    loss_function = nn.CrossEntropyLoss()
    report(current_epoch=done, total_epochs=EPOCHS)  # goes on where the last start has come to
    for epoch in range(done + 1, EPOCHS + 1):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_function(parallel(x), y)
            loss.backward()
            optimizer.step()
        if rank == 0:
            save_state(epoch, model, optimizer)
            print(f"epoch {epoch}/{EPOCHS} on {world} processes, loss {loss.item():.4f}", flush=True)
        report(current_epoch=epoch, train_metrics={"loss": loss, "processes": world})

    x, y = test.tensors
    with torch.no_grad():
        right = (model(x).argmax(1) == y).sum().item()
    report(eval_metrics={"accuracy": right / len(y)}, force=True)
    if rank == 0:
        print(f"test accuracy: {100 * right / len(y):.1f} %", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    # DistributedDataParallel keeps the threads of gloo alive beyond destroy_process_group (torch 2.13). One of them
    # that drops its last tensor while the interpreter is being torn down aborts the process: tear nothing down.
    sys.stdout.flush()
    os._exit(0)
