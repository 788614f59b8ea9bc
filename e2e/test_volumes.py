"""Volumes at their real paths, the credentials of pods and what they are good for, with the real kubectl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from e2e.cluster import IMAGE, Cluster
from e2e.waiting import until

IN_CLUSTER = """
import asyncio, os
from pathlib import Path
from kubernetes_asyncio import client, config

async def main():
    config.load_incluster_config()
    namespace = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace").read_text()
    async with client.ApiClient() as api:
        maps = await client.CoreV1Api(api).list_namespaced_config_map(namespace)
    print("config maps:", *sorted(entry.metadata.name for entry in maps.items))

asyncio.run(main())
"""
BY_NAME = """
import ssl, urllib.request
from pathlib import Path

account = Path("/var/run/secrets/kubernetes.io/serviceaccount")
url = "https://kubernetes.default.svc/api/v1/namespaces/" + (account / "namespace").read_text() + "/configmaps"
request = urllib.request.Request(url, headers={"Authorization": "Bearer " + (account / "token").read_text()})
context = ssl.create_default_context(cafile=str(account / "ca.crt"))
print("status:", urllib.request.urlopen(request, context=context, timeout=10).status)
"""


@pytest.fixture
def volumes(cluster: Cluster) -> Cluster:
    """The cluster, if containers have a file system of their own."""
    if cluster.pod_network.startswith("plain"):
        pytest.skip("this machine allows no mount namespaces")
    return cluster


def pod(name: str, *command: str, **spec: Any) -> dict[str, Any]:
    """A pod that runs a command once; `mounts` are the volumeMounts of its container."""
    container = {"name": "main", "image": IMAGE, "command": list(command), "volumeMounts": spec.pop("mounts", [])}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container], **spec},
    }


def printed(cluster: Cluster, name: str) -> str:
    """What a pod has printed by its end, which must be a success."""

    def ended() -> str:
        found = cluster.get("pod", name)
        return (found or {"status": {}})["status"].get("phase", "") if found else ""

    phase = until(lambda: ended() in {"Succeeded", "Failed"} and ended(), f"pod {name} has ended")
    text = cluster.kubectl("logs", name).stdout
    assert phase == "Succeeded", text
    return text


def test_client_in_a_pod(volumes: Cluster) -> None:
    """An unmodified client finds the API server and its token, and may do what a role allows, nothing else."""
    volumes.kubectl("create", "configmap", "settings", "--from-literal=a=1")
    volumes.kubectl("create", "role", "reader", "--verb=list", "--resource=configmaps")
    account = f"--serviceaccount={volumes.namespace}:default"
    volumes.apply(pod("stranger", "python", "-c", IN_CLUSTER))
    until(lambda: (volumes.get("pod", "stranger") or {})["status"].get("phase") == "Failed", "the stranger is refused")
    refusal = volumes.kubectl("logs", "stranger").stdout
    assert f'User \\"system:serviceaccount:{volumes.namespace}:default\\" cannot list resource' in refusal

    volumes.kubectl("create", "rolebinding", "reader", "--role=reader", account)
    volumes.apply(pod("client", "python", "-c", IN_CLUSTER))

    assert printed(volumes, "client") == "config maps: kube-root-ca.crt settings\n"


def test_name_of_the_api_server(volumes: Cluster) -> None:
    """In a network of their own pods reach the API server by its DNS name, whose certificate is right."""
    if not volumes.pod_network.startswith("netns"):
        pytest.skip("port 443 of this machine is not the dev cluster's")
    volumes.kubectl("create", "role", "reader", "--verb=list", "--resource=configmaps")
    account = f"--serviceaccount={volumes.namespace}:default"
    volumes.kubectl("create", "rolebinding", "reader", "--role=reader", account)
    volumes.apply(pod("client", "python", "-c", BY_NAME))
    assert printed(volumes, "client") == "status: 200\n"


def test_kinds_of_volumes(volumes: Cluster, tmp_path: Path) -> None:
    """Each volume is where it was asked for: on the machine, in memory, of a claim, read-only or a part of another."""
    (tmp_path / "file").write_text("of the machine")
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    script = """
        set -e
        cat /data/host/file; echo
        touch /data/host/other 2>&1 | grep -o Read-only || true
        stat -f -c %T /data/memory
        echo kept > /data/claim/file; cat /data/claim/file
        ls /data/part; cat /data/part/name
    """
    volumes.apply(
        pod(
            "all",
            "sh",
            "-c",
            script,
            mounts=[
                {"name": "host", "mountPath": "/data/host", "readOnly": True},
                {"name": "memory", "mountPath": "/data/memory"},
                {"name": "claim", "mountPath": "/data/claim"},
                {"name": "facts", "mountPath": "/data/part", "subPath": "deep"},
            ],
            volumes=[
                {"name": "host", "hostPath": {"path": str(tmp_path), "type": "Directory"}},
                {"name": "memory", "emptyDir": {"medium": "Memory"}},
                {"name": "claim", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}},
                {
                    "name": "facts",
                    "downwardAPI": {"items": [{"path": "deep/name", "fieldRef": {"fieldPath": "metadata.name"}}]},
                },
            ],
        )
    )
    assert printed(volumes, "all").split() == ["of", "the", "machine", "Read-only", "tmpfs", "kept", "name", "all"]
    assert not (tmp_path / "other").exists()
    bound = volumes.get("pvc", "all-claim")
    assert bound is not None
    assert bound["status"]["phase"] == "Bound"
    volumes.kubectl("delete", "pod", "all")
    until(lambda: volumes.get("pvc", "all-claim") is None, "the claim has gone with its pod")
