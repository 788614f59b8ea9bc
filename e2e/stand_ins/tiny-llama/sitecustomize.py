"""Lets the distributed recipes of torchtune run without GPUs: they measure and free the memory of GPUs in any case.

Python imports a module of this name when it starts, in every process that torchrun starts, too.
"""

import torchtune.training

torchtune.training.cleanup_before_training = lambda: None
torchtune.training.get_memory_stats = lambda **_: {}
torchtune.training.log_memory_stats = lambda *_: None
