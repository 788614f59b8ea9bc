"""Recognise handwritten digits with TensorFlow, data-parallel over all nodes of a TrainJob.

Every node holds a share of the data set that scikit-learn ships. The strategy reads from TF_CONFIG who the other
workers are; it gives all of them the same parameters and takes the mean of their updates. `fit` of Keras 3 does not
work with this strategy, so the steps are written out.
"""

import os
import time
from itertools import pairwise

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # no words about the machine, only warnings

import numpy as np
import tensorflow as tf
from report import report
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

EPOCHS = 20
BATCH_PER_NODE = 64
LEARNING_RATE = 0.2
LAYERS = (64, 128, 10)


def variable(value):
    """A parameter: assigning to it on all nodes assigns the mean."""
    return tf.Variable(value, aggregation=tf.VariableAggregation.MEAN)


def init_parameters():
    """Weights and biases of a multilayer perceptron; the strategy copies those of the first node to the others."""
    return [(variable(tf.random.normal((m, n)) * (2 / m) ** 0.5), variable(tf.zeros(n))) for m, n in pairwise(LAYERS)]


def logits(parameters, x):
    """Scores of the ten digits."""
    *hidden, (weights, bias) = parameters
    for w, b in hidden:
        x = tf.nn.relu(x @ w + b)
    return x @ weights + bias


def main():
    """Train and let node 0 print the accuracy on digits that were not trained on."""
    tf.config.threading.set_intra_op_parallelism_threads(1)  # so little data that more threads only cost time
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    node, nodes = strategy.cluster_resolver.task_id or 0, strategy.num_replicas_in_sync
    print(f"node {node} of {nodes}", flush=True)

    digits = load_digits()
    x_train, x_test, y_train, y_test = train_test_split(
        (digits.data / 16).astype(np.float32), digits.target, test_size=0.2, random_state=0, stratify=digits.target
    )
    x_mine, y_mine = x_train[node::nodes], y_train[node::nodes]
    steps = len(x_train) // nodes // BATCH_PER_NODE

    tf.random.set_seed(0)
    with strategy.scope():
        parameters = init_parameters()
    flat = [parameter for layer in parameters for parameter in layer]

    @tf.function
    def train_step(x, y):
        def on_node(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits(parameters, x)))
            for parameter, gradient in zip(flat, tape.gradient(loss, flat), strict=True):
                parameter.assign_sub(LEARNING_RATE * gradient)
            return loss

        return strategy.reduce("MEAN", strategy.run(on_node, args=(x, y)), axis=None)

    @tf.function
    def count_correct(x, y):
        def on_node(x, y):
            return tf.reduce_sum(tf.cast(tf.argmax(logits(parameters, x), axis=1) == y, tf.int32))

        return strategy.reduce("SUM", strategy.run(on_node, args=(x, y)), axis=None)

    shuffle = np.random.default_rng(node)
    started = time.monotonic()
    report(current_step=0, total_steps=EPOCHS * steps, total_epochs=EPOCHS)
    for epoch in range(1, EPOCHS + 1):
        order = shuffle.permutation(len(x_mine))
        for step in range(steps):
            batch = order[step * BATCH_PER_NODE : (step + 1) * BATCH_PER_NODE]
            loss = train_step(tf.constant(x_mine[batch]), tf.constant(y_mine[batch]))
            report(current_step=(epoch - 1) * steps + step + 1, train_metrics={"loss": loss})
        report(current_epoch=epoch)
        if node == 0:
            print(f"epoch {epoch}/{EPOCHS} loss {float(loss):.4f}", flush=True)

    correct = int(count_correct(tf.constant(x_test[node::nodes]), tf.constant(y_test[node::nodes])))
    report(eval_metrics={"accuracy": correct / len(x_test)}, force=True)
    if node == 0:
        print(f"trained in {time.monotonic() - started:.1f} s", flush=True)
        print(f"test accuracy: {100 * correct / len(x_test):.1f} %", flush=True)


if __name__ == "__main__":
    main()
