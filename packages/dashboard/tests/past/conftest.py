"""A history, and the cluster that it is of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from packages.dashboard.tests.conftest import UserClient
from packages.dashboard.tests.members import ClusterClient
from packages.dashboard.tests.past_trainings import KUBE_SYSTEM
from trainer_dashboard.history.database import Database
from trainer_kube_testing import ManualClock


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database with tables."""
    opened = Database(f"sqlite:///{tmp_path}/history.db")
    opened.migrate()
    yield opened
    opened.close()


@pytest.fixture
def client() -> UserClient:
    """A cluster that says which one it is."""
    return UserClient(KUBE_SYSTEM)


@pytest.fixture
def cluster() -> ClusterClient:
    return ClusterClient(KUBE_SYSTEM)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
