"""Time that a webhook has."""

from __future__ import annotations

import pytest

from trainer.kube.webhook.endpoint import time_budget


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("", 9.5, id="default"),
        pytest.param("5s", 4.5, id="seconds"),
        pytest.param("1s", 0.9, id="a-tenth-of-little"),
        pytest.param("500ms", 0.45, id="milliseconds"),
        pytest.param("1m30s", 29.5, id="no-longer-than-allowed"),
        pytest.param("1h", 9.5, id="unit-that-is-never-sent"),
        pytest.param("-5s", 9.5, id="negative"),
        pytest.param("0s", 9.5, id="zero"),
        pytest.param("soon", 9.5, id="nonsense"),
    ],
)
def test_time_budget(text: str, seconds: float) -> None:
    """Half a second less than the API server waits, or a tenth of that if it is less."""
    assert time_budget(text, 10) == pytest.approx(seconds)
