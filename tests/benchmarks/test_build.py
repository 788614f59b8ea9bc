from __future__ import annotations

from io import StringIO

import msgspec
from rich.console import Console

from benchmarks.build import PHASES, Result, print_result, run


def test_the_build_is_measured() -> None:
    """A few TrainJobs yield processor time and few calls in each phase, the writes, and a table."""
    result = run(3)
    calls = {phase: sum(each.calls for each in result.stages if each.phase == phase) for phase in PHASES}
    assert all(calls.values())
    assert result.requests["create"]["apply jobsets"] == 1
    assert result.requests["resync"] == {}
    assert result.requests["complete"]["apply trainjobs/status"] == 1
    assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result
    # A third above what Python 3.11 counts; newer ones inline comprehensions.
    assert calls["resync"] < 1600
    assert calls["complete"] < 1040
    printed = StringIO()
    print_result(Console(file=printed, width=160), result)
    assert "hash, compare, deploy" in printed.getvalue()
