"""Loggers before and after the program configures logging, in processes of their own since that is global."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOGS = """
import structlog
from trainer.kube.rest.transport import log
from trainer.kube.logs.logs import configure_logging
def say(when):
    for level in ("debug", "info", "warning", "error", "exception"):
        getattr(log.bind(when=when), level)("library")
"""
OF_THE_PROGRAM = "structlog.get_logger('program').info('program')"
BY_STRUCTLOG = "structlog.configure(processors=[structlog.processors.KeyValueRenderer()])"


@pytest.mark.parametrize(
    ("program", "library", "own"),
    [
        pytest.param("say(1)", 0, 0, id="not configured"),
        pytest.param(f"say(1); {OF_THE_PROGRAM}", 0, 1, id="the program uses structlog as it is"),
        pytest.param(f"say(1); {BY_STRUCTLOG}; say(2); {OF_THE_PROGRAM}", 5, 1, id="the program configures structlog"),
        pytest.param(f"say(1); configure_logging(level='warning'); say(2); {OF_THE_PROGRAM}", 3, 0, id="by us"),
        pytest.param("configure_logging(level='error'); say(1)", 2, 0, id="errors alone"),
        pytest.param("configure_logging(); structlog.reset_defaults(); say(1)", 0, 0, id="no longer configured"),
    ],
)
def test_silent_until_configured(program: str, library: int, own: int) -> None:
    """The library writes nothing unless the program configures logging, and leaves the program's own logs alone."""
    done = subprocess.run([sys.executable, "-c", LOGS + program], capture_output=True, text=True, check=True)
    lines = (done.stdout + done.stderr).splitlines()
    assert (sum("library" in line for line in lines), sum("program" in line for line in lines)) == (library, own)
