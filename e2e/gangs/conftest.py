"""Clusters that place gangs: dev clusters with the feature gates for it, or the cluster of $E2E_KUBECONFIG."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from e2e.cluster import Cluster
from e2e.conftest import running_cluster
from e2e.gangs.pod_groups import served_version
from e2e.gangs.slots import Slots, slots_of

GATES = (
    "GenericWorkload=true",
    "GangScheduling=true",
    "TopologyAwareWorkloadScheduling=true",
    "WorkloadAwarePreemption=true",
    "ElasticJobSet=true",
)
"""Of kube-apiserver, kube-controller-manager and kube-scheduler; the last one of JobSet."""


@pytest.fixture(scope="package")
def fake_pods(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster where nothing depends on what pods do: on this machine they are fake, and kinds are listed first."""
    gates = ",".join([*GATES, "WatchList=false"])
    options = ("--fake-pods", "--feature-gates", gates, "--gang-schedulers", "coscheduling")
    yield from _cluster(request, tmp_path_factory, *options)


@pytest.fixture(scope="package")
def real_pods(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose pods run their commands."""
    yield from _cluster(request, tmp_path_factory, "--feature-gates", ",".join(GATES))


def _cluster(request: pytest.FixtureRequest, directories: pytest.TempPathFactory, *options: str) -> Iterator[Cluster]:
    if "E2E_KUBECONFIG" not in os.environ:
        with running_cluster(directories.mktemp("gangs"), *options) as own:
            yield own
        return
    foreign: Cluster = request.getfixturevalue("session_cluster")
    if not served_version(foreign):
        pytest.skip(
            "this cluster serves no PodGroups of scheduling.k8s.io: feature gates GenericWorkload, GangScheduling"
        )
    yield foreign


@pytest.fixture
def slots(cluster: Cluster) -> Iterator[Slots]:
    """Room for the pods of one test."""
    with slots_of(cluster) as own:
        yield own
