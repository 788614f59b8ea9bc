"""Recognise handwritten digits with XGBoost, data-parallel over all workers of a TrainJob.

Every worker holds a share of the data set that scikit-learn ships. All grow the same trees: for each split XGBoost
adds the histograms of their shares up. The first node also runs the tracker, where the workers find each other.
"""

import hashlib
import os
import socket
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import xgboost as xgb
from report import report
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from xgboost import collective
from xgboost.tracker import RabitTracker

ROUNDS = 20
PARAMETERS = {
    "objective": "multi:softmax",
    "num_class": 10,
    "eval_metric": "merror",
    "max_depth": 4,
    "nthread": 1,  # so little data that more threads only wait for each other; left out, it is all CPUs of the node
}
TIMEOUT = 300  # seconds for which nodes wait for the first one

HOST, PORT = os.environ["DMLC_TRACKER_URI"], int(os.environ["DMLC_TRACKER_PORT"])
NODE = int(os.environ["DMLC_TASK_ID"])
WORKERS = int(os.environ["DMLC_NUM_WORKER"])
WORKERS_PER_NODE = int(os.environ.get("DMLC_NUM_WORKER_PER_NODE", "1"))  # v1alpha1 does not set it


class Progress(xgb.callback.TrainingCallback):
    """Reports every round: a tree for each digit."""

    def after_iteration(self, model, epoch, evals_log):  # noqa: ARG002 XGBoost passes it
        """Report a round, which counts from 0; only the first worker of the first node is to be heard."""
        if collective.get_rank() == 0:
            errors = {name: values[-1] for name, values in evals_log["test"].items()}
            report(current_step=epoch + 1, total_steps=ROUNDS, eval_metrics=errors)
        return False


def resolve(host):
    """The address of a node, which has none before its pod runs."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            return socket.getaddrinfo(host, None)[0][4][0]
        except socket.gaierror:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def train(local):
    """Grow the trees together with the other workers, and say how well they do on digits that they were not grown on.

    On nodes with GPUs each worker of a node takes another one: its parameter `device` is `cuda:<local>`.
    """
    digits = load_digits()
    x_train, x_test, y_train, y_test = train_test_split(
        digits.data, digits.target, test_size=0.2, random_state=0, stratify=digits.target
    )
    task = f"{NODE:06}.{local:03}"  # the tracker numbers the workers in the order of this text
    # Attempts to reach the tracker are 2, 4, 6, ... seconds apart: 16 of them take about as long as TIMEOUT.
    with collective.CommunicatorContext(
        dmlc_tracker_uri=resolve(HOST), dmlc_tracker_port=PORT, dmlc_task_id=task, dmlc_retry=16
    ):
        rank, workers = collective.get_rank(), collective.get_world_size()
        print(f"worker {rank} of {workers} on node {NODE}\n", end="", flush=True)
        shares = {"train": (x_train, y_train), "test": (x_test, y_test)}
        matrices = {name: xgb.DMatrix(x[rank::workers], label=y[rank::workers]) for name, (x, y) in shares.items()}
        started = time.monotonic()
        history = {}
        booster = xgb.train(
            PARAMETERS,
            matrices["train"],
            ROUNDS,
            evals=[(matrices["test"], "test")],
            evals_result=history,
            verbose_eval=False,
            callbacks=[Progress()],
        )
        digest = hashlib.sha256(booster.save_raw("json")).hexdigest()
        print(f"worker {rank} has model {digest[:16]}\n", end="", flush=True)
        if rank == 0:
            print(f"trained in {time.monotonic() - started:.1f} s", flush=True)
            print(f"test accuracy: {100 * (1 - history['test']['merror'][-1]):.1f} %", flush=True)


def main():
    """Run the workers of this node, and the tracker on the first node."""
    tracker = None
    if NODE == 0:
        tracker = RabitTracker(n_workers=WORKERS, host_ip=resolve(HOST), port=PORT, sortby="task")
        tracker.start()
    if WORKERS_PER_NODE == 1:
        train(0)
    else:
        with ProcessPoolExecutor(WORKERS_PER_NODE, get_context("spawn")) as pool:
            list(pool.map(train, range(WORKERS_PER_NODE)))
    if tracker is not None:
        tracker.wait_for()


if __name__ == "__main__":
    main()
