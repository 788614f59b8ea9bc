from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks.survival import VARIANTS, Lengths, outcome, runs_of

LENGTHS = Lengths(total=10, every=5, start=0, step=0.5, interval=1)
RESUMED = """\
started 0.0
1 1.0
2 2.0
3 3.0
started 4.0
3 6.0
4 7.0
5 8.0
"""


@pytest.mark.parametrize(
    ("text", "starts", "made", "kept", "goodput", "recovery"),
    [
        pytest.param(RESUMED, 2, 6, 5, 0.25, 3.0, id="goes-on-from-a-checkpoint"),
        pytest.param("started 0.0\n1 1.0\n2 2.0\nstarted 4.0\n1 5.0\n", 2, 3, 1, 0.05, 3.0, id="begins-again"),
        pytest.param("started 0.0\n1 1.0\nstarted 4.0\n", 2, 1, 1, 0.05, math.nan, id="has-not-gone-on-yet"),
        pytest.param("started 0.0\n1 1.0\n2 2", 1, 1, 1, 0.05, math.nan, id="half-a-line"),
        pytest.param("", 0, 0, 0, 0.0, math.nan, id="never-started"),
    ],
)
def test_outcome(tmp_path: Path, text: str, starts: int, made: int, kept: int, goodput: float, recovery: float) -> None:
    """Useful are the steps of which something is left, and a recovery lasts from the last step to the next."""
    record = tmp_path / "record"
    record.write_text(text)
    found = outcome(VARIANTS[0], runs_of(record), 1, LENGTHS, 10.0)
    assert (found.starts, found.steps, found.kept, found.goodput) == (starts, made, kept, goodput)
    assert found.recovery == pytest.approx(recovery, nan_ok=True)


def test_without_checkpoints(tmp_path: Path) -> None:
    """Nothing is left of what the pods before the last one have done."""
    record = tmp_path / "record"
    record.write_text("started 0.0\n1 1.0\nstarted 4.0\n")
    assert outcome(VARIANTS[1], runs_of(record), 1, LENGTHS, 10.0).kept == 0
