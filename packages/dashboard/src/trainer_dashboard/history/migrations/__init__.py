"""Migrations of the database of the history, by Alembic."""
