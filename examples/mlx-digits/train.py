"""Recognise handwritten digits with MLX, data-parallel over all processes that mpirun starts on all nodes.

Every process trains on its share of the data set that scikit-learn ships; the gradients are averaged over MPI.
"""

import platform

import mlx.core as mx
import numpy as np
from mlx import nn, optimizers
from report import report
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

EPOCHS = 20
BATCH_PER_PROCESS = 32
LEARNING_RATE = 0.1


def load_arrays():
    """The digits: training images, test images, training labels, test labels."""
    digits = load_digits()
    parts = train_test_split(digits.data / 16, digits.target, test_size=0.2, random_state=0, stratify=digits.target)
    return [mx.array(part.astype(np.float32 if part.ndim == 2 else np.int32)) for part in parts]


def main():
    """Train and let rank 0 print the accuracy on digits that were not trained on."""
    group = mx.distributed.init(strict=True, backend="mpi")
    rank, world = group.rank(), group.size()
    # In one piece, for mpirun mixes what processes write at the same time.
    print(f"rank {rank} of {world} on {platform.node()}\n", end="", flush=True)

    mx.random.seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    mx.eval(model.parameters())
    optimizer = optimizers.SGD(learning_rate=LEARNING_RATE, momentum=0.9)
    x_train, x_test, y_train, y_test = load_arrays()
    gradient_of = nn.value_and_grad(model, lambda x, y: nn.losses.cross_entropy(model(x), y, reduction="mean"))

    batch = BATCH_PER_PROCESS * world
    random = np.random.default_rng(0)
    steps = len(x_train) // batch
    report(current_step=0, total_steps=EPOCHS * steps, total_epochs=EPOCHS)
    for epoch in range(1, EPOCHS + 1):
        # The same order everywhere; all processes take as many steps, for each waits for the others.
        order = random.permutation(len(x_train))
        for step in range(steps):
            own = mx.array(order[step * batch : (step + 1) * batch][rank::world])
            loss, gradient = gradient_of(x_train[own], y_train[own])
            optimizer.update(model, nn.average_gradients(gradient, group))
            mx.eval(model.parameters(), optimizer.state)
            report(current_step=(epoch - 1) * steps + step + 1, train_metrics={"loss": loss})
        report(current_epoch=epoch)
        if rank == 0:
            print(f"epoch {epoch}/{EPOCHS} loss {loss.item():.4f}", flush=True)

    right = mx.sum(mx.argmax(model(x_test[rank::world]), axis=1) == y_test[rank::world])
    result = mx.distributed.all_sum(right, group=group).item() / len(y_test)
    report(eval_metrics={"accuracy": result}, force=True)
    if rank == 0:
        print(f"test accuracy: {100 * result:.1f} %", flush=True)


if __name__ == "__main__":
    main()
