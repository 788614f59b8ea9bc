"""Lets the distributed recipes of torchtune run without GPUs: they measure and free the memory of GPUs in any case.

Python imports a module of this name when it starts, in every process that torchrun starts, too.
"""

import atexit
import os
import sys

import torchtune.training


def leave() -> None:
    """End a process that has trained with success at once.

    A thread of torch that still runs while C++ takes its statics down aborts the process, once in a while:
    "terminate called without an active exception".
    """
    if not hasattr(sys, "last_value"):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


if "LOCAL_RANK" in os.environ:
    atexit.register(leave)

torchtune.training.cleanup_before_training = lambda: None
torchtune.training.get_memory_stats = lambda **_: {}
torchtune.training.log_memory_stats = lambda *_: None
