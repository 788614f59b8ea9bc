"""Who sees the metrics of a manager that runs as it ships."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request

import pytest

from e2e.cluster import Cluster
from e2e.manager import read_metrics
from e2e.waiting import until


@pytest.fixture(autouse=True)
def is_here(session_cluster: Cluster) -> None:
    """Where they are served is known."""
    if not session_cluster.configuration:
        pytest.skip("the manager of this cluster is a Deployment, whose address is not reached from here")


def code_of(cluster: Cluster, token: str) -> int:
    """What the server answers to somebody with this token; "" for none."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"https://{cluster.configuration['metrics']['bindAddress']}/metrics"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=10, context=context
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_strangers(cluster: Cluster) -> None:
    """Requests without a valid token, or of users without a role, get no metrics."""
    stranger = cluster.kubectl("create", "token", "default").stdout.strip()

    assert code_of(cluster, "") == 401
    assert code_of(cluster, "wrong") == 401
    assert code_of(cluster, stranger) == 403


def test_those_who_may(session_cluster: Cluster) -> None:
    """The role that comes with the manifests for Prometheus shows everything, by a certificate that can be verified."""
    configuration = session_cluster.configuration
    leads = 'leader_election_master_status{name="trainer.kubeflow.org"} 1.0'

    until(lambda: leads in read_metrics(session_cluster, configuration), "it leads")
    text = read_metrics(session_cluster, configuration)

    assert "# TYPE controller_runtime_reconcile_total counter" in text
