"""How much counters have grown, from their first value on."""

from __future__ import annotations


def growth(selector: str, window: str) -> str:
    """By how much the series of a counter have grown in a time, in PromQL.

    `increase()` begins with the first value that Prometheus has seen. A series that counts six failures between two
    scrapes appears with 6, and has grown by nothing. So a series that is new in the window has grown by all it has; it
    is new if it was not there in the hour before. A hole of less than an hour makes none new.
    """
    new = f"last_over_time({selector}[{window}]) unless last_over_time({selector}[1h] offset {window})"
    return f"(({new}) or increase({selector}[{window}]))"
