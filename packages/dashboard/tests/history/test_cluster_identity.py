"""The identity of a cluster in the history."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from trainer.kube.errors import ForbiddenError
from trainer.kube.resource import NAMESPACES
from trainer_dashboard.history.cluster_identity import cluster_of
from trainer_kube_testing import FakeClient

SERVER = "https://api.example.com"


@pytest.mark.parametrize(
    ("is_allowed", "cluster", "warnings"),
    [pytest.param(True, "its-uid", 0, id="uid"), pytest.param(False, SERVER, 1, id="address")],
)
async def test_cluster_of(is_allowed: bool, cluster: str, warnings: int) -> None:
    """It is the uid of a namespace; where that may not be read, the log says that others know it by another name."""
    client = FakeClient(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "its-uid"}}
    )
    if not is_allowed:
        client.faults.fail(ForbiddenError(403, "you may not get it"), resource=NAMESPACES)
    with capture_logs() as logs:
        assert await cluster_of(client, SERVER) == cluster
    assert [(entry["log_level"], entry["server"]) for entry in logs] == [("warning", SERVER)] * warnings
