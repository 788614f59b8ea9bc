"""Pauses between restarts."""

from __future__ import annotations

import pytest

from trainer_devcluster.kubelet.container_supervisor import RestartBackoff, format_duration
from trainer_devcluster.kubelet.options import DEFAULT_RESTART_BACKOFF


def test_pauses() -> None:
    """The first restart is immediate, later ones wait 10 s, 20 s ... 5 min, until a run of ten minutes."""
    backoff = RestartBackoff(DEFAULT_RESTART_BACKOFF, 600)
    assert [backoff.next_pause(1) for _ in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]
    assert [backoff.next_pause(600), backoff.next_pause(1)] == [0, 10]


@pytest.mark.parametrize(("seconds", "text"), [(10, "10s"), (80, "1m20s"), (300, "5m0s"), (0.5, "0.5s")], ids=str)
def test_format(seconds: float, text: str) -> None:
    """Durations are written as Go writes them."""
    assert format_duration(seconds) == text
