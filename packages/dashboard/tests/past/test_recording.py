"""The recorder in the process of a dashboard."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync
from structlog.testing import capture_logs

from packages.dashboard.tests.conftest import PAGE, UserClient, running, train_job
from packages.dashboard.tests.past_trainings import CLUSTER, KUBE_SYSTEM
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.v1alpha1.discovery import V2ALPHA1
from trainer.workloads import JOBSETS
from trainer_dashboard.access.authenticator import LoopbackAuthenticator
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.queries import History
from trainer_dashboard.past.recording import Recording
from trainer_dashboard.server import Dashboard, DashboardOptions
from trainer_kube_testing import FakeClient, ManualClock


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    resources = [TRAIN_JOBS, JOBSETS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES]
    jobs = train_job("ours", namespace="team"), train_job("theirs", namespace="other")
    return FakeClient(KUBE_SYSTEM, *jobs, clock=clock, resources=resources)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.mark.parametrize(
    ("namespace", "names"),
    [pytest.param("", {"ours", "theirs"}, id="all"), pytest.param("team", {"ours"}, id="namespace")],
)
async def test_recording(
    client: FakeClient, clock: ManualClock, tmp_path: Path, namespace: str, names: set[str]
) -> None:
    """It makes the database, waits while another process records the cluster, and then records."""
    database = await run_sync(Database, f"sqlite:///{tmp_path}/state/history.db")
    recording = Recording(client, database, "https://api.example.com", clock)
    await run_sync(database.migrate)
    other = database.recording(CLUSTER)
    await run_sync(other.__enter__)
    with capture_logs() as logs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(recording.run, namespace)
            while not logs:
                await clock.advance(0.5)
            assert logs[0]["event"] == "not recording yet"
            assert "another `trainer history record` records this cluster" in logs[0]["error"]
            await run_sync(other.__exit__, None, None, None)
            history = History(database)
            while {record.name for record in await run_sync(history.trainings)} != names:
                await clock.advance(0.5)
            tasks.cancel_scope.cancel()
    assert [entry["event"] for entry in logs][-1] == "recording the history"
    await run_sync(database.close)


async def test_own_namespace(clock: ManualClock, tmp_path: Path) -> None:
    """Of a user who may not list all TrainJobs that namespace is recorded which is shown."""
    jobs = train_job("ours", namespace="team"), train_job("theirs", namespace="other")
    client = UserClient(KUBE_SYSTEM, *jobs)
    client.denied.add("list trainjobs")
    database = await run_sync(Database, f"sqlite:///{tmp_path}/history.db")
    await run_sync(database.migrate)
    options, authenticator = DashboardOptions(home="team"), LoopbackAuthenticator(client)
    recording = Recording(client, database, "", clock)
    made = Dashboard(client, V2ALPHA1, options, authenticator=authenticator, bundle=PAGE, recording=recording)
    async with running(made):
        history = History(database)
        while not (found := await run_sync(history.trainings)):
            await clock.advance(0.5)
    assert [record.name for record in found] == ["ours"]
    await run_sync(database.close)
