"""The history of a dashboard: what answers from it, and what records it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.clock import SystemClock

if TYPE_CHECKING:
    from trainer.dashboard.past_trainings import PastTrainings
    from trainer.dashboard.recording import Recording
    from trainer.history.database import Database
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock


def history_of(
    database: Database, client: Client, server: str, *, records: bool, clock: Clock | None = None
) -> tuple[PastTrainings, Recording | None]:
    """What answers from a database, and what records into it if wanted.

    Args:
        database: of the history; who has one has installed what these modules import.
        client: reads the cluster; its users see TrainJobs in the form of the model.
        server: the address of the API server.
        records: whether the history is recorded.
        clock: of the recorder.
    """
    from trainer.dashboard.past_trainings import PastTrainings  # noqa: PLC0415 - of an extra

    past = PastTrainings(database, client, server)
    if not records:
        return past, None
    from trainer.dashboard.recording import Recording  # noqa: PLC0415 - of an extra

    return past, Recording(client, database, server, clock or SystemClock())
