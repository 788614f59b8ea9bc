"""A manager that serves sweeps, in a cluster that has the kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster
from e2e.installation import CONFIG
from e2e.manager import Manager, reconfigured
from e2e.sweeps.sweep import KIND

CONFIGURATION: dict[str, Any] = {
    "progress": {"statusInterval": "200ms", "readInterval": "50ms"},
    # One that is killed here has no successor, and would have to wait for its own lease.
    "leaderElection": {"leaderElect": False},
}


@pytest.fixture(scope="module")
def manager_kubeconfig(session_cluster: Cluster) -> Path:
    """How the manager reaches the cluster; modules may have another way."""
    return session_cluster.manager_kubeconfig


@pytest.fixture(scope="module")
def manager(
    session_cluster: Cluster, manager_kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Manager]:
    """Our manager instead of that of the session: it finds the kind at its start, and sees curves sooner."""
    if session_cluster.get("crd", KIND) is None:
        definitions = yaml.load_all((CONFIG / "crd/optimizationjobs.yaml").read_text(), yaml.CSafeLoader)
        session_cluster.belongings.create(session_cluster, *definitions)
        session_cluster.kubectl("wait", "--for=condition=Established", f"crd/{KIND}", "--timeout=30s")
    cluster = replace(session_cluster, manager_kubeconfig=manager_kubeconfig)
    with reconfigured(cluster, tmp_path_factory.mktemp("sweeps"), **CONFIGURATION) as process:
        yield process
