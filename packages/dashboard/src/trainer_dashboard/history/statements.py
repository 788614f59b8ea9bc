"""Statements that SQLite and PostgreSQL know alike, and SQLAlchemy has for each by itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def put(connection: Connection, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    """Insert rows, or replace those of the same keys; the last of several with one key counts."""
    keys = [column.name for column in table.primary_key]
    unique = {tuple(row[key] for key in keys): row for row in rows}
    if not unique:
        return
    statement = insert(connection, table)
    others = {name: statement.excluded[name] for name in table.c.keys() if name not in keys}  # noqa: SIM118 - columns
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=others), list(unique.values()))


def insert(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """An INSERT in the dialect of the database; both know the same clauses for conflicts."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)
