"""Writes that the database refuses, in whole or in part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anyio.to_thread import run_sync
from sqlalchemy import Connection
from structlog.testing import capture_logs

from packages.dashboard.tests.history.test_queries import row
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.persistence import Persistence
from trainer_dashboard.history.queries import History
from trainer_dashboard.history.schema import TRAININGS
from trainer_dashboard.history.statements import put
from trainer_kube_testing import ManualClock


async def test_entries_that_cannot_be_written(database: Database, clock: ManualClock) -> None:
    """Of a batch that cannot be written all is written but the entries that cannot be written by themselves."""

    def write(connection: Connection, rows: Sequence[dict[str, Any]]) -> list[str]:
        if any(row["uid"] == "5" for row in rows):
            raise TypeError("a mistake of ours")
        put(connection, TRAININGS, rows)
        return [row["uid"] for row in rows]

    rows = [row(f"{number}", number) for number in range(7)]
    rows[2]["state"] = None
    with capture_logs() as logs:
        written = await Persistence(database, clock).write_all(write, rows, lambda row: row["uid"])
    left = ["0", "1", "3", "4", "6"]
    assert [uid for some, uids in written for uid in uids] == left
    assert [entry["uid"] for some, _ in written for entry in some] == left
    assert sorted(record.uid for record in await run_sync(History(database).trainings)) == left
    assert [(event["event"], event["object"]) for event in logs] == [
        ("could not write history", "2"),
        ("could not write history", "5"),
    ]
