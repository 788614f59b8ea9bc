"""Keras, without a word about checkpoints."""

import os

os.environ |= {"KERAS_BACKEND": "torch", "TF_CPP_MIN_LOG_LEVEL": "2"}

import keras
import numpy as np
from record import STEPS, Record


class Recorder(keras.callbacks.Callback):
    """Records the loss of each batch; Keras gives the mean since the epoch began."""

    def __init__(self):
        super().__init__()
        self.taken = Record(0)

    def on_train_batch_end(self, batch, logs=None):
        self.taken.step(int(self.model.optimizer.iterations), float(logs["loss"]))


keras.utils.set_random_seed(0)
rows = np.random.default_rng(0).normal(size=(4 * STEPS, 8)).astype("float32")
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.05), "mse")
model.fit(rows, rows[:, :1], batch_size=4, epochs=1, shuffle=False, verbose=0, callbacks=[Recorder()])
