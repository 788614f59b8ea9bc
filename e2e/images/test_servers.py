"""What else the image of the manager starts: the dashboard, and the recorder of the history."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.cluster import Cluster, train_job
from e2e.dashboard_server import running_dashboard_server
from e2e.images.container import Container, give
from e2e.installation import CONFIG
from e2e.test_history import ACCOUNT_NAMESPACE, RIGHTS, Recorded
from e2e.waiting import until

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def image(container: Callable[[str], Container], cluster: Cluster) -> Container:
    """The image of the manager."""
    cluster.require_local("its servers in containers of this machine")
    return container("manager")


def test_dashboard(image: Container, cluster: Cluster, tmp_path: Path) -> None:
    """It is healthy and ready, and asks who somebody is."""

    def started(arguments: list[str]) -> list[str]:
        give(tmp_path)
        return image.command(*arguments, reads=[tmp_path])

    with running_dashboard_server(cluster, tmp_path, program=started) as server:
        server.health_seconds()
        assert server.status("GET", "/", "") == 200
        assert server.status("GET", "/api/cluster", "nobody") == 401


def test_recorder(image: Container, cluster: Cluster, tmp_path: Path) -> None:
    """It is healthy, and writes what it sees to its volume and nowhere else."""
    cluster.kubectl("create", "namespace", ACCOUNT_NAMESPACE, check=False)
    for file in RIGHTS:
        path = str(CONFIG / "history" / f"{file}.yaml")
        cluster.kubectl("apply", "--server-side", "-n", ACCOUNT_NAMESPACE, "-f", path)
    recorded = Recorded(cluster, tmp_path)
    volume = tmp_path / "state" / "trainer"
    volume.mkdir(parents=True)
    give(tmp_path)
    environment = {"TRAINER_HISTORY_DATABASE": f"sqlite:///{volume}/history.db"}
    recorded.environment |= environment
    recorded.process.command = image.command(
        *recorded.process.command[1:], environment=environment, reads=[tmp_path], writes=[volume]
    )
    before = image.files()
    recorded.start()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{recorded.port}/healthz", timeout=20) as answer:
            assert answer.status == 200
        cluster.apply(train_job("recorded", "print('trained')"))
        until(lambda: [each["state"] for each in recorded.list()] == ["Complete"], lambda: f"{recorded.list()}")
    finally:
        recorded.process.stop()
        for file in reversed(RIGHTS):
            path = str(CONFIG / "history" / f"{file}.yaml")
            cluster.kubectl("delete", "-n", ACCOUNT_NAMESPACE, "--ignore-not-found", "-f", path)
    assert image.files() == before
