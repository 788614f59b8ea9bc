"""Clusters of all sorts."""

from __future__ import annotations

import pytest

from packages.sweeps.tests.controllers.cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    """An empty cluster."""
    return Cluster()


@pytest.fixture(
    params=[
        pytest.param(("v2alpha1", True), id="v2alpha1"),
        pytest.param(("v1alpha1", True), id="v1alpha1"),
        pytest.param(("v1alpha1", False), id="definition-of-go"),
    ]
)
def any_cluster(request: pytest.FixtureRequest) -> Cluster:
    """An empty cluster, of each version, and with the definition of Kubeflow Trainer (Go)."""
    version, keeps = request.param
    return Cluster(version, keeps=keeps)
