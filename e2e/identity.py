"""The ServiceAccount under which the controller manager works, as in config/rbac."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def token_of(kubectl: Kubectl, account: str, *rules: dict[str, Any]) -> str:
    """The token of a new ServiceAccount with these rights in the namespace."""
    metadata = {"metadata": {"name": account}}
    objects: list[dict[str, Any]] = [{"apiVersion": "v1", "kind": "ServiceAccount", **metadata}]
    if rules:
        subject = {"kind": "ServiceAccount", "name": account, "namespace": kubectl.namespace}
        objects += role(account, subject, *rules)
    kubectl.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    return kubectl.kubectl("create", "token", account).stdout.strip()


def role(name: str, subject: dict[str, Any], *rules: dict[str, Any]) -> list[dict[str, Any]]:
    """A Role, and its binding to a subject."""
    group = "rbac.authorization.k8s.io"
    reference = {"apiGroup": group, "kind": "Role", "name": name}
    common = {"apiVersion": f"{group}/v1", "metadata": {"name": name}}
    return [
        {**common, "kind": "Role", "rules": list(rules)},
        {**common, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]},
    ]
