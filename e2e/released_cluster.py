"""A cluster of Kubeflow Trainer (Go): its definitions, and this manager as config/v1alpha1 ships it, or none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from e2e import audit
from e2e.cluster import Cluster
from e2e.dev_cluster import dev_cluster
from e2e.identity import write_credentials
from e2e.installation import (
    CONFIG,
    HOST,
    WEBHOOKS,
    free_ports,
    released_roles,
    shipped_configuration,
    v1_roles,
    wait_for_trust,
    webhooks,
)
from e2e.manager import manager
from e2e.released_definitions import released_definitions

ACCOUNT, NAMESPACE = "kubeflow-trainer-controller-manager", "kubeflow-system"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
_DIRECTORY = "v1alpha1/manager"
_V1_DIRECTORY = "v1alpha1/v1"


@contextmanager
def released_cluster(directory: Path) -> Iterator[Cluster]:
    """A dev cluster with the definitions, without a manager; its files, and its audit log, are in the directory."""
    with dev_cluster(directory, environment={audit.VARIABLE: str(directory / "audit.log")}) as cluster:
        webhook, metrics, health = free_ports(3)
        cluster.configuration = shipped_configuration((webhook, metrics, health), directory=_DIRECTORY)
        cluster.belongings.create(cluster, *released_definitions())
        cluster.kubectl("wait", "--for=condition=Established", "crd/trainjobs.trainer.kubeflow.org", "--timeout=30s")
        yield cluster


def install(cluster: Cluster, *, serves_v1: bool = False) -> None:
    """The manager with its account, roles, webhooks and configuration; the definitions stay.

    Args:
        cluster: without a manager.
        serves_v1: whether it serves PyTorchJobs and JAXJobs (config/v1alpha1/v1). Default: no.
    """
    create = cluster.belongings.create
    create(cluster, *released_roles(cluster))
    if serves_v1:
        create(cluster, *yaml.load_all((CONFIG / "v1/crd/kubeflow.org.yaml").read_text(), yaml.CSafeLoader))
        create(cluster, *v1_roles(cluster, _V1_DIRECTORY))
        cluster.configuration["controllers"] = {"v1": {"enabled": True}}
    write_credentials(cluster, cluster.manager_kubeconfig, ACCOUNT, NAMESPACE)
    cluster.manager = manager(cluster, cluster.manager_kubeconfig.parent)
    for room in (_DIRECTORY, *([_V1_DIRECTORY] if serves_v1 else [])):
        create(cluster, *webhooks(cluster, f"https://{HOST}:{cluster.configuration['webhook']['port']}", room))
    cluster.manager.start(ready="started manager")
    wait_for_trust(cluster)


def remove_manager(cluster: Cluster) -> None:
    """End the manager, and have nobody ask for its admission."""
    cluster.manager.stop()
    cluster.kubectl("delete", ",".join(WEBHOOKS), "--all")
