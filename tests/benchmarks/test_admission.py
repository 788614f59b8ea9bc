from __future__ import annotations

from io import StringIO

import msgspec
from rich.console import Console

from benchmarks.admission import CLIENTS, Result, print_result, run


def test_admission_is_measured() -> None:
    """A few reviews yield processor time and latency of each endpoint, and a table."""
    result = run(4)
    measured = [(each.endpoint, each.clients) for each in result.measurements]
    webhooks = [f"{verb}, {kind}" for kind in ("TrainJob", "TrainingRuntime") for verb in ("mutating", "validating")]
    assert measured == [(name, clients) for name in ("floor", *webhooks) for clients in CLIENTS]
    assert all(0 < each.p50_ms <= each.p99_ms for each in result.measurements)
    assert all(each.cpu_ms > 0 for each in result.measurements)
    assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result
    printed = StringIO()
    print_result(Console(file=printed, width=120), result)
    assert "validating" in printed.getvalue()
