"""What is written of sweeps, as statements on a connection; each may be repeated and then changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from trainer.kube.cache.cached_object import CachedObject
from trainer_dashboard.history import schema
from trainer_dashboard.history.content import compressed, without_secrets
from trainer_dashboard.history.deliveries import due_row, save_due
from trainer_dashboard.history.statements import put
from trainer_dashboard.history.sweep import sweep_row_of
from trainer_dashboard.history.trial import sweep_without_secrets


@dataclass(frozen=True, slots=True)
class PreparedSweep:
    """One OptimizationJob as the database gets it, made before a transaction, for which others wait."""

    row: dict[str, Any]
    notification: tuple[str, str] | None = None
    """Occasion and text of what is to be sent."""


def prepared_sweep(sweep: CachedObject, deleted: float | None, notification: tuple[str, str] | None) -> PreparedSweep:
    """What is to be written of an OptimizationJob, without secrets and compressed; takes a processor some time."""
    obj = sweep.decode()
    content = compressed(without_secrets(sweep_without_secrets(obj)))
    return PreparedSweep(sweep_row_of(obj) | {"deleted": deleted, "content": content}, notification)


def save_sweeps(connection: Connection, sweeps: Sequence[PreparedSweep], *, cluster: str, now: float) -> None:
    """Insert or replace rows, and note what is to be sent."""
    put(connection, schema.SWEEPS, [each.row | {"cluster": cluster} for each in sweeps])
    notified = [(each.row["uid"], each.notification) for each in sweeps]
    rows = [due_row(uid, notification, now) for uid, notification in notified if notification is not None]
    save_due(connection, schema.SWEEP_NOTIFICATIONS, rows)


def present_sweeps(connection: Connection, cluster: str, namespace: str | None) -> dict[str, str]:
    """The last states of the sweeps of a cluster that were there, by uid."""
    table = schema.SWEEPS.c
    query = select(table.uid, table.state).where(table.cluster == cluster, table.deleted.is_(None))
    if namespace is not None:
        query = query.where(table.namespace == namespace)
    return {row.uid: row.state for row in connection.execute(query)}


def mark_sweeps_deleted(connection: Connection, uids: Collection[str], now: float) -> None:
    """Say of sweeps that they are gone, without having seen when."""
    table = schema.SWEEPS
    statement = update(table).where(table.c.uid == bindparam("key"), table.c.deleted.is_(None)).values(deleted=now)
    if uids:
        connection.execute(statement, [{"key": uid} for uid in uids])
