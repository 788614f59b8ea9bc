"""Starts what the tests drive: a dev cluster, or the cluster of $E2E_KUBECONFIG, and always our controller manager.

The cluster of $E2E_KUBECONFIG needs JobSet, must not run another manager of TrainJobs, and is expected to pull IMAGE.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e.cluster import BIN, Cluster
from e2e.identity import give_identity
from e2e.processes import Process
from e2e.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIG = Path(__file__).parents[1] / "config"


@pytest.fixture(scope="session")
def session_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster with CRDs, runtimes and a running manager; its dev cluster, if any, lives as long as the session."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@contextmanager
def running_cluster(directory: Path, *options: str) -> Iterator[Cluster]:
    """A cluster with CRDs, runtimes and a running manager, until it is left.

    Args:
        directory: where its files go.
        options: what `trainer cluster` is told besides, for a dev cluster.
    """
    foreign = os.environ.get("E2E_KUBECONFIG")
    kubeconfig = Path(foreign) if foreign else directory / "kubeconfig"
    trainer = str(BIN / "trainer")
    command = [trainer, "cluster", "--data-dir", str(directory / "data"), "--kubeconfig", str(kubeconfig), *options]
    dev_cluster = Process(command, directory / "cluster.log")
    own = directory / "manager.kubeconfig"
    manager = Process([trainer, "manager", "--kubeconfig", str(own)], directory / "manager.log")
    cluster = Cluster(kubeconfig, own, is_local=not foreign, pod_network="", manager=manager)
    try:
        if not foreign:
            dev_cluster.start(ready="cluster ready: https://127.0.0.1:")
            node = until(lambda: cluster.get("node", "laptop"), "the kubelet has registered its node")
            cluster.pod_network = node["metadata"]["annotations"]["devcluster.trainer/pod-network"]
        crds = subprocess.run([trainer, "crds"], capture_output=True, text=True, check=True).stdout
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=crds)
        cluster.kubectl("wait", "--for=condition=Established", "crd/trainjobs.trainer.kubeflow.org", "--timeout=30s")
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(CONFIG / "runtimes"))
        give_identity(cluster, CONFIG)
        manager.start(ready="started manager")
        yield cluster
    finally:
        manager.stop()
        dev_cluster.stop()


@pytest.fixture
def cluster(session_cluster: Cluster) -> Iterator[Cluster]:
    """An empty namespace of the cluster, which is deleted afterwards."""
    own = replace(session_cluster, namespace=f"e2e-{uuid.uuid4().hex[:8]}")
    session_cluster.kubectl("create", "namespace", own.namespace)
    yield own
    session_cluster.kubectl("delete", "namespace", own.namespace, "--timeout=60s")
