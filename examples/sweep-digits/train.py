"""Recognise handwritten digits with a support vector machine: one trial of a sweep over its parameters.

The data set that scikit-learn ships is judged in five parts, each by a machine that has learned from the other four.
Without a sweep, as by `python train.py`, the defaults count.
"""

import time

from report import parameters, report
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

PARTS = 5


def main():
    """Report the accuracy so far after each part."""
    chosen = parameters(c=1.0, gamma=0.0001, kernel="rbf")
    images, labels = load_digits(return_X_y=True)
    started = time.monotonic()
    right = judged = 0
    parts = StratifiedKFold(PARTS, shuffle=True, random_state=0).split(images, labels)
    for part, (learned, other) in enumerate(parts, 1):
        machine = SVC(C=chosen.c, gamma=chosen.gamma, kernel=chosen.kernel).fit(images[learned], labels[learned])
        right += int((machine.predict(images[other]) == labels[other]).sum())
        judged += len(other)
        report(current_step=part, total_steps=PARTS, eval_metrics={"accuracy": right / judged})
    print(f"trained in {time.monotonic() - started:.1f} s", flush=True)
    print(f"test accuracy: {100 * right / judged:.1f} %", flush=True)


if __name__ == "__main__":
    main()
