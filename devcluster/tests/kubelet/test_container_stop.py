"""Signals by name."""

from __future__ import annotations

import signal

import pytest

from trainer_devcluster.kubelet.container_stop import stop_signal


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(None, signal.SIGTERM, id="none"),
        pytest.param("SIGUSR1", signal.SIGUSR1, id="by name"),
        pytest.param("SIGRTMIN+3", signal.SIGRTMIN + 3, id="real time, from below"),
        pytest.param("SIGRTMAX-2", signal.SIGRTMAX - 2, id="real time, from above"),
    ],
)
def test_stop_signal(name: str | None, number: int) -> None:
    """A container says by name which signal it wants, or gets SIGTERM."""
    assert stop_signal({"lifecycle": {"stopSignal": name}} if name else {}) == number


def test_unknown_signal() -> None:
    """A name that is none is refused."""
    with pytest.raises(ValueError, match="'SIGNAL' is no signal"):
        stop_signal({"lifecycle": {"stopSignal": "SIGNAL"}})
