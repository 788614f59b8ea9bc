"""An index for lists of trainings by their end."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the index."""
    op.create_index("trainings_by_end", "trainings", [sa.text("coalesce(ended, deleted)"), "uid"])
