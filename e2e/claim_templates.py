"""ResourceClaimTemplates on a cluster without Dynamic Resource Allocation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from e2e.cluster import Cluster

CLAIM_TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": CLAIM_TEMPLATES},
    "spec": {
        "group": "resource.k8s.io",
        "scope": "Namespaced",
        "names": {"kind": "ResourceClaimTemplate", "plural": "resourceclaimtemplates"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""Stands in for the kind of a cluster with Dynamic Resource Allocation."""


@contextmanager
def claim_templates(cluster: Cluster) -> Iterator[None]:
    """Have the kind of templates of claims; it goes again where the cluster did not have it."""
    served = cluster.kubectl("api-resources", "--api-group=resource.k8s.io", "-o", "name").stdout
    if CLAIM_TEMPLATES in served.split():
        yield
        return
    try:
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(DEFINITION))
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{CLAIM_TEMPLATES}", "--timeout=30s")
        yield
    finally:
        cluster.kubectl("delete", "crd", CLAIM_TEMPLATES, "--ignore-not-found", "--timeout=60s")
