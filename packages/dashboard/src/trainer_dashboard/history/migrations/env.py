"""Runs migrations on the connection that `Database.migrate` has opened."""

from __future__ import annotations

from alembic import context

from trainer_dashboard.history.schema import METADATA

if hasattr(context, "config"):  # which it has while Alembic runs this file
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, target_metadata=METADATA, transactional_ddl=True)
    context.run_migrations()
