"""Dev clusters that tests start for themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.cluster import Cluster
from e2e.kubectl import BIN
from e2e.manager import Manager
from e2e.processes import Process
from e2e.waiting import until


@contextmanager
def dev_cluster(directory: Path, *options: str, environment: dict[str, str] | None = None) -> Iterator[Cluster]:
    """A dev cluster with nothing of ours installed, until it is left; its manager, if it gets one, ends before it.

    Args:
        directory: where its files go.
        options: further options of `trainer cluster`.
        environment: variables of its process besides.
    """
    kubeconfig = directory / "kubeconfig"
    command = [str(BIN / "trainer"), "cluster", "--data-dir", str(directory / "data"), "--kubeconfig", str(kubeconfig)]
    process = Process([*command, *options], directory / "cluster.log", environment or {})
    manager = Manager([], directory / "manager.log")
    credentials = directory / "manager.kubeconfig"
    cluster = Cluster(kubeconfig, credentials, is_local=True, pod_network="", manager=manager)
    try:
        process.start(ready="cluster ready: https://127.0.0.1:")
        node = until(lambda: cluster.get("node", "laptop"), "the kubelet has registered its node")
        cluster.pod_network = node["metadata"]["annotations"]["devcluster.trainer/pod-network"]
        yield cluster
    finally:
        cluster.manager.stop()
        process.stop()
