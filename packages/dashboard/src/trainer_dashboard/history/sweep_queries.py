"""Questions about the sweeps that were recorded, and about their trials. Every call blocks for one query."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

from sqlalchemy import ColumnElement, func, or_, select

from trainer.kube.objects import Object
from trainer_dashboard.history import schema
from trainer_dashboard.history.content import inflated
from trainer_dashboard.history.errors import HistoryError
from trainer_dashboard.history.queries import (
    ALL,
    NAMESPACES,
    PAGE,
    Cursor,
    Filter,
    History,
    TrainingRecord,
    conditions,
    only,
)

TRIALS: Final = 1000
"""Trainings of one sweep that are read: a trial that was deleted before its end has several."""


@dataclass(frozen=True, slots=True)
class SweepRecord:
    """One OptimizationJob in a list; times are seconds since 1970."""

    uid: str
    cluster: str
    namespace: str
    name: str
    created: float
    started: float | None
    ended: float | None
    deleted: float | None
    """When it was gone from the cluster; None while it is there."""
    state: str
    """The last one; of a sweep that was deleted before its end, that before the deletion."""
    reason: str
    message: str
    metric: str
    direction: str
    algorithm: str
    trials: int | None
    """How many it asks for."""
    running: int | None
    succeeded: int | None
    failed: int | None
    pruned: int | None
    best: str
    """Name of the TrainJob of the best trial; empty without one."""
    value: str
    """The value of its objective."""

    @property
    def end(self) -> float | None:
        """When it ended, or was deleted before; None while it runs."""
        return self.ended if self.ended is not None else self.deleted

    @property
    def seconds(self) -> float | None:
        """How long it took; None while it runs."""
        return self.end - self.started if self.end is not None and self.started is not None else None

    @property
    def over(self) -> int:
        """Trials that have ended."""
        return sum(filter(None, (self.succeeded, self.failed, self.pruned)))


_COLUMNS = [schema.SWEEPS.c[field.name] for field in fields(SweepRecord)]


class SweepHistory:
    """Reads the sweeps of a history.

    Every method raises `HistoryError` when the database cannot be read.
    """

    def __init__(self, history: History) -> None:
        self._history = history

    def sweeps(
        self, which: Filter = ALL, *, by_end: bool = False, limit: int = PAGE, after: Cursor | None = None
    ) -> list[SweepRecord]:
        """A page of sweeps, the newest first.

        Args:
            which: those that are listed, by what sweeps have of it.
            by_end: lists those that have ended or are gone, the one that did so last first. Default: by creation.
            limit: of the page.
            after: the last sweep of the page before. Default: this is the first page.
        """
        table = schema.SWEEPS.c
        time: ColumnElement[Any] = func.coalesce(table.ended, table.deleted) if by_end else table.created
        query = select(*_COLUMNS).where(*conditions(which, schema.SWEEPS))
        if by_end:
            query = query.where(time.is_not(None))
        if after is not None:
            query = query.where(time <= after.time, or_(time < after.time, table.uid < after.uid))
        query = query.order_by(time.desc(), table.uid.desc()).limit(limit)
        return self._history.read(lambda connection: [SweepRecord(*row) for row in connection.execute(query)])

    def sweep(self, reference: str, cluster: str = "") -> SweepRecord:
        """The newest sweep with this `NAME` or `NAMESPACE/NAME`, of a cluster or of all.

        Raises:
            HistoryError: there is none.
        """
        namespace, _, name = reference.rpartition("/")
        which = Filter(cluster=cluster or None, namespaces=only(namespace), name=name)
        found = next(iter(self.sweeps(which, limit=1)), None)
        if found is None:
            raise HistoryError(f"the history has no sweep {reference}: trainer history sweeps lists them")
        return found

    def namespaces(self, cluster: str) -> list[str]:
        """The namespaces of the sweeps of a cluster, in order, and not more than `NAMESPACES`."""
        table = schema.SWEEPS.c
        query = select(table.namespace).where(table.cluster == cluster).distinct().order_by(table.namespace)
        return self._history.read(lambda connection: [*connection.scalars(query.limit(NAMESPACES))])

    def of_uid(self, uid: str) -> SweepRecord | None:
        """The sweep with this uid."""
        query = select(*_COLUMNS).where(schema.SWEEPS.c.uid == uid)
        rows = self._history.read(lambda connection: connection.execute(query).all())
        return SweepRecord(*rows[0]) if rows else None

    def object_of(self, uid: str) -> Object:
        """The OptimizationJob as it was last, without secrets; of a very large one little more than its name.

        Raises:
            ValueError: it is damaged.
        """
        query = select(schema.SWEEPS.c.content).where(schema.SWEEPS.c.uid == uid)
        content = self._history.read(lambda connection: connection.scalar(query))
        found: Object = inflated(content) if content is not None else {}
        return found

    def trials(self, of: SweepRecord) -> list[TrainingRecord]:
        """The trainings of a sweep, by number; of those of one number the newest comes last.

        They are those of its namespace: who writes in another one may name any owner there.
        """
        found = self._history.trainings(Filter(sweep_uid=of.uid, namespaces=only(of.namespace)), limit=TRIALS)
        return sorted(found, key=lambda each: (each.trial or 0, each.created))

    def train_jobs(self, of: SweepRecord) -> list[Object]:
        """The TrainJobs of the trials of a sweep as they were last, where they are kept.

        Raises:
            ValueError: one is damaged.
        """
        documents, trainings = schema.DOCUMENTS.c, schema.TRAININGS.c
        query = (
            select(documents.content)
            .join(schema.TRAININGS, trainings.uid == documents.uid)
            .where(trainings.sweep_uid == of.uid, trainings.namespace == of.namespace, documents.kind == "trainjob")
            .order_by(trainings.trial, trainings.created)
            .limit(TRIALS)
        )
        contents = self._history.read(lambda connection: connection.scalars(query).all())
        return [inflated(content) for content in contents]
