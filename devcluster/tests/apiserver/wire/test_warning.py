"""Warnings: each once, and not without end."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.wire.warning import CUT_CHARACTERS, MAX_CHARACTERS, Warnings


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["b", "a", "b", ""], ["b", "a"], id="each once, in order"),
        pytest.param(["x" * MAX_CHARACTERS], ["x" * MAX_CHARACTERS], id="as long as allowed"),
        pytest.param(["x" * MAX_CHARACTERS, "short"], ["x" * CUT_CHARACTERS, "short"], id="cut"),
        pytest.param(
            [f"{number:0300}" for number in range(100)],
            [f"{number:0300}"[:CUT_CHARACTERS] for number in range(MAX_CHARACTERS // CUT_CHARACTERS)],
            id="too many",
        ),
    ],
)
def test_texts(texts: list[str], expected: list[str]) -> None:
    """An answer has at most 4096 characters of warnings; when there are more, each is cut."""
    warnings = Warnings()
    for text in texts:
        warnings.add(text)
    assert warnings.texts == expected
