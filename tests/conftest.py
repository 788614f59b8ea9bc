"""Fixtures of all tests."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
import structlog
from blockbuster import blockbuster_ctx

if TYPE_CHECKING:
    from collections.abc import Iterator


_ON_THE_EVENT_LOOP = [
    "trainer.api",
    "trainer.controllers",
    "trainer.devcluster",
    "trainer.framework",
    "trainer.kube",
    "trainer.plugins",
    "trainer.progress",
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
    structlog.reset_defaults()
    # Commands set them, as for a process of their own.
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
