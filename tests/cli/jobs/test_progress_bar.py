"""The bar of progress."""

from __future__ import annotations

import pytest

from trainer.cli.jobs.progress_bar import progress_bar


@pytest.mark.parametrize(
    ("percentage", "bar", "plain"),
    [
        pytest.param(0, "░░░░░", "-----", id="nothing"),
        pytest.param(1, "▏░░░░", "-----", id="something"),
        pytest.param(50, "██▌░░", "##---", id="half"),
        pytest.param(99, "████▉", "####-", id="not full"),
        pytest.param(100, "█████", "#####", id="full"),
        pytest.param(170, "█████", "#####", id="more than all"),
        pytest.param(-1, "░░░░░", "-----", id="less than nothing"),
    ],
)
def test_bar(percentage: int, bar: str, plain: str) -> None:
    """The bar is full at 100 per cent only, and has the same width always."""
    assert progress_bar(percentage, 5).plain == bar
    assert progress_bar(percentage, 5, ascii_only=True).plain == plain
