"""Kubeconfig: the file with which clients find and trust this cluster."""

from __future__ import annotations

import base64
from typing import Final

import yaml

NAME: Final = "trainer-dev"
"""Name of the context, the cluster and the user."""


def kubeconfig(url: str, token: str, ca_pem: str) -> str:
    """The text of a kubeconfig file whose only context is this cluster.

    Args:
        url: base URL of the API server.
        token: bearer token of the administrator; whoever reads the file is the administrator.
        ca_pem: the authority that signed the serving certificate.
    """
    authority = base64.b64encode(ca_pem.encode()).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": url, "certificate-authority-data": authority}}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
        "current-context": NAME,
    }
    return yaml.safe_dump(document, sort_keys=False)
