"""What retention does to the tables: trainings that are gone go, and the details of those that are there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, func, or_, select, update

from trainer_dashboard.history import schema

_OF_ROWS = 1000
"""Bytes that a row of a training counts for, with what little else belongs to it."""
_AT_ONCE = 500
"""Values in one condition IN; databases allow some thousands."""
_DETAILS = (schema.DOCUMENTS, schema.EVENTS, schema.LOG_TAILS, schema.METRIC_CHUNKS)


def measure(connection: Connection, cluster: str) -> dict[str, int]:
    """Count the bytes of a cluster's trainings that may still grow, and return those of all, by namespace."""
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
    rows = connection.execute(total.group_by(trainings.c.namespace))
    return {str(row[0]): int(row[1]) for row in rows}


def forget_older(connection: Connection, cluster: str, moment: float, now: float, limit: int) -> int:
    """Forget trainings of a cluster that were over before a moment, at most so many; returns how many."""
    query = _oldest(cluster, limit).where(moment > _OVER)
    return _forget(connection, connection.execute(query).all(), now)


def forget_bytes(
    connection: Connection, *, cluster: str, namespace: str, excess: int, now: float, limit: int
) -> tuple[int, int]:
    """Forget trainings of a namespace that were over first, of so many bytes together; returns number and bytes."""
    some, freed = [], 0
    for row in connection.execute(_oldest(cluster, limit).where(schema.TRAININGS.c.namespace == namespace)):
        if freed >= excess:
            break
        some.append(row)
        freed += row.size if row.deleted is not None else max(row.size - _OF_ROWS, 0)
    return _forget(connection, some, now), freed


def forget_cluster(connection: Connection, cluster: str) -> int:
    """Delete all trainings of a cluster, and return their room; returns how many they were."""
    count = connection.execute(delete(schema.TRAININGS).where(schema.TRAININGS.c.cluster == cluster)).rowcount
    give_back(connection)
    return count


_OVER: ColumnElement[Any] = func.coalesce(schema.TRAININGS.c.ended, schema.TRAININGS.c.deleted)
"""When a training ended; when it was deleted, if that was before its end."""


def _oldest(cluster: str, limit: int) -> Select[Any]:
    """Trainings that still have something to forget, those that were over first."""
    table = schema.TRAININGS.c
    has_something = or_(table.deleted.is_not(None), table.forgotten.is_(None))
    query = select(table.uid, table.deleted, table.size)
    return query.where(table.cluster == cluster, _OVER.is_not(None), has_something).order_by(_OVER).limit(limit)


def _forget(connection: Connection, rows: Iterable[Row[Any]], now: float) -> int:
    """Forget those that are gone, and of those that are there all but the row, so that nothing is recorded again."""
    gone: list[str] = []
    present: list[str] = []
    for row in rows:
        (present if row.deleted is None else gone).append(row.uid)
    table = schema.TRAININGS
    for start in range(0, len(gone), _AT_ONCE):
        connection.execute(delete(table).where(table.c.uid.in_(gone[start : start + _AT_ONCE])))
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
