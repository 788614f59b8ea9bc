"""Fit a line with gradient descent, data-parallel over all processes that mpirun starts on all nodes.

Every process computes the gradient on points of its own; Allreduce makes their mean of them.
"""

import platform

import numpy as np
from mpi4py import MPI
from report import report

STEPS = 100
POINTS_PER_PROCESS = 1000
LEARNING_RATE = 0.1
SLOPE, INTERCEPT = 3.0, -1.0


def main():
    """Train, and let rank 0 print the line that all processes have found together."""
    world = MPI.COMM_WORLD
    # In one piece, for mpirun mixes what processes write at the same time.
    print(f"rank {world.rank} of {world.size} on {platform.node()}\n", end="", flush=True)

    random = np.random.default_rng(world.rank)
    x = random.uniform(-1, 1, POINTS_PER_PROCESS)
    y = SLOPE * x + INTERCEPT + random.normal(0, 0.1, POINTS_PER_PROCESS)
    inputs = np.stack([x, np.ones_like(x)], axis=1)
    line = np.zeros(2)
    for step in range(1, STEPS + 1):
        gradient = 2 * inputs.T @ (inputs @ line - y) / len(y)
        world.Allreduce(MPI.IN_PLACE, gradient)
        line -= LEARNING_RATE * gradient / world.size
        report(current_step=step, total_steps=STEPS, train_metrics={"slope": line[0], "intercept": line[1]})
        if world.rank == 0 and step % 25 == 0:
            print(f"step {step}/{STEPS} slope {line[0]:.3f} intercept {line[1]:.3f}", flush=True)

    lines = world.gather(line.tolist())
    if world.rank == 0:
        assert all(each == lines[0] for each in lines), lines
        print(f"all {world.size} processes found y = {line[0]:.2f} x + {line[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
