"""Sweeps, and which trainings are trials of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_INDEXES = {
    "sweeps_by_time": ("sweeps", ("created", "uid")),
    "sweeps_by_name": ("sweeps", ("name", "namespace", "created", "uid")),
    "sweeps_by_namespace": ("sweeps", ("namespace", "created", "uid")),
    "sweeps_present": ("sweeps", ("cluster", "deleted")),
    "sweep_notifications_due": ("sweep_notifications", ("state", "due")),
}
_TEXTS = (
    *("cluster", "namespace", "name", "state", "reason", "message", "metric", "direction", "algorithm"),
    *("best", "value"),
)


def upgrade() -> None:
    """Make the tables, and add the columns of trials."""
    op.create_table(
        "sweeps",
        sa.Column("uid", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in _TEXTS),
        sa.Column("created", sa.Double, nullable=False),
        *(sa.Column(name, sa.Double) for name in ("started", "ended", "deleted")),
        *(sa.Column(name, sa.Integer) for name in ("trials", "running", "succeeded", "failed", "pruned")),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "sweep_notifications",
        sa.Column("uid", sa.Text, sa.ForeignKey("sweeps.uid", ondelete="CASCADE"), primary_key=True),
        sa.Column("occasion", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("text", "state")),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
    )
    for name, (table, columns) in _INDEXES.items():
        op.create_index(name, table, list(columns))
    for name in ("sweep_uid", "sweep", "assignment"):
        op.add_column("trainings", sa.Column(name, sa.Text))
    op.add_column("trainings", sa.Column("trial", sa.Integer))
    for name, first, *others in (
        ("trainings_by_sweep", "sweep", "created", "uid"),
        ("trainings_of_sweep", "sweep_uid", "trial", "uid"),
    ):
        condition = sa.text(f"{first} IS NOT NULL")
        op.create_index(name, "trainings", [first, *others], sqlite_where=condition, postgresql_where=condition)
