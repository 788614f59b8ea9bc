"""Configuration of the log output, in processes of their own since it is global."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import logging, structlog
from trainer.kube.logs import configure_logging
configure_logging({arguments})
structlog.contextvars.bind_contextvars(controller="test")
log = structlog.get_logger("trainer.x")
log.debug("too quiet")
log.info("started pod", pod="p")
logging.getLogger("library").warning("library %s", "warns")
logging.getLogger("library").debug("body of a secret")
try:
    token = "secret-value"
    raise ValueError("broken")
except ValueError:
    log.exception("failed")
"""


def run(arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{arguments}", arguments)], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    return done.stderr


@pytest.mark.parametrize("arguments", ["", "json=True"], ids=["no-terminal", "asked-for"])
def test_json_lines_for_machines(arguments: str) -> None:
    """Each event, those of libraries included, is one JSON object on stderr with its context."""
    entries = [json.loads(line) for line in run(arguments).splitlines()]
    assert [entry["event"] for entry in entries] == ["started pod", "library warns", "failed"]
    assert [entry["level"] for entry in entries] == ["info", "warning", "error"]
    assert entries[0]["pod"] == "p"
    assert entries[0]["controller"] == "test"
    assert entries[0]["timestamp"].endswith("Z")
    assert "ValueError: broken" in entries[2]["exception"]


def test_text_for_people() -> None:
    """Events are readable, and tracebacks do not show local variables."""
    text = run("json=False")
    assert "started pod" in text
    assert "ValueError: broken" in text
    assert "secret-value" not in text.replace('token = "secret-value"', "")


def test_level_applies_to_our_events_only() -> None:
    """Debug shows our own details but not those of libraries, which may log bodies."""
    text = run('json=True, level="debug"')
    assert "too quiet" in text
    assert "body of a secret" not in text


def test_unknown_level_is_refused() -> None:
    """The message lists the levels."""
    with pytest.raises(subprocess.CalledProcessError) as raised:
        run('level="loud"')
    assert "log level 'loud' is not one of debug, info, warning, error" in raised.value.stderr
