"""The Kubeflow Trainer V2 control plane in Python."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.cli.run.python_api import (
        JobStatus,
        MetricSample,
        SubmittedJob,
        SubmittedSweep,
        SweepFailedError,
        SweepStatus,
        SweepTrial,
        TrainingFailedError,
        integers,
        job,
        log,
        submit,
        sweep,
        train,
        uniform,
    )

__all__ = [
    "JobStatus",
    "MetricSample",
    "SubmittedJob",
    "SubmittedSweep",
    "SweepFailedError",
    "SweepStatus",
    "SweepTrial",
    "TrainingFailedError",
    "__version__",
    "integers",
    "job",
    "log",
    "submit",
    "sweep",
    "train",
    "uniform",
]
__version__ = "0.2.0"


def _load_structlog() -> None:
    """Import structlog without rich, which it imports where it is installed, and we never let it render with.

    That is 3 MiB of a manager, whatever imports structlog first.
    """
    name = "rich"
    hidden = name not in sys.modules
    if hidden:
        sys.modules[name] = None  # type: ignore[assignment]
    with contextlib.suppress(ModuleNotFoundError):  # the image of the initializers has none
        import structlog  # noqa: F401, PLC0415 - see above

    if hidden:
        del sys.modules[name]


_load_structlog()


def __getattr__(name: str) -> Any:
    """Load what scripts and notebooks use when they use it: controllers import this package, too."""
    if name in __all__:
        from importlib import import_module  # noqa: PLC0415 - see above

        return getattr(import_module("trainer.cli.run.python_api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
