"""Recognise handwritten digits with DeepSpeed, data-parallel over all processes that mpirun starts on all nodes.

Every process trains on its share of the data set that scikit-learn ships; ZeRO keeps a part of the optimizer's state
in each of them.
"""

import os

import deepspeed
import torch
import torch.distributed as dist
from report import report
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS = 20
BATCH_PER_PROCESS = 32
LEARNING_RATE = 0.1


def load_tensors():
    """The digits as tensors: training images and labels, test images and labels."""
    digits = load_digits()
    x_train, x_test, y_train, y_test = train_test_split(
        digits.data / 16, digits.target, test_size=0.2, random_state=0, stratify=digits.target
    )
    train = TensorDataset(torch.tensor(x_train, dtype=torch.float32), torch.tensor(y_train))
    test = TensorDataset(torch.tensor(x_test, dtype=torch.float32), torch.tensor(y_test))
    return train, test


def accuracy(engine, test, rank, world):
    """Share of right answers on the test set, each process judging a part of it."""
    x, y = (tensor.to(engine.device) for tensor in test.tensors)
    with torch.no_grad():
        right = (engine(x[rank::world]).argmax(1) == y[rank::world]).sum()
    dist.all_reduce(right)
    return right.item() / len(y)


def main():
    """Train and let rank 0 print the accuracy on digits that were not trained on."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    # Asks MPI for rank and world size, and its rank 0 for the address where all meet; they have them from torchrun.
    deepspeed.init_distributed("nccl" if torch.cuda.is_available() else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    # In one piece, for mpirun mixes what processes write at the same time.
    print(f"rank {rank} of {world} on {os.uname().nodename}\n", end="", flush=True)

    train, test = load_tensors()
    sampler = DistributedSampler(train, seed=0)
    loader = DataLoader(train, batch_size=BATCH_PER_PROCESS, sampler=sampler)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    config = {
        "train_micro_batch_size_per_gpu": BATCH_PER_PROCESS,
        "zero_optimization": {"stage": 1},
        "zero_allow_untested_optimizer": True,
    }
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    loss_function = nn.CrossEntropyLoss()

    report(current_step=0, total_steps=EPOCHS * len(loader), total_epochs=EPOCHS)
    for epoch in range(1, EPOCHS + 1):
        sampler.set_epoch(epoch)
        for step, (x, y) in enumerate(loader, 1):
            loss = loss_function(engine(x.to(engine.device)), y.to(engine.device))
            engine.backward(loss)
            engine.step()
            report(current_step=(epoch - 1) * len(loader) + step, train_metrics={"loss": loss})
        report(current_epoch=epoch)
        if rank == 0:
            print(f"epoch {epoch}/{EPOCHS} loss {loss.item():.4f}", flush=True)

    result = accuracy(engine, test, rank, world)
    report(eval_metrics={"accuracy": result}, force=True)
    if rank == 0:
        print(f"test accuracy: {100 * result:.1f} %", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
