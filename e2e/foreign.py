"""A cluster that is not ours: what must not be there before the tests begin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster
from e2e.identity import NAMESPACE
from e2e.installation import CONFIG

LEASE = "trainer.kubeflow.org"
"""Held by whoever works on TrainJobs, the Go manager among them."""
DEPLOYMENT = "trainer-controller-manager"
"""Name of the Deployment of a manager, or its end."""
_OURS = (
    ("namespace", NAMESPACE),
    ("clusterrole", "trainer-controller-manager"),
    ("validatingwebhookconfiguration", "validator.trainer.kubeflow.org"),
    ("mutatingwebhookconfiguration", "defaulter.trainer.kubeflow.org"),
)
"""What the tests would make, and delete afterwards."""


def refuse_unless_free(cluster: Cluster) -> None:
    """End the run where another manager of TrainJobs works, or something is installed that would be deleted."""
    reasons = [*_managers(cluster), *_holders(cluster), *_installed(cluster), *_definitions(cluster)]
    if reasons:
        remedy = "set E2E_INSTALLED=1 to test the manager that config/default has installed, or choose another cluster"
        _end("there must be no other manager of TrainJobs, and nothing of ours in it", reasons, remedy)


def refuse_unless_installed(cluster: Cluster) -> None:
    """End the run where config/default has not been applied, or is not ready."""
    place = ("-n", NAMESPACE, "--ignore-not-found", "-o", "jsonpath={.metadata.name} {.status.availableReplicas}")
    name, _, available = cluster.kubectl("get", "deployment", DEPLOYMENT, *place).stdout.partition(" ")
    reasons = []
    if not available:
        reasons.append(f"Deployment {NAMESPACE}/{DEPLOYMENT} is not {'available' if name else 'there'}")
    elif cluster.get("clustertrainingruntime", "plain") is None:
        reasons.append("ClusterTrainingRuntime plain is not there, nor are perhaps the others")
    if reasons:
        remedy = "kubectl apply --server-side -k config/default, and wait until its Deployment and its Job are done"
        _end("E2E_INSTALLED says that the manager is installed", reasons, remedy)


def _end(what: str, reasons: list[str], remedy: str) -> None:
    pytest.exit("\n".join([f"the tests cannot run on this cluster: {what}", *reasons, remedy]), returncode=2)


def _managers(cluster: Cluster) -> Iterator[str]:
    for deployment in _everywhere(cluster, "deployments"):
        name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
        if name.endswith(DEPLOYMENT) and deployment["spec"].get("replicas", 1):
            yield f"Deployment {namespace}/{name} manages TrainJobs"


def _holders(cluster: Cluster) -> Iterator[str]:
    for lease in _everywhere(cluster, "leases"):
        spec = lease["spec"]
        if lease["metadata"]["name"] == LEASE and spec.get("holderIdentity") and _is_fresh(spec):
            yield f"Lease {lease['metadata']['namespace']}/{LEASE} is held by {spec['holderIdentity']}"


def _is_fresh(spec: dict[str, Any]) -> bool:
    renewed = datetime.fromisoformat(spec.get("renewTime") or "1970-01-01T00:00:00Z")
    return datetime.now(UTC) < renewed + timedelta(seconds=spec.get("leaseDurationSeconds") or 0)


def _installed(cluster: Cluster) -> Iterator[str]:
    for kind, name in _OURS:
        if cluster.get(kind, name) is not None:
            yield f"{kind} {name} exists, and would be deleted in the end"


def _definitions(cluster: Cluster) -> Iterator[str]:
    """Those of Kubeflow Trainer (Go) have the same names, and would be left as they are."""
    for ours in yaml.load_all((CONFIG / "crd/trainer.kubeflow.org.yaml").read_text(), yaml.CSafeLoader):
        name, wanted = ours["metadata"]["name"], {version["name"] for version in ours["spec"]["versions"]}
        present = cluster.get("customresourcedefinition", name)
        if present is not None and not wanted <= {each["name"] for each in present["spec"]["versions"]}:
            yield f"customresourcedefinition {name} lacks version {', '.join(sorted(wanted))}"


def _everywhere(cluster: Cluster, kind: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(cluster.kubectl("get", kind, "-A", "-o", "json").stdout)["items"]
    return items
