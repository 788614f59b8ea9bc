"""Recognise handwritten digits with JAX, data-parallel over all nodes of a TrainJob.

Every node holds a share of the data set that scikit-learn ships. The batch is one global array sharded over the
nodes' devices, the parameters are replicated, and XLA sums the gradients between the nodes.
"""

import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from report import report
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

EPOCHS = 60
BATCH_PER_NODE = 64
LEARNING_RATE = 0.1
LAYERS = (64, 128, 10)


def init_parameters(key):
    """Weights and biases of a multilayer perceptron, equal on every node because the key is."""
    keys = jax.random.split(key, len(LAYERS) - 1)
    return [
        {"w": jax.random.normal(k, (m, n)) * jnp.sqrt(2 / m), "b": jnp.zeros(n)}
        for k, m, n in zip(keys, LAYERS[:-1], LAYERS[1:], strict=True)
    ]


def logits(parameters, x):
    """Scores of the ten digits."""
    *hidden, last = parameters
    for layer in hidden:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss(parameters, x, y):
    """Mean cross-entropy over the global batch."""
    return -jnp.mean(jax.nn.log_softmax(logits(parameters, x))[jnp.arange(len(y)), y])


@jax.jit
def train_step(parameters, x, y):
    """One step of gradient descent; the mean over a sharded batch is where the nodes talk to each other."""
    value, gradients = jax.value_and_grad(loss)(parameters, x, y)
    return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, parameters, gradients), value


@jax.jit
def count_correct(parameters, x, y):
    """Number of right answers over the global batch."""
    return jnp.sum(jnp.argmax(logits(parameters, x), axis=1) == y)


def main():
    """Train and let node 0 print the accuracy on digits that were not trained on."""
    jax.distributed.initialize(
        coordinator_address=os.environ["JAX_COORDINATOR_ADDRESS"],
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
        process_id=int(os.environ["JAX_PROCESS_ID"]),
        initialization_timeout=int(os.environ.get("JAX_INITIALIZATION_TIMEOUT", "300")),  # v1alpha1 does not set it
        cluster_detection_method="deactivate",  # there is nothing left to be asked of Kubernetes
    )
    node, nodes = jax.process_index(), jax.process_count()
    devices = f"{jax.local_device_count()} local of {jax.device_count()} devices"
    print(f"node {node} of {nodes}: {devices}\n", end="", flush=True)

    mesh = Mesh(np.array(jax.devices()), ("data",))
    sharded = NamedSharding(mesh, PartitionSpec("data"))
    replicated = NamedSharding(mesh, PartitionSpec())

    digits = load_digits()
    x_train, x_test, y_train, y_test = train_test_split(
        (digits.data / 16).astype(np.float32), digits.target, test_size=0.2, random_state=0, stratify=digits.target
    )
    x_mine, y_mine = x_train[node::nodes], y_train[node::nodes]
    steps = len(x_train) // nodes // BATCH_PER_NODE

    def across_nodes(local):
        return jax.make_array_from_process_local_data(sharded, local)

    parameters = jax.device_put(init_parameters(jax.random.key(0)), replicated)
    shuffle = np.random.default_rng(node)
    started = time.monotonic()
    report(current_step=0, total_steps=EPOCHS * steps, total_epochs=EPOCHS)
    for epoch in range(1, EPOCHS + 1):
        order = shuffle.permutation(len(x_mine))
        for step in range(steps):
            batch = order[step * BATCH_PER_NODE : (step + 1) * BATCH_PER_NODE]
            parameters, value = train_step(parameters, across_nodes(x_mine[batch]), across_nodes(y_mine[batch]))
            report(current_step=(epoch - 1) * steps + step + 1, train_metrics={"loss": value})
        report(current_epoch=epoch)
        if node == 0:
            print(f"epoch {epoch}/{EPOCHS} loss {float(value):.4f}", flush=True)

    usable = len(x_test) // jax.device_count() * jax.device_count()
    share = slice(node * usable // nodes, (node + 1) * usable // nodes)
    correct = int(count_correct(parameters, across_nodes(x_test[share]), across_nodes(y_test[share])))
    report(eval_metrics={"accuracy": correct / usable}, force=True)
    if node == 0:
        print(f"trained in {time.monotonic() - started:.1f} s", flush=True)
        print(f"test accuracy: {100 * correct / usable:.1f} %", flush=True)
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
