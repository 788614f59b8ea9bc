"""Recognise handwritten digits with PaddlePaddle, data-parallel over all processes of a TrainJob.

paddle.distributed.launch starts this script on every node, and DataParallel takes the mean of the gradients. Every
process holds a share of the data set that scikit-learn ships.
"""

import time

import numpy as np
import paddle
import paddle.distributed as dist
from paddle.nn import functional
from report import report
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

EPOCHS = 20
BATCH_PER_PROCESS = 64
LEARNING_RATE = 0.2


def main():
    """Train and let rank 0 print the accuracy on digits that were not trained on."""
    dist.init_parallel_env()
    rank, size = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {size}\n", end="", flush=True)

    digits = load_digits()
    x_train, x_test, y_train, y_test = train_test_split(
        (digits.data / 16).astype(np.float32), digits.target, test_size=0.2, random_state=0, stratify=digits.target
    )
    x_mine, y_mine = x_train[rank::size], y_train[rank::size]
    steps = len(x_train) // size // BATCH_PER_PROCESS

    paddle.seed(0)
    model = paddle.DataParallel(
        paddle.nn.Sequential(paddle.nn.Linear(64, 128), paddle.nn.ReLU(), paddle.nn.Linear(128, 10))
    )
    optimizer = paddle.optimizer.SGD(LEARNING_RATE, parameters=model.parameters())

    shuffle = np.random.default_rng(rank)
    started = time.monotonic()
    report(current_step=0, total_steps=EPOCHS * steps, total_epochs=EPOCHS)
    for epoch in range(1, EPOCHS + 1):
        order = shuffle.permutation(len(x_mine))
        for step in range(steps):
            batch = order[step * BATCH_PER_PROCESS : (step + 1) * BATCH_PER_PROCESS]
            loss = functional.cross_entropy(model(paddle.to_tensor(x_mine[batch])), paddle.to_tensor(y_mine[batch]))
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            report(current_step=(epoch - 1) * steps + step + 1, train_metrics={"loss": loss})
        report(current_epoch=epoch)
        if rank == 0:
            print(f"epoch {epoch}/{EPOCHS} loss {float(loss):.4f}", flush=True)

    predicted = model(paddle.to_tensor(x_test[rank::size])).argmax(axis=1).numpy()
    correct = paddle.to_tensor([float((predicted == y_test[rank::size]).sum())])
    dist.all_reduce(correct)
    accuracy = correct.item() / len(x_test)
    report(eval_metrics={"accuracy": accuracy}, force=True)
    if rank == 0:
        print(f"trained in {time.monotonic() - started:.1f} s", flush=True)
        print(f"test accuracy: {100 * accuracy:.1f} %", flush=True)


if __name__ == "__main__":
    main()
