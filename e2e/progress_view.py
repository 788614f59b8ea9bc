"""What people and programs see of the progress of a training: the columns of kubectl, and the status."""

from __future__ import annotations

import re
from typing import Any

from e2e.cluster import Cluster
from e2e.waiting import until

SECONDS = 20
"""Within which a report is seen; a busy machine takes a few."""


def progress(cluster: Cluster, name: str) -> dict[str, Any]:
    """`status.trainerStatus` of a TrainJob; empty while it has none."""
    job = cluster.get("trainjob", name) or {}
    found: dict[str, Any] = (job.get("status") or {}).get("trainerStatus") or {}
    return found


def wait_for_progress(cluster: Cluster, name: str, **fields: Any) -> dict[str, Any]:
    """Wait until the status has these values; returns all of it."""

    def reached() -> dict[str, Any] | None:
        found = progress(cluster, name)
        return found if all(found.get(field) == value for field, value in fields.items()) else None

    return until(reached, lambda: f"TrainJob {name} reports {fields}, not {progress(cluster, name)}", timeout=SECONDS)


def rows(cluster: Cluster) -> tuple[str, dict[str, list[str]]]:
    """`kubectl get trainjob`: its header, and by name what stands under each of its columns."""
    header, *lines = cluster.kubectl("get", "trainjob").stdout.splitlines()
    starts = [found.start() for found in re.finditer(r"\S+(?: %)?", header)]
    ends = [*starts[1:], None]
    cells = [[line[start:end].strip() for start, end in zip(starts, ends, strict=True)] for line in lines]
    return header, {row[0]: row for row in cells}
