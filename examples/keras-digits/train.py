"""Recognise handwritten digits with Keras on JAX, whose callback reports the progress of `fit`."""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
from keras import layers
from keras_callback import TrainJobCallback
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

EPOCHS = 40


def main():
    """Train, and print the accuracy on digits that were not trained on."""
    keras.utils.set_random_seed(0)
    digits = load_digits()
    x_train, x_test, y_train, y_test = train_test_split(
        digits.data / 16, digits.target, test_size=0.2, random_state=0, stratify=digits.target
    )
    model = keras.Sequential([layers.Input((64,)), layers.Dense(128, activation="relu"), layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss, metrics=["accuracy"])
    model.fit(
        x_train,
        y_train,
        epochs=EPOCHS,
        validation_data=(x_test, y_test),
        callbacks=[TrainJobCallback()],
        verbose=2,  # a line for each epoch instead of a bar
    )
    _, accuracy = model.evaluate(x_test, y_test, verbose=0)
    print(f"test accuracy: {100 * accuracy:.1f} %", flush=True)


if __name__ == "__main__":
    main()
