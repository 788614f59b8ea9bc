"""What people and programs see of a training's progress: the columns of kubectl, the status as it changes, series."""

from __future__ import annotations

import re
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from e2e.processes import Process
from e2e.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.cluster import Cluster

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


def condition(cluster: Cluster, name: str, kind: str) -> dict[str, Any]:
    """A condition of a TrainJob; empty if there is none."""
    conditions = ((cluster.get("trainjob", name) or {}).get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), {})


def events(cluster: Cluster, reason: str) -> list[dict[str, Any]]:
    """Events about TrainJobs."""
    found = cluster.list("event")
    return [each for each in found if each["involvedObject"]["kind"] == "TrainJob" and each["reason"] == reason]


class Percentages:
    """All percentages that a TrainJob has shown since, in their order, as `kubectl get --watch` sees them."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def seen(self) -> list[str]:
        """Each value once until the next one, from the first; "" where there was none any more."""
        values = re.findall(r"^<(.*)>$", self._process.output(), re.MULTILINE)
        return [value for before, value in pairwise(["", *values]) if value != before]

    def wait_for(self, *percentages: str) -> None:
        """Wait until exactly these have been seen."""
        until(
            lambda: self.seen()[-len(percentages) :] == list(percentages),
            lambda: f"percentages {percentages}, not {self.seen()}",
            timeout=SECONDS,
        )
        assert self.seen() == list(percentages)


@contextmanager
def watched_percentages(cluster: Cluster, name: str, directory: Path) -> Iterator[Percentages]:
    """Watch a TrainJob that is there already."""
    template = "-o=jsonpath=<{.status.trainerStatus.progressPercentage}>{'\\n'}"
    process = Process(cluster.command("get", "trainjob", name, "--watch", template), directory / f"{name}.watch")
    try:
        process.start(ready="<")
        yield Percentages(process)
    finally:
        process.stop()


def rows(cluster: Cluster) -> tuple[str, dict[str, list[str]]]:
    """`kubectl get trainjob`: its header, and by name what stands under each of its columns."""
    header, *lines = cluster.kubectl("get", "trainjob").stdout.splitlines()
    starts = [found.start() for found in re.finditer(r"\S+(?: %)?", header)]
    ends = [*starts[1:], None]
    cells = [[line[start:end].strip() for start, end in zip(starts, ends, strict=True)] for line in lines]
    return header, {row[0]: row for row in cells}
