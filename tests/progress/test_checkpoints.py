"""The checkpoint that the status of a TrainJob shows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from trainer.api.trainjob_status import Checkpoint
from trainer.progress.checkpoints import is_checkpoint_alone, with_checkpoint

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


def checkpoint(step: int, clock: str) -> dict[str, Any]:
    return {"step": step, "time": f"2026-01-02T{clock}Z", "path": f"step-{step}"}


@pytest.mark.parametrize(
    ("shown", "own", "expected"),
    [
        pytest.param(None, None, None, id="none"),
        pytest.param(checkpoint(7, "11:00:00"), None, 7, id="of-a-run-before"),
        pytest.param(None, checkpoint(9, "11:00:00"), 9, id="the-first"),
        pytest.param(checkpoint(700, "11:00:00"), checkpoint(10, "11:30:00"), 10, id="later-with-fewer-steps"),
        pytest.param(checkpoint(20, "11:00:00"), checkpoint(10, "10:59:59"), 20, id="a-log-that-is-read-again"),
        pytest.param(checkpoint(20, "11:00:00"), checkpoint(21, "11:00:00"), 21, id="two-in-a-second"),
        pytest.param(checkpoint(20, "12:00:01"), checkpoint(30, "11:59:00"), 30, id="a-clock-that-was-ahead"),
        pytest.param({"step": 1}, checkpoint(2, "11:00:00"), 2, id="a-malformed-one"),
    ],
)
def test_which_counts(shown: dict[str, Any] | None, own: dict[str, Any] | None, expected: int | None) -> None:
    """The later of two checkpoints is shown, whatever the present run has reported."""
    progress = {"currentStep": 40, "lastUpdatedTime": "2026-01-02T11:59:00Z"}
    before = {} if shown is None else {"checkpoint": shown}
    found = with_checkpoint(progress, before, None if own is None else Checkpoint.from_object(own), NOW)
    assert found.pop("checkpoint", {}).get("step") == expected
    assert found == progress


def test_nothing_but_a_checkpoint() -> None:
    """A training that reports its checkpoints alone shows them, with the time that each trainerStatus has."""
    own = checkpoint(7, "11:00:00")
    found = with_checkpoint({}, {}, Checkpoint.from_object(own), NOW)
    assert found == {"checkpoint": own, "lastUpdatedTime": own["time"]}
    assert is_checkpoint_alone(found)
    assert not is_checkpoint_alone(found | {"currentStep": 1})
    assert not is_checkpoint_alone({"lastUpdatedTime": own["time"]})
