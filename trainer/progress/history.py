"""The last samples of each metric of running trainings, in bounded memory.

Metrics of one message share a row: a message with the same metric names as before adds one row of doubles to a table
with one time for all of them. A thousand trainings with 10 metrics and 200 samples each take 24 MB, and no training
takes more than 150 KB for 200 samples.

The history is a cache and is empty after a restart of the manager; the log has all samples.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from trainer.kube.manager.routes import HttpResponse
from trainer.kube.objects import ObjectKey
from trainer.progress.protocol import METRICS_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from trainer.kube.manager.manager import Manager
    from trainer.kube.manager.routes import HttpRequest
    from trainer.kube.podlogs.instant import Instant
    from trainer.progress.protocol import Message

Sample: TypeAlias = tuple[float, float]
"""Seconds since 1970-01-01T00:00:00Z by the clock of the training's node, and the value."""

FULL_METRICS = 64
"""Metrics of one TrainJob that keep all their samples; with more of them the oldest samples are dropped earlier."""

_TABLE_COST = 64
"""Memory of a table beside its numbers and names, in doubles."""

_NAME_COST = 14
"""Memory of a name of the usual length, in doubles."""

_PROGRESS = ("progressPercentage", "currentStep", "currentEpoch")


class SeriesKind(StrEnum):
    """The kind of a series of samples."""

    PROGRESS = "progress"
    """progressPercentage, currentStep or currentEpoch."""
    TRAIN = "train"
    """A metric on the training data."""
    EVAL = "eval"
    """A metric on the evaluation data."""


@dataclass(frozen=True, slots=True)
class Series:
    """The last samples of one metric, the oldest first."""

    name: str
    """The name that the training uses."""
    kind: SeriesKind
    samples: tuple[Sample, ...]
    """Never empty."""


class History:
    """The last samples of each metric of the trainings that run; 0 samples keep none."""

    def __init__(self, *, samples: int = 200) -> None:
        if samples < 0:
            raise ValueError(f"the number of samples must not be negative: {samples}")
        self._samples = samples
        self._jobs: dict[ObjectKey, JobHistory] = {}

    def record(self, key: ObjectKey, uid: str, message: Message, time: Instant) -> None:
        """Add what a message reports; one with the same time and values as before adds nothing.

        The samples of an earlier TrainJob of the same name, whose uid is another, are dropped.
        """
        if not self._samples:
            return
        job = self._jobs.get(key)
        if job is None or job.uid != uid:
            self.forget(key)
            job = JobHistory(uid, self._samples)
        job.record(message, time.seconds + time.nanoseconds / 1e9)
        if job.last_time is not None:
            self._jobs[key] = job

    def forget(self, key: ObjectKey) -> None:
        """Drop the samples of a TrainJob."""
        self._jobs.pop(key, None)

    def of(self, key: ObjectKey) -> JobHistory | None:
        """The samples of one TrainJob; None without any."""
        return self._jobs.get(key)

    def __iter__(self) -> Iterator[tuple[ObjectKey, JobHistory]]:
        """All TrainJobs with samples, sorted by name."""
        return iter(sorted(self._jobs.items()))

    def __len__(self) -> int:
        return len(self._jobs)


class JobHistory:
    """The last samples of one TrainJob."""

    __slots__ = ("_budget", "_cost", "_samples", "_tables", "uid")

    def __init__(self, uid: str, samples: int) -> None:
        self.uid = uid
        self._samples = samples
        columns = FULL_METRICS + len(_PROGRESS)
        full = columns * (samples + _NAME_COST) + len(SeriesKind) * (samples + _TABLE_COST)
        largest = METRICS_LIMIT * (1 + _NAME_COST) + 1 + _TABLE_COST
        self._budget = max(full, len(SeriesKind) * largest)
        self._cost = 0
        self._tables: dict[_TableKey, _Table] = {}

    @property
    def last_time(self) -> float | None:
        """The time of the newest sample, in seconds as in `Sample`; None without one."""
        return max((table.times[-1] for table in self._tables.values()), default=None)

    @property
    def names(self) -> list[tuple[SeriesKind, str]]:
        """The metrics with samples, sorted by kind and name."""
        return sorted({(kind, name) for kind, names in self._tables for name in names})

    def series(self) -> list[Series]:
        """All series, sorted by kind and name."""
        return [Series(name, kind, self._samples_of(kind, name)) for kind, name in self.names]

    def record(self, message: Message, time: float) -> None:
        """Add the samples of a message, as `History.record` does."""
        self._add(SeriesKind.PROGRESS, _progress_of(message), time)
        for kind, metrics in ((SeriesKind.TRAIN, message.train_metrics), (SeriesKind.EVAL, message.eval_metrics)):
            if metrics:
                self._add(kind, {name: float(value) for name, value in metrics.items()}, time)

    def _add(self, kind: SeriesKind, values: Mapping[str, float], time: float) -> None:
        if not values:
            return
        key = kind, tuple(values)
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = _Table(len(values))
            self._cost += table.own_cost
        elif table.has(time, values.values()):
            return
        table.append(time, values.values())
        self._cost += table.row_cost
        if len(table.times) > self._samples:
            self._drop_oldest_row(key, table)
        while self._cost > self._budget:
            self._drop_oldest_row(*min(self._tables.items(), key=lambda item: item[1].times[0]))

    def _drop_oldest_row(self, key: _TableKey, table: _Table) -> None:
        table.drop_first()
        self._cost -= table.row_cost
        if not table.times:
            del self._tables[key]
            self._cost -= table.own_cost

    def _samples_of(self, kind: SeriesKind, name: str) -> tuple[Sample, ...]:
        """The samples of a metric from all tables, since a message may have it alone or with others."""
        found: list[Sample] = []
        for (kind_of_table, names), table in self._tables.items():
            if kind_of_table is kind and name in names:
                found += table.column(names.index(name))
        found.sort(key=lambda sample: sample[0])
        return tuple(found[-self._samples :])


_TableKey: TypeAlias = tuple[SeriesKind, tuple[str, ...]]


class _Table:
    """Rows of numbers, each measured at one time."""

    __slots__ = ("times", "values", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.times = array("d")
        self.values = array("d")
        """All rows, one after the other."""

    @property
    def own_cost(self) -> int:
        return _TABLE_COST + _NAME_COST * self.width

    @property
    def row_cost(self) -> int:
        return self.width + 1

    def append(self, time: float, values: Iterable[float]) -> None:
        self.times.append(time)
        self.values.extend(values)

    def drop_first(self) -> None:
        del self.times[0]
        del self.values[: self.width]

    def has(self, time: float, values: Iterable[float]) -> bool:
        """Whether the table has the row: after a reconnect the last second of the log is read again."""
        if time > self.times[-1]:
            return False
        row = array("d", values)
        return any(
            at == time and self.values[index * self.width : (index + 1) * self.width] == row
            for index, at in enumerate(self.times)
        )

    def column(self, index: int) -> Iterator[Sample]:
        return zip(self.times, self.values[index :: self.width], strict=True)


def _progress_of(message: Message) -> dict[str, float]:
    reported = message.progress_percentage, message.current_step, message.current_epoch
    return {name: float(value) for name, value in zip(_PROGRESS, reported, strict=True) if value is not None}


PREFIX = "/progress/v1"
"""Prefix of all paths, with the version of the format."""


class HistoryServer:
    """Serves a history."""

    def __init__(self, history: History) -> None:
        self._history = history

    def register(self, manager: Manager) -> None:
        """Add the routes to the manager's HTTP server; replicas that do not lead have no samples."""
        manager.serve(f"{PREFIX}/trainjobs", self.train_jobs)
        manager.serve(f"{PREFIX}/namespaces/{{namespace}}/trainjobs", self.train_jobs)
        manager.serve(f"{PREFIX}/namespaces/{{namespace}}/trainjobs/{{name}}", self.train_job)

    async def train_jobs(self, request: HttpRequest) -> HttpResponse:
        """The TrainJobs of a namespace, or of all, that have samples, without the samples."""
        if request.query:
            return _refusal_of_parameters(request)
        namespace = request.parameters.get("namespace")
        items = [_describe(key, job) for key, job in self._history if namespace in {None, key.namespace}]
        return _json({"items": items})

    async def train_job(self, request: HttpRequest) -> HttpResponse:
        """The samples of one TrainJob."""
        if request.query:
            return _refusal_of_parameters(request)
        key = ObjectKey(request.parameters["namespace"], request.parameters["name"])
        job = self._history.of(key)
        if job is None:
            return _error(
                HTTPStatus.NOT_FOUND,
                f"there are no samples of TrainJob {key.name} in namespace {key.namespace}: samples are kept of "
                "TrainJobs that run and report metrics, by the manager that leads, since it was started",
            )
        return _json(_describe(key, job) | _samples(job))


def _describe(key: ObjectKey, job: JobHistory) -> dict[str, Any]:
    return {"namespace": key.namespace, "name": key.name, "uid": job.uid, "lastSampleTime": job.last_time}


def _samples(job: JobHistory) -> dict[str, Any]:
    metrics, progress = [], []
    for series in job.series():
        if series.kind is SeriesKind.PROGRESS:
            progress.append({"name": series.name, "samples": series.samples})
        else:
            metrics.append({"name": series.name, "kind": series.kind, "samples": series.samples})
    return {"metrics": metrics, "progress": progress}


def _refusal_of_parameters(request: HttpRequest) -> HttpResponse:
    names = ", ".join(sorted(request.query))
    return _error(HTTPStatus.BAD_REQUEST, f"there are no query parameters here; take out: {names}")


def _error(status: HTTPStatus, message: str) -> HttpResponse:
    return _json({"error": message}, status)


def _json(content: object, status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(content), "application/json", status)
