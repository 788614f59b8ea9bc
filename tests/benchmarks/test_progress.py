from __future__ import annotations

from io import StringIO

import msgspec
import pytest
from rich.console import Console

from benchmarks.following.load import Load
from benchmarks.progress import Result, print_result, run

TINY = Load(jobs=3, lines_per_second=100, lines_per_message=10, throttle=0.1, pace=0.02)


def test_following_is_measured() -> None:
    """A few logs yield numbers that fit together, the targets, and a table."""
    result = run(TINY, 0.3)
    assert 0 < result.fewest_lines <= result.median_lines
    assert result.lines_per_second > 0
    assert result.cpu_per_1000_lines * result.lines_per_core == pytest.approx(1000)
    assert result.status_writes > 0
    assert result.delay_p50 is not None
    assert result.delay_p99 is not None
    assert -0.1 < result.delay_p50 <= result.delay_p99
    assert len(result.targets) == 7
    assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result
    printed = StringIO()
    print_result(Console(file=printed, width=120), result)
    assert "3 logs, 100 lines/s each, lines" in printed.getvalue()
