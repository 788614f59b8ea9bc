"""Two replicas for all failure tests, and what must be true after each."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from e2e.leftovers import delete_everything, orphans
from e2e.replicas import Replicas, running_replicas
from e2e.waiting import until


@pytest.fixture(scope="package")
def package_replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """The cluster and its two managers, as long as tests of this package run."""
    if "E2E_KUBECONFIG" in os.environ:
        pytest.skip("kills processes of the dev cluster")
    with running_replicas(tmp_path_factory.mktemp("replicas")) as running:
        yield running


@pytest.fixture
def replicas(package_replicas: Replicas) -> Iterator[Replicas]:
    """Both replicas, with an empty namespace; afterwards nothing may be lost and nothing left."""
    everywhere = package_replicas.cluster
    cluster = replace(everywhere, namespace=f"e2e-{uuid.uuid4().hex[:8]}")
    everywhere.kubectl("create", "namespace", cluster.namespace)
    package_replicas.revive()
    until(lambda: package_replicas.leader, "one of them leads")
    yield replace(package_replicas, cluster=cluster)
    _check(package_replicas, cluster.namespace)


def _check(replicas: Replicas, namespace: str) -> None:
    """The holder of the lease runs, no manager has failed, and every object belongs to a TrainJob."""
    cluster = replace(replicas.cluster, namespace=namespace)
    assert replicas.leader.is_running
    for each in replicas.both:
        assert "Traceback" not in each.everything(), each.everything()
    until(lambda: not orphans(cluster), f"everything in {namespace} has an owner")
    delete_everything(cluster)
    cluster.kubectl("delete", "namespace", namespace, "--timeout=60s")
