"""What is to be sent by webhook, about trainings and about sweeps, as statements on a connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Table, func, literal, select, union_all, update

from trainer_dashboard.history import schema
from trainer_dashboard.history.statements import insert

_SUBJECTS: Final = {"training": schema.TRAININGS, "sweep": schema.SWEEPS}
_TABLES: Final = {"training": schema.NOTIFICATIONS, "sweep": schema.SWEEP_NOTIFICATIONS}


@dataclass(frozen=True, slots=True)
class DueNotification:
    """A notification that is to be sent."""

    about: str
    """`training` or `sweep`."""
    uid: str
    occasion: str
    text: str
    attempts: int
    """Failed ones."""


def due_row(uid: str, notification: tuple[str, str], now: float) -> dict[str, Any]:
    """The row of a notification that is due now, by its occasion and text."""
    occasion, text = notification
    return {"uid": uid, "occasion": occasion, "text": text, "state": "due", "attempts": 0, "due": now}


def save_due(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert what is not there yet, sent or not."""
    if rows:
        connection.execute(insert(connection, table).on_conflict_do_nothing(), rows)


def due_notifications(connection: Connection, cluster: str, now: float) -> list[DueNotification]:
    """The first that is due of each namespace of a cluster, so that none waits for all of another namespace."""
    waiting = union_all(
        *(
            select(literal(about).label("about"), table.c.uid, table.c.occasion, table.c.due, subject.c.namespace)
            .join(subject, subject.c.uid == table.c.uid)
            .where(table.c.state == "due", table.c.due <= now, subject.c.cluster == cluster)
            for (about, subject), table in zip(_SUBJECTS.items(), _TABLES.values(), strict=True)
        )
    ).subquery()
    order = (waiting.c.due, waiting.c.uid, waiting.c.occasion)
    turn = func.row_number().over(partition_by=waiting.c.namespace, order_by=order)
    ranked = select(waiting, turn.label("turn")).subquery()
    first = connection.execute(select(ranked).where(ranked.c.turn == 1).order_by(ranked.c.due)).all()
    return [_with_text(connection, row.about, row.uid, row.occasion) for row in first]


def note_delivery(connection: Connection, notification: DueNotification, state: str, attempts: int, due: float) -> None:
    """Say whether a notification was sent, or when to try again."""
    table = _TABLES[notification.about]
    is_it = (table.c.uid == notification.uid) & (table.c.occasion == notification.occasion)
    connection.execute(update(table).where(is_it).values(state=state, attempts=attempts, due=due))


def _with_text(connection: Connection, about: str, uid: str, occasion: str) -> DueNotification:
    table = _TABLES[about].c
    query = select(table.text, table.attempts).where(table.uid == uid, table.occasion == occasion)
    row = connection.execute(query).one()
    return DueNotification(about, uid, occasion, row.text, row.attempts)
