"""The last checkpoint as people read of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from trainer.view.checkpoint import LastCheckpoint

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
SAVED = {"step": 1200, "time": "2026-01-01T11:55:10Z", "path": "step-1200"}
BASE = "last checkpoint step 1200, 4 min ago"


@pytest.mark.parametrize(
    ("step", "state", "expected"),
    [
        pytest.param(1285, "Running", f"{BASE}; 85 steps would be lost now", id="runs"),
        pytest.param(1201, "Stalled", f"{BASE}; 1 step would be lost now", id="stands-still"),
        pytest.param(1200, "Running", f"{BASE}; nothing would be lost now", id="just-saved"),
        pytest.param(5, "Running", f"{BASE}; nothing would be lost now", id="behind-it"),
        pytest.param(None, "Running", BASE, id="without-steps"),
        pytest.param(1285, "Suspended", f"{BASE}; 85 steps are to be done again", id="suspended"),
        pytest.param(
            1285, "Stopping", f"{BASE}; 85 steps are to be done again, unless it saves another as it ends", id="stops"
        ),
        pytest.param(1201, "Restarting", f"{BASE}; 1 step is to be done again", id="restarts"),
        pytest.param(1200, "Pending", BASE, id="waits"),
        pytest.param(1285, "Failed", BASE, id="failed"),
        pytest.param(1285, None, BASE, id="gone"),
    ],
)
def test_sentence(step: int | None, state: str | None, expected: str) -> None:
    """It says what would be lost while the training runs, and what is to be done again while it does not."""
    last = LastCheckpoint.of({"checkpoint": SAVED} | ({} if step is None else {"currentStep": step}))
    assert last is not None
    assert last.sentence(state, NOW) == expected


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        pytest.param("2026-01-01T12:00:01Z", "0 s ago", id="clocks-differ"),
        pytest.param("2026-01-01T11:59:18Z", "42 s ago", id="seconds"),
        pytest.param("2026-01-01T09:29:30Z", "2 h 30 min ago", id="hours"),
        pytest.param("2025-12-01T11:00:00Z", "31 d 1 h ago", id="days"),
    ],
)
def test_age(time: str, expected: str) -> None:
    """The age has no more digits than matter."""
    last = LastCheckpoint.of({"checkpoint": SAVED | {"time": time}})
    assert last is not None
    assert last.age_at(NOW) == expected


@pytest.mark.parametrize(
    "checkpoint",
    [
        pytest.param(None, id="none"),
        pytest.param("step-1", id="no-object"),
        pytest.param({"step": 1}, id="no-time"),
        pytest.param(SAVED | {"step": "1200"}, id="no-step"),
        pytest.param(SAVED | {"time": "yesterday"}, id="no-such-time"),
    ],
)
def test_written_by_somebody_else(checkpoint: Any) -> None:
    """What is malformed is left out, and a path cannot command a terminal."""
    assert LastCheckpoint.of({"checkpoint": checkpoint}) is None
    last = LastCheckpoint.of({"checkpoint": SAVED | {"path": "a\x1b"}})
    assert last is not None
    assert last.path == r"a\x1b"
