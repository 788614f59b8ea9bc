"""Lets the controller manager work under its own ServiceAccount, as config/rbac has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.cluster import Cluster

ACCOUNT = "trainer-controller-manager"
NAMESPACE = "trainer-system"


def give_identity(cluster: Cluster, configuration: Path) -> None:
    """Apply the roles of the manager, those for its webhooks aside, and write its kubeconfig.

    Args:
        cluster: where; names the file to write.
        configuration: the directory `config` of the repository.
    """
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(configuration / "manager/namespace.yaml"))
    roles = cluster.kubectl("kustomize", str(configuration / "rbac")).stdout
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-n", NAMESPACE, "-f", "-", stdin=roles)
    write_credentials(cluster)


def write_credentials(cluster: Cluster) -> None:
    """Write the kubeconfig of the manager, with a token that outlives any run of the tests."""
    token = cluster.kubectl("create", "token", ACCOUNT, "-n", NAMESPACE, "--duration=24h").stdout.strip()
    shown = cluster.kubectl("config", "view", "--minify", "--flatten", "-o", "yaml").stdout
    document = yaml.safe_load(shown)
    document["users"] = [{"name": ACCOUNT, "user": {"token": token}}]
    document["contexts"][0]["context"] |= {"user": ACCOUNT, "namespace": NAMESPACE}
    cluster.manager_kubeconfig.touch(mode=0o600)
    cluster.manager_kubeconfig.write_text(yaml.safe_dump(document))
