"""The first tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_TIME = ("created", "uid")
_INDEXES = {
    "trainings_by_time": ("trainings", _TIME),
    "trainings_by_name": ("trainings", ("name", "namespace", *_TIME)),
    "trainings_by_namespace": ("trainings", ("namespace", *_TIME)),
    "trainings_by_state": ("trainings", ("state", *_TIME)),
    "trainings_by_namespace_and_state": ("trainings", ("namespace", "state", *_TIME)),
    "trainings_by_runtime": ("trainings", ("runtime", *_TIME)),
    "trainings_present": ("trainings", ("cluster", "deleted")),
    "notifications_due": ("notifications", ("state", "due")),
}
_TEXTS = (
    *("cluster", "namespace", "name", "state", "reason", "message"),
    *("runtime_kind", "runtime", "runtime_version", "image", "creator", "metrics"),
)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "trainings",
        sa.Column("uid", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in _TEXTS),
        sa.Column("created", sa.Double, nullable=False),
        *(sa.Column(name, sa.Double) for name in ("started", "ended", "deleted")),
        *(sa.Column(name, sa.Integer) for name in ("nodes", "progress")),
        sa.Column("size", sa.BigInteger, nullable=False),
    )
    _create("documents", _key("kind"), _bytes("content"))
    _create("events", _key("event"), *map(_text, ("last", "type", "reason", "object", "message")))
    _create(
        "log_tails",
        _key("node"),
        _key("container"),
        *map(_text, ("pod", "run")),
        *(sa.Column(name, sa.Boolean, nullable=False) for name in ("is_training", "is_primary")),
        _bytes("content"),
    )
    _create(
        "metric_logs",
        *map(_text, ("pod", "container", "position")),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("run", "chunks")),
        sa.Column("is_done", sa.Boolean, nullable=False),
    )
    numbers = (sa.Column(name, sa.Integer, primary_key=True) for name in ("run", "number"))
    _create("metric_chunks", *numbers, _bytes("content"))
    _create(
        "notifications",
        _key("occasion"),
        *map(_text, ("text", "state")),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
    )
    for name, (table, columns) in _INDEXES.items():
        op.create_index(name, table, list(columns))


def _create(name: str, *columns: sa.Column[Any]) -> None:
    """A table of rows that belong to a training, and go with it."""
    of_training = sa.Column("uid", sa.Text, sa.ForeignKey("trainings.uid", ondelete="CASCADE"), primary_key=True)
    op.create_table(name, of_training, *columns)


def _key(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, primary_key=True)


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, nullable=False)


def _bytes(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.LargeBinary, nullable=False)
