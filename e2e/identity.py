"""The ServiceAccount under which the controller manager works, as in config/rbac."""

from __future__ import annotations

from pathlib import Path

import yaml

from e2e.kubectl import Kubectl

ACCOUNT = "trainer-controller-manager"
NAMESPACE = "trainer-system"


def write_credentials(kubectl: Kubectl, file: Path, account: str = ACCOUNT, namespace: str = NAMESPACE) -> None:
    """Write the kubeconfig of the manager, with a token that outlives any run of the tests."""
    token = kubectl.kubectl("create", "token", account, "-n", namespace, "--duration=24h").stdout.strip()
    shown = kubectl.kubectl("config", "view", "--minify", "--flatten", "-o", "yaml").stdout
    document = yaml.safe_load(shown)
    document["users"] = [{"name": account, "user": {"token": token}}]
    document["contexts"][0]["context"] |= {"user": account, "namespace": namespace}
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(document))
