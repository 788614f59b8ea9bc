"""What retention does to the tables: trainings that are gone go, and the details of those that are there.

Trials stay while their sweep runs, unless all takes too much room; a sweep that is gone goes with its last trial.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, exists, func, or_, select, update

from trainer_dashboard.history import schema

_OF_ROWS = 1000
"""Bytes that a row of a training counts for, with what little else belongs to it."""
_AT_ONCE = 500
"""Values in one condition IN; databases allow some thousands."""
_DETAILS = (schema.DOCUMENTS, schema.EVENTS, schema.LOG_TAILS, schema.METRIC_CHUNKS)


def measure(connection: Connection, cluster: str) -> dict[str, int]:
    """Count the bytes of a cluster's trainings that may grow; return those of all, and of sweeps, by namespace."""
    trainings = schema.TRAININGS
    size: Any = _OF_ROWS
    for table in _DETAILS:
        column = table.c.message if table is schema.EVENTS else table.c.content
        total = select(func.sum(func.length(column))).where(table.c.uid == trainings.c.uid)
        size = size + func.coalesce(total.scalar_subquery(), 0)
    may_grow = (trainings.c.deleted.is_(None) & trainings.c.forgotten.is_(None)) | (trainings.c.size == 0)
    is_of_cluster = trainings.c.cluster == cluster
    connection.execute(update(trainings).where(is_of_cluster, may_grow).values(size=size))
    total = select(trainings.c.namespace, func.sum(trainings.c.size)).where(is_of_cluster)
    sizes = {str(row[0]): int(row[1]) for row in connection.execute(total.group_by(trainings.c.namespace))}
    sweeps = schema.SWEEPS.c
    of_sweeps = select(sweeps.namespace, func.sum(func.length(sweeps.content) + _OF_ROWS))
    for row in connection.execute(of_sweeps.where(sweeps.cluster == cluster).group_by(sweeps.namespace)):
        sizes[str(row[0])] = sizes.get(str(row[0]), 0) + int(row[1])
    return sizes


def forget_older(connection: Connection, cluster: str, moment: float, now: float, limit: int) -> int:
    """Forget trainings of a cluster that were over before a moment, at most so many; returns how many."""
    query = _over(cluster).where(moment > _OVER, ~_RUNS).order_by(_OVER).limit(limit)
    number = _forget(connection, connection.execute(query).all(), now)
    if number < limit:
        sweeps = schema.SWEEPS
        is_over = func.coalesce(sweeps.c.ended, sweeps.c.deleted) < moment
        connection.execute(delete(sweeps).where(sweeps.c.cluster == cluster, is_over, _IS_ALONE))
    return number


def forget_bytes(
    connection: Connection, *, cluster: str, namespace: str, excess: int, now: float, limit: int
) -> tuple[int, int]:
    """Forget trainings of a namespace that were over first, of so many bytes together; returns number and bytes.

    Trials of sweeps that run come last: a sweep that is suspended would else keep any number of them.
    """
    some: list[Row[Any]] = []
    freed = 0
    query = _over(cluster).where(schema.TRAININGS.c.namespace == namespace).order_by(_OVER).limit(limit)
    # One after the other, so that an index gives the order.
    for row in (row for which in (~_RUNS, _RUNS) for row in connection.execute(query.where(which))):
        if freed >= excess or len(some) == limit:
            break
        some.append(row)
        freed += row.size if row.deleted is not None else max(row.size - _OF_ROWS, 0)
    return _forget(connection, some, now), freed


def forget_cluster(connection: Connection, cluster: str) -> int:
    """Delete all trainings and sweeps of a cluster, and return their room; returns how many trainings."""
    count = connection.execute(delete(schema.TRAININGS).where(schema.TRAININGS.c.cluster == cluster)).rowcount
    connection.execute(delete(schema.SWEEPS).where(schema.SWEEPS.c.cluster == cluster))
    give_back(connection)
    return count


_OVER: ColumnElement[Any] = func.coalesce(schema.TRAININGS.c.ended, schema.TRAININGS.c.deleted)
"""When a training ended; when it was deleted, if that was before its end."""

_RUNS: ColumnElement[bool] = exists().where(
    schema.SWEEPS.c.uid == schema.TRAININGS.c.sweep_uid,
    schema.SWEEPS.c.ended.is_(None),
    schema.SWEEPS.c.deleted.is_(None),
)
"""Whether the sweep of a training has not ended."""
_IS_ALONE: ColumnElement[bool] = schema.SWEEPS.c.deleted.is_not(None) & ~exists().where(
    schema.TRAININGS.c.sweep_uid == schema.SWEEPS.c.uid
)
"""Whether a sweep is gone, and so are all its trials."""


def _over(cluster: str) -> Select[Any]:
    """Trainings that are over, and still have something to forget."""
    table = schema.TRAININGS.c
    has_something = or_(table.deleted.is_not(None), table.forgotten.is_(None))
    query = select(table.uid, table.deleted, table.size, table.sweep_uid)
    return query.where(table.cluster == cluster, _OVER.is_not(None), has_something)


def _forget(connection: Connection, rows: Iterable[Row[Any]], now: float) -> int:
    """Forget those that are gone, and of those that are there all but the row, so that nothing is recorded again."""
    gone: list[str] = []
    present: list[str] = []
    sweeps: set[str] = set()
    for row in rows:
        (present if row.deleted is None else gone).append(row.uid)
        if row.deleted is not None and row.sweep_uid is not None:
            sweeps.add(row.sweep_uid)
    table = schema.TRAININGS
    for start in range(0, len(gone), _AT_ONCE):
        connection.execute(delete(table).where(table.c.uid.in_(gone[start : start + _AT_ONCE])))
    for uid in sweeps:
        connection.execute(delete(schema.SWEEPS).where(schema.SWEEPS.c.uid == uid, _IS_ALONE))
    for start in range(0, len(present), _AT_ONCE):
        some = present[start : start + _AT_ONCE]
        # First the row, which others lock while they write its details.
        connection.execute(update(table).where(table.c.uid.in_(some)).values(forgotten=now, size=_OF_ROWS))
        for details in _DETAILS:
            connection.execute(delete(details).where(details.c.uid.in_(some)))
    return len(gone) + len(present)


def give_back(connection: Connection) -> None:
    """Return the room of what was forgotten to the file system; PostgreSQL does so by itself."""
    if connection.dialect.name == "sqlite":
        cursor = connection.connection.cursor()
        cursor.execute("PRAGMA incremental_vacuum")
        cursor.fetchall()  # each step frees one page; SQLAlchemy takes the statement for one without rows
        cursor.close()
