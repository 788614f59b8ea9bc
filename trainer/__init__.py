"""The Kubeflow Trainer V2 control plane in Python."""

from __future__ import annotations

import contextlib
import sys

__version__ = "0.1.0"


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
