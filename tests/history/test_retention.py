"""What is forgotten, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from anyio.to_thread import run_sync

from tests.history.test_queries import row
from trainer.history.persistence import Persistence
from trainer.history.queries import History
from trainer.history.records import put
from trainer.history.retention import DAY, Retention, RetentionOptions
from trainer.history.schema import DOCUMENTS, METADATA, TRAININGS

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from trainer.history.database import Database
    from trainer.kube.testing import ManualClock


@pytest.mark.parametrize(
    ("options", "left"),
    [
        pytest.param(RetentionOptions(), ["present", "new", "old"], id="default"),
        pytest.param(RetentionOptions(seconds=5 * DAY), ["present", "new"], id="age"),
        pytest.param(RetentionOptions(size=25_000), ["present", "new"], id="size"),
        pytest.param(RetentionOptions(size=1), ["present"], id="never what is there"),
    ],
)
async def test_retention(database: Database, clock: ManualClock, options: RetentionOptions, left: list[str]) -> None:
    """Trainings go by the time of their deletion, with all that belongs to them, and never while they are there; those
    of another cluster stay, and take no room of this one."""
    now = clock.now().timestamp()
    deleted = {"old": now - 10 * DAY, "new": now - DAY, "present": None}
    elsewhere = row("elsewhere", now - 20 * DAY, deleted=now - 15 * DAY, cluster="there")

    def fill(connection: Connection) -> None:
        here = [row(uid, now - 20 * DAY, uid, deleted=at, cluster="here") for uid, at in deleted.items()]
        put(connection, TRAININGS, [*here, elsewhere])
        uids = [*deleted, "elsewhere"]
        put(connection, DOCUMENTS, [{"uid": uid, "kind": "trainjob", "content": b"x" * 10_000} for uid in uids])

    await database.run(fill)
    await Retention(Persistence(database, clock), options, "here", clock).look()
    assert {each.uid for each in await run_sync(History(database).trainings)} == {*left, "elsewhere"}

    def documents(connection: Connection) -> int:
        return len(connection.execute(DOCUMENTS.select()).all())

    assert await database.run(documents) == len(left) + 1
    assert METADATA.tables
