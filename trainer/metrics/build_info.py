"""Which build runs, to be joined with other series: does something change with a release?"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from prometheus_client import Gauge

from trainer import __version__

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class BuildInfoSeries:
    """The gauge `trainer_build_info`, which is always 1."""

    def __init__(self, registry: CollectorRegistry) -> None:
        info = Gauge(
            "trainer_build_info",
            "Always 1; the labels say which version of the manager runs, and with which Python.",
            ["version", "python_version"],
            registry=registry,
        )
        info.labels(__version__, platform.python_version()).set(1)
