"""Text of other people in logs for people."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from trainer.kube.logs.escaping import escape
from trainer.kube.logs.logs import configure_logging

HOSTILE = "bad\x1b[2J\x1b]0;owned\x07 \u202e\r\n2026-01-01T00:00:00Z [info     ] forged event"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param({"event": "started pod"}, {"event": "started pod"}, id="usual"),
        pytest.param({"event": "caf\u00e9 \u2713"}, {"event": "caf\u00e9 \u2713"}, id="other-scripts"),
        pytest.param({"event": "a\x1b[2J\nb"}, {"event": r"a\x1b[2J\nb"}, id="event"),
        pytest.param({"exception": "a\nb\x1b\r"}, {"exception": "  a\n  b\\x1b\\r"}, id="traceback-keeps-its-lines"),
        pytest.param({"stack": "a\n\x9bb"}, {"stack": "  a\n  \\x9bb"}, id="stack"),
        pytest.param({"logger": "a\nb"}, {"logger": r"a\nb"}, id="logger"),
        pytest.param({"a\x1b": 7}, {r"a\x1b": 7}, id="key"),
        pytest.param({"event": 7}, {"event": 7}, id="no-text"),
    ],
)
def test_escape(event: dict[str, object], expected: dict[str, object]) -> None:
    """Control characters are written as Python's escapes."""
    assert escape(None, "info", event) == expected


@pytest.fixture
def _logging() -> Iterator[None]:
    """Put the logging of the tests back."""
    root = logging.getLogger()
    handlers, level, ours = root.handlers, root.level, logging.getLogger("trainer").level
    configuration = structlog.get_config()
    yield
    root.handlers = handlers
    root.setLevel(level)
    logging.getLogger("trainer").setLevel(ours)
    logging.captureWarnings(capture=False)
    structlog.configure(**configuration)


@pytest.mark.usefixtures("_logging")
@pytest.mark.parametrize("as_json", [True, False])
def test_logs(as_json: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither format lets anybody clear the screen, or write an event that has not happened."""
    monkeypatch.setattr("sys.excepthook", None)
    configure_logging(json=as_json)
    log = structlog.stdlib.get_logger("trainer.test")
    log.info("could not read", error=HOSTILE, nested={"a": [HOSTILE]}, word="\x1b[2J", **{"key\x1b[2J": "value"})
    logging.getLogger("library\x1b[2J").warning("refused")
    logging.getLogger("library").warning("refused %s", HOSTILE)
    log.error("failed", exc_info=ValueError(HOSTILE))
    text = capsys.readouterr().err
    assert not {character for character in text if not character.isprintable()} - {"\n"}
    if as_json:
        assert len([json.loads(line) for line in text.splitlines()]) == 4
    else:
        assert not [line for line in text.splitlines() if line.startswith("2026-01-01T00:00:00Z")]
