from __future__ import annotations

from io import StringIO

import msgspec
from rich.console import Console

from benchmarks.growth import Result, print_result, run


def test_growth_is_measured() -> None:
    """A manager starts among a few TrainJobs that have ended, writes nothing, and takes some more to their end."""
    result = run((2, 4), 2, quiet_seconds=0.1)
    assert [each.jobs for each in result.measurements] == [2, 4]
    for each in result.measurements:
        assert each.errors == each.start_requests == 0
        assert min(each.start_cpu_seconds, each.start_seconds, each.job_cpu_seconds) > 0
        assert each.quiet_cpu_seconds >= 0
        assert each.bytes_per_job <= each.peak_bytes_per_job
    assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result
    printed = StringIO()
    print_result(Console(file=printed, width=120), result)
    assert "0 failed reconciles, 0 requests" in printed.getvalue()
