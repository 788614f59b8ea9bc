from __future__ import annotations

from datetime import UTC, datetime

import pytest

from trainer.kube.objects import Object
from trainer_devcluster.controllers.options import time_to_live

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)


def finished(kind: str, value: str = "True", ttl: int | None = 60) -> Object:
    condition = {"type": kind, "status": value, "lastTransitionTime": "2026-11-21T12:00:00Z"}
    return {"spec": {} if ttl is None else {"ttlSecondsAfterFinished": ttl}, "status": {"conditions": [condition]}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(finished("Failed"), 30.0, id="counts from the end"),
        pytest.param(finished("Complete", "False"), None, id="not finished"),
    ],
)
def test_time_to_live(obj: Object, expected: float | None) -> None:
    """Only a terminal condition starts the time."""
    assert time_to_live(obj, ("Complete", "Failed"), NOW) == expected
