"""What `trainer down` says of the trainings that it stops."""

from __future__ import annotations

import pytest

from trainer.cli.local.down import stopped_trainings


@pytest.mark.parametrize(
    ("running", "lines"),
    [
        pytest.param([], [], id="none"),
        pytest.param(
            ["a/x (Running)"],
            ["this stops 1 training, which fails unless restarts are left:", "  a/x (Running)"],
            id="one",
        ),
        pytest.param(
            [f"a/{number}" for number in range(12)],
            [
                "this stops 12 trainings, which fail unless restarts are left:",
                *(f"  a/{number}" for number in range(10)),
                "  and 2 more",
            ],
            id="many",
        ),
    ],
)
def test_stopped_trainings(running: list[str], lines: list[str]) -> None:
    """The first ten are named and the others counted; nothing is said where nothing is trained."""
    assert stopped_trainings(running) == lines
