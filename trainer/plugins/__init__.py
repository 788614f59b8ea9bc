"""The plugins: one module or package for each machine learning framework, workload and scheduler."""

from __future__ import annotations

from collections.abc import Mapping

from trainer.framework import PluginFactory
from trainer.plugins.checkpoints import Checkpoints
from trainer.plugins.coscheduling import Coscheduling
from trainer.plugins.flux.plugin import Flux
from trainer.plugins.jax.plugin import Jax
from trainer.plugins.jobset import JobSetPlugin
from trainer.plugins.mpi.plugin import MPI
from trainer.plugins.paddle import Paddle
from trainer.plugins.plainml import PlainML
from trainer.plugins.progress_reporter import ProgressReporter
from trainer.plugins.tensorflow import TensorFlow
from trainer.plugins.torch.plugin import Torch
from trainer.plugins.volcano import Volcano
from trainer.plugins.workload import Workload
from trainer.plugins.xgboost import XGBoost

BUILT_IN: Mapping[str, PluginFactory] = {
    "checkpoints": lambda context: Checkpoints(context.reader),
    "coscheduling": lambda context: Coscheduling(context.reader),
    "flux": lambda context: Flux(context.reader),
    "jax": lambda _: Jax(),
    "jobset": lambda context: JobSetPlugin(context.reader),
    "mpi": lambda context: MPI(context.reader),
    "paddle": lambda _: Paddle(),
    "plainml": lambda _: PlainML(),
    "progress-reporter": ProgressReporter,
    "tensorflow": lambda _: TensorFlow(),
    "torch": lambda _: Torch(),
    "volcano": lambda context: Volcano(context.reader),
    "workload": lambda context: Workload(context.reader),
    "xgboost": lambda _: XGBoost(),
}
"""Factories of the plugins of this package, by name."""
