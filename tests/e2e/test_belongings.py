"""Cleaning up in a cluster of other people."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.belongings import Belongings
from e2e.cluster import Cluster
from e2e.manager import Manager


@dataclass(slots=True)
class StuckCluster(Cluster):
    """An API server that does not answer when the first of two objects is deleted."""

    deleted: list[str] = field(default_factory=list)

    def kubectl(
        self, *arguments: str, check: bool = True, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        name = yaml.safe_load(stdin)["metadata"]["name"] if stdin else arguments[1]
        if name == "stuck":
            raise subprocess.TimeoutExpired(["kubectl", *arguments], 90)
        self.deleted.append(name)
        return subprocess.CompletedProcess(arguments, 0, "", "")


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def test_a_request_that_is_not_answered() -> None:
    """It is reported in the end, and the rest is deleted."""
    cluster = StuckCluster(
        Path("none"), Path("none"), is_local=False, pod_network="", manager=Manager([], Path("none"))
    )
    belongings = Belongings(run="1", created=[config_map("first"), config_map("stuck"), config_map("last")])
    with pytest.raises(AssertionError, match=r"could not be deleted:\n.*timed out"):
        belongings.remove(cluster)
    assert cluster.deleted == ["namespace", "clustertrainingruntime", "last", "first"]
