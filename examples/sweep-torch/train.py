"""Recognise handwritten digits with a small network of PyTorch: one trial of a sweep over its parameters.

It reports the loss on digits that it is not trained on after each epoch, so that the sweep can stop it early. Without a
sweep, as by `python train.py`, the defaults count.
"""

import time

import torch
from report import parameters, report
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 200


def load_tensors():
    """The digits as tensors: training images and labels, test images and labels."""
    digits = load_digits()
    parts = train_test_split(digits.data / 16, digits.target, test_size=0.2, random_state=0, stratify=digits.target)
    x_train, x_test, y_train, y_test = parts
    train = TensorDataset(torch.tensor(x_train, dtype=torch.float32), torch.tensor(y_train))
    return train, (torch.tensor(x_test, dtype=torch.float32), torch.tensor(y_test))


def main():
    """Train, and report each epoch."""
    chosen = parameters(lr=0.05, hidden=64, batch=16, optimizer="sgd")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train, (images, labels) = load_tensors()
    loader = DataLoader(train, batch_size=chosen.batch, shuffle=True)
    model = nn.Sequential(nn.Linear(64, chosen.hidden), nn.ReLU(), nn.Linear(chosen.hidden, 10))
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
    optimizer = kinds[chosen.optimizer](model.parameters(), lr=chosen.lr)
    loss_function = nn.CrossEntropyLoss()

    started = time.monotonic()
    for epoch in range(1, EPOCHS + 1):
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_function(model(x), y)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            answers = model(images)
        metrics = {
            "val_loss": loss_function(answers, labels),
            "accuracy": (answers.argmax(1) == labels).float().mean(),
        }
        # Each epoch at once, and not one line a second: the sweep compares trials epoch by epoch.
        report(current_epoch=epoch, total_epochs=EPOCHS, train_metrics={"loss": loss}, eval_metrics=metrics, force=True)
    print(f"trained in {time.monotonic() - started:.1f} s", flush=True)
    print(f"test accuracy: {100 * metrics['accuracy'].item():.1f} %", flush=True)


if __name__ == "__main__":
    main()
