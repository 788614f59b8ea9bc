"""Fixtures of all tests."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator

import pytest
import structlog
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings
from structlog._config import BoundLoggerLazyProxy

# Everybody runs the same examples, however long they take: HYPOTHESIS_PROFILE=explore looks for others.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same for all", settings.get_profile("explore"), derandomize=True, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same for all"))

_ON_THE_EVENT_LOOP = [
    "trainer.api",
    "trainer.controllers",
    "trainer_dashboard",
    "trainer_devcluster",
    "trainer.framework",
    "trainer.kube",
    "trainer.plugins",
    "trainer.progress",
    "trainer_sweeps.controllers",
]
"""Packages whose code runs on the event loop; that of the command is called by its tests as if it had none."""


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[None]:
    """A blocking call from our code on the event loop fails the test."""
    with blockbuster_ctx(_ON_THE_EVENT_LOOP) as detector:
        for function in detector.functions.values():
            # Runs in a worker thread, with an event loop of its own.
            function.can_block_in("trainer/kube/rest/kubeconfig.py", {"_ask_auth_provider"})
            # Starting a process takes no longer than handing the work to a thread.
            function.can_block_in("subprocess.py", {"__init__"})
        for name in ("os.stat", "io.BufferedReader.read", "io.TextIOWrapper.read"):
            # Formatting a logged traceback reads source files.
            detector.functions[name].can_block_in("linecache.py", {"checkcache", "updatecache"})
        yield


@pytest.fixture(autouse=True)
def plain_logs() -> Iterator[None]:
    """Log events go to the captured output without the decorations that read source files."""
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()],
        cache_logger_on_first_use=False,
    )
    levels = {name: logging.getLogger(name).level for name in ("", "trainer")}
    yield
    # Commands configure logging as for a process of their own.
    if structlog.get_config()["cache_logger_on_first_use"]:
        _forget_cached_loggers()
    structlog.reset_defaults()
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def _forget_cached_loggers() -> None:
    """A logger that was first used while caching was on keeps that configuration, and `capture_logs` sees nothing."""
    for name, module in list(sys.modules.items()):
        log = vars(module).get("log")  # some modules compute attributes, or warn
        if name.startswith(("trainer.", "trainer_devcluster.")) and isinstance(log, BoundLoggerLazyProxy):
            vars(log).pop("bind", None)
