"""Questions about what was recorded. Every call blocks for one query; on an event loop call it in a thread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Connection, Table, func, or_, select, tuple_

from trainer.kube.objects import Object, mapping_at
from trainer.progress.curves import Curves
from trainer_dashboard.history import schema
from trainer_dashboard.history.chunks import curves_of, posted_curves_of
from trainer_dashboard.history.content import inflated
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.errors import HistoryError

_T = TypeVar("_T")

PAGE = 100
"""Trainings in a page by default."""
NAMESPACES = 5000
"""Namespaces of a cluster that are listed."""
_FIRST = ("trainjob", "runtime", "jobset")
_SEARCHED = ("namespace", "name", "runtime", "image", "creator", "metric", "message")
"""Columns with the words of a filter."""
_SHORTEST_UID = 6
"""Characters of a uid by which a training is found."""


class LastMetric(NamedTuple):
    """The last value of a metric."""

    name: str
    value: str
    """The number as it was printed."""
    is_eval: bool


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """One training in a list; times are seconds since 1970."""

    uid: str
    cluster: str
    namespace: str
    name: str
    created: float
    started: float | None
    ended: float | None
    deleted: float | None
    """When it was gone from the cluster; None while it is there."""
    forgotten: float | None
    """When its documents, events, logs and samples were forgotten; None while they are kept."""
    state: str
    """The last one; of a training that was deleted before its end, that before the deletion."""
    reason: str
    message: str
    runtime_kind: str
    runtime: str
    runtime_version: str
    image: str
    nodes: int | None
    creator: str
    progress: int | None
    sweep_uid: str | None
    """Of the OptimizationJob whose trial it is; None for one that is no trial."""
    sweep: str | None
    """Its name."""
    trial: int | None
    """The number of the trial."""
    assignment: Mapping[str, str]
    """The parameters of the trial, by name; empty for one that is no trial."""
    metrics: tuple[LastMetric, ...]
    """Some of the last values."""

    @property
    def end(self) -> float | None:
        """When it ended, or was deleted before; None while it runs."""
        return self.ended if self.ended is not None else self.deleted

    @property
    def seconds(self) -> float | None:
        """How long it ran; None while it runs, or if it never did."""
        return self.end - self.started if self.end is not None and self.started is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which trainings are listed; empty texts select all."""

    cluster: str | None = None
    """Default: all."""
    namespaces: frozenset[str] | None = None
    """Default: all."""
    name: str = ""
    state: str = ""
    runtime: str = ""
    sweep: str = ""
    """Trials of sweeps of this name."""
    sweep_uid: str = ""
    """Trials of this sweep."""
    words: tuple[str, ...] = ()
    """Each is in the namespace, name, runtime, image, creator, metric or message, in whatever case."""
    since: float | None = None
    """Created at this time or later. Default: from the first."""
    before: float | None = None
    """Created before this time. Default: whenever."""
    only_deleted: bool = False
    """Only those that are gone from the cluster. Default: also those that are there."""


def only(namespace: str) -> frozenset[str] | None:
    """The namespaces of a filter for one of them, or with "" for all."""
    return frozenset({namespace}) if namespace else None


class Cursor(NamedTuple):
    """The last training of a page, after which the next one goes on."""

    time: float
    """When it was created, or in a list by end when that was."""
    uid: str


class LoggedContainer(NamedTuple):
    """A container with a log."""

    node: str
    container: str


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last lines of one container's log."""

    node: str
    container: str
    pod: str
    is_training: bool
    """Whether it is the container of its pod that trains."""
    is_primary: bool
    """Whether it is the one that reports for the training."""
    lines: tuple[str, ...]
    """Each `<timestamp> <text>`."""


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event about a training or what was made for it."""

    last: str
    """When it was seen last, to the second."""
    type: str
    reason: str
    object: str
    message: str


ALL = Filter()
_LAST_METRICS = msgspec.json.Decoder(tuple[LastMetric, ...])
_ASSIGNMENT = msgspec.json.Decoder(dict[str, str])
_COLUMNS = [schema.TRAININGS.c[field.name] for field in fields(TrainingRecord)]


class History:
    """Reads a database.

    Every method raises `HistoryError` when the database cannot be read.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def trainings(
        self, which: Filter = ALL, *, by_end: bool = False, limit: int = PAGE, after: Cursor | None = None
    ) -> list[TrainingRecord]:
        """A page of trainings, the newest first.

        Args:
            which: those that are listed.
            by_end: lists those that have ended or are gone, the one that did so last first. Default: by creation.
            limit: of the page.
            after: the last training of the page before. Default: this is the first page.
        """
        return self.read(lambda connection: list(_page(connection, which, limit, after, by_end=by_end)))

    def pages(self, which: Filter, size: int = 1000) -> Iterator[list[TrainingRecord]]:
        """All trainings, the newest first, page by page."""
        after: Cursor | None = None
        while page := self.trainings(which, limit=size, after=after):
            yield page
            after = Cursor(page[-1].created, page[-1].uid)

    def namespaces(self, cluster: str) -> list[str]:
        """The namespaces of the trainings of a cluster, in order, and not more than `NAMESPACES`."""
        return self.read(lambda connection: _namespaces(connection, cluster))

    def of_uid(self, uid: str) -> TrainingRecord | None:
        """The training with this uid."""
        query = select(*_COLUMNS).where(schema.TRAININGS.c.uid == uid)
        return self.read(lambda connection: next((_record(row) for row in connection.execute(query)), None))

    def newest(self, name: str, namespace: str = "", cluster: str = "") -> TrainingRecord | None:
        """The newest training of a name, in a namespace or in all, of a cluster or of all; None if there is none."""
        which = Filter(cluster=cluster or None, namespaces=only(namespace), name=name)
        return next(iter(self.trainings(which, limit=1)), None)

    def training(self, reference: str, cluster: str = "") -> TrainingRecord:
        """The newest training with this `NAME` or `NAMESPACE/NAME`, or the one whose uid begins so.

        The former is one of a cluster, unless that is "", and the latter one of any.

        Raises:
            HistoryError: there is none, or there are several.
        """
        namespace, _, name = reference.rpartition("/")
        found = self.newest(name, namespace, cluster)
        if found is not None:
            return found
        if namespace or len(reference) < _SHORTEST_UID:
            raise HistoryError(f"the history has no training {reference}")
        begins_so = schema.TRAININGS.c.uid.startswith(reference, autoescape=True)
        query = select(*_COLUMNS).where(begins_so).limit(2)
        several = self.read(lambda connection: [_record(row) for row in connection.execute(query)])
        if not several:
            raise HistoryError(f"the history has no training {reference}: name one, or the beginning of its uid")
        if len(several) > 1:
            raise HistoryError(f"several trainings have a uid that begins with {reference}: give more of it")
        return several[0]

    def document(self, uid: str, kind: str) -> Object | None:
        """An object of a training as it was last: `trainjob`, `jobset`, `runtime`, or such as `podgroup/NAME`."""
        table = schema.DOCUMENTS.c
        query = select(table.content).where(table.uid == uid, table.kind == kind)
        content = self.read(lambda connection: connection.scalar(query))
        found: Object | None = inflated(content) if content is not None else None
        return found

    def parameters(self, uid: str) -> dict[str, str]:
        """What the reporter of a training has found that it was started with, without secrets."""
        kept = mapping_at(self.document(uid, schema.PARAMETERS) or {}, "parameters")
        return {str(name): str(value) for name, value in kept.items()}

    def objects(self, uid: str) -> list[Object]:
        """All objects of a training as they were last: TrainJob, runtime, JobSet, and what else was rendered for it."""
        table = schema.DOCUMENTS.c
        query = select(table.kind, table.content).where(table.uid == uid)
        found = dict(self.read(lambda connection: [(row.kind, row.content) for row in connection.execute(query)]))
        found.pop(schema.PARAMETERS, None)
        kinds = [kind for kind in _FIRST if kind in found]
        return [inflated(found[kind]) for kind in [*kinds, *sorted(found.keys() - {*kinds})]]

    def events(self, uid: str) -> list[RecordedEvent]:
        """The events of a training, the newest first."""
        table = schema.EVENTS.c
        columns = [table[field.name] for field in fields(RecordedEvent)]
        query = select(*columns).where(table.uid == uid).order_by(table.last.desc(), table.event)
        return self.read(lambda connection: [RecordedEvent(*row) for row in connection.execute(query)])

    def logged_containers(self, uid: str) -> list[LoggedContainer]:
        """The containers of a training with last lines; those that train come first."""
        table = schema.LOG_TAILS.c
        query = select(table.node, table.container).where(table.uid == uid)
        query = query.order_by(table.is_training.desc(), table.node, table.container)
        return self.read(lambda connection: [LoggedContainer(*row) for row in connection.execute(query)])

    def log_tails(self, uid: str, which: Collection[LoggedContainer] | None = None) -> list[LogTail]:
        """The last lines of the logs of a training, or of some of its containers, by node and container."""
        table = schema.LOG_TAILS.c
        columns = [table[field.name] for field in fields(LogTail)[:-1]]
        query = select(*columns, table.content).where(table.uid == uid).order_by(table.node, table.container)
        if which is not None:
            query = query.where(tuple_(table.node, table.container).in_([*which]))
        rows = self.read(lambda connection: list(connection.execute(query)))
        return [LogTail(*_with_last(row, tuple(inflated(row[-1])))) for row in rows]

    def curves(self, uid: str) -> Curves:
        """The samples of the last run of a training: those of its log, and for other metrics those of its status."""
        table = schema.METRIC_CHUNKS.c
        last = select(schema.METRIC_LOGS.c.run).where(schema.METRIC_LOGS.c.uid == uid).scalar_subquery()
        query = select(table.number, table.content).where(table.uid == uid, table.run == last).order_by(table.number)
        rows = self.read(lambda connection: connection.execute(query).all())
        curves = curves_of(row.content for row in rows if row.number >= 0)
        posted = posted_curves_of(row.content for row in reversed(rows) if row.number < 0)
        curves.extend({metric: curve for metric, curve in posted.by_metric.items() if metric not in curves.by_metric})
        return curves

    def read(self, query: Callable[[Connection], _T]) -> _T:
        """The answer of a query."""
        return self._database.read(query)


def _page(
    connection: Connection, which: Filter, limit: int, after: Cursor | None, *, by_end: bool
) -> Iterator[TrainingRecord]:
    table = schema.TRAININGS.c
    time: ColumnElement[Any] = func.coalesce(table.ended, table.deleted) if by_end else table.created
    order = (time.desc(), table.uid.desc())
    query = select(table.uid).where(*conditions(which))
    if by_end and not which.only_deleted:
        query = query.where(time.is_not(None))
    if after is not None:
        # The first part is one that an index serves.
        query = query.where(time <= after.time, or_(time < after.time, table.uid < after.uid))
    if which.words:
        # Few trainings have them: sorting these takes less than looking for them in the order of the index.
        order = ((time + 0).desc(), table.uid.desc())
    # Whole rows of the page alone, and not of all that is sorted.
    rows = select(*_COLUMNS).where(table.uid.in_(query.order_by(*order).limit(limit).scalar_subquery()))
    return map(_record, connection.execute(rows.order_by(*order)))


def conditions(which: Filter, table: Table = schema.TRAININGS) -> Iterator[ColumnElement[bool]]:
    """What rows of trainings, or of another table, must meet; of columns that the table has."""
    columns = table.c
    if which.cluster is not None:
        yield _is_of(which.cluster, table)
    if which.namespaces is not None:
        yield columns.namespace.in_(sorted(which.namespaces))
    for name in ("name", "state", "runtime", "sweep", "sweep_uid"):
        if wanted := getattr(which, name):
            yield columns[name] == wanted
    searched = [columns[name] for name in _SEARCHED if name in columns]
    for word in which.words:
        yield or_(*(column.icontains(word, autoescape=True) for column in searched))
    if which.since is not None:
        yield columns.created >= which.since
    if which.before is not None:
        yield columns.created < which.before
    if which.only_deleted:
        yield columns.deleted.is_not(None)


def _is_of(cluster: str, table: Table = schema.TRAININGS) -> ColumnElement[bool]:
    """Not by an index: most databases have one cluster, and other columns select more."""
    return func.coalesce(table.c.cluster, "") == cluster


def _namespaces(connection: Connection, cluster: str) -> list[str]:
    """From one to the next in the index, so that the trainings of each cost nothing."""
    table = schema.TRAININGS.c
    query = select(table.namespace).where(_is_of(cluster)).order_by(table.namespace).limit(1)
    found: list[str] = []
    following = query
    while len(found) < NAMESPACES and (namespace := connection.scalar(following)) is not None:
        found.append(namespace)
        following = query.where(table.namespace > namespace)
    return found


def _record(row: Sequence[Any]) -> TrainingRecord:
    try:
        metrics = _LAST_METRICS.decode(row[-1])
    except msgspec.DecodeError:
        metrics = ()  # of one training, which costs a list nothing else
    try:
        assignment = _ASSIGNMENT.decode(row[-2] or "{}")
    except msgspec.DecodeError:
        assignment = {}
    values: tuple[Any, ...] = (*row[:-2], assignment, metrics)
    return TrainingRecord(*values)


def _with_last(row: Sequence[Any], value: object) -> tuple[Any, ...]:
    """A row whose last column is decoded."""
    return (*row[:-1], value)
