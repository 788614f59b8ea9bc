"""The kinds of gang schedulers, which the dev cluster stands in for once it has them (`--gang-schedulers`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.cluster import Cluster
from e2e.kubectl import Kubectl

COSCHEDULING = "podgroups.scheduling.x-k8s.io"
VOLCANO = "podgroups.scheduling.volcano.sh"

_FILES = {COSCHEDULING: "coscheduling.yaml", VOLCANO: "volcano.yaml"}
_DIRECTORY = Path(__file__).parents[1] / "packages" / "devcluster" / "src" / "trainer_devcluster" / "scheduler" / "data"


def install(cluster: Kubectl, kind: str) -> None:
    """Have this kind."""
    cluster.kubectl("apply", "-f", str(_DIRECTORY / _FILES[kind]))
    cluster.kubectl("wait", "--for=condition=Established", f"crd/{kind}", "--timeout=30s")


@contextmanager
def installed(cluster: Cluster, *kinds: str) -> Iterator[None]:
    """Have these kinds; those that the cluster did not have go again."""
    lacking = [kind for kind in kinds if cluster.get("crd", kind) is None]
    try:
        for kind in lacking:
            install(cluster, kind)
        yield
    finally:
        if lacking:
            cluster.kubectl("delete", "crd", *lacking, "--ignore-not-found", "--timeout=60s")
