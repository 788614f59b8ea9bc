"""When the details of a training were forgotten whose TrainJob is still in the cluster."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column."""
    op.add_column("trainings", sa.Column("forgotten", sa.Double))
