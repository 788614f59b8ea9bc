"""The training of `benchmarks.survival`: some seconds to start, then steps of equal length until it is ended.

It writes a line for each start and each step to a file of a volume, and so does each later pod: from there is read
what was made, made twice or lost.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from trainer import checkpoints

STARTED = "started"
"""First word of the line of a start; other lines are numbers of completed steps. The second word is a Unix time."""


def main() -> None:
    """Train until somebody ends it."""
    record, start, length, interval = Path(sys.argv[1]), *map(float, sys.argv[2:5])
    os.environ.setdefault("TRAINER_CHECKPOINT_SECONDS", str(interval))
    with record.open("a", buffering=1) as lines:
        lines.write(f"{STARTED} {time.time()}\n")
        time.sleep(start)  # stands for imports, data and the weights of a model
        newest = checkpoints.latest()
        step = newest.step if newest is not None else 0
        while True:
            time.sleep(length)
            step += 1
            lines.write(f"{step} {time.time()}\n")
            if checkpoints.due(step):
                checkpoints.save({"step": step}, step)
            if checkpoints.ending():
                checkpoints.end()


if __name__ == "__main__":
    main()
