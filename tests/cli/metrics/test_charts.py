"""Charts of characters."""

from __future__ import annotations

import pytest

from trainer.cli.metrics.charts import Canvas


@pytest.mark.parametrize(
    ("points", "lines"),
    [
        pytest.param([], ["   ", "   "], id="nothing"),
        pytest.param([(5, 1)], ["⡀  ", "   "], id="one point"),
        pytest.param(
            [(x, 0.1) for x in (0, 0, 0, 1, 1, 1, 1, 1, 1, 2)], ["⣀⣀⣀", "   "], id="constant, many in one column"
        ),
        pytest.param([(0, -7), (0, 7), (5, 7)], [" ⢀⠎", "⡰⠁ "], id="the mean of several in one column"),
    ],
)
def test_braille(points: list[tuple[float, float]], lines: list[str]) -> None:
    """A line of dots goes through all points and fills the chart."""
    assert Canvas(3, 2).draw(points) == lines


def test_ascii() -> None:
    """Where there is nothing but ASCII, each cell is one dot."""
    assert Canvas(5, 3, ascii_only=True).draw([(0, 0), (1, 1), (4, 0)]) == [" *   ", "* ** ", "*   *"]
