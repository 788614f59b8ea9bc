"""The Helm chart on an empty cluster, with Helm itself: in place of the released one, upgraded, and uninstalled."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.dev_cluster import dev_cluster
from e2e.helm import IS_INSTALLED, helm
from e2e.kubectl import Kubectl
from e2e.waiting import until

RELEASE = "kubeflow-trainer"
MANAGER = "kubeflow-trainer-controller-manager"
DEFINITIONS = ("clustertrainingruntimes", "trainingruntimes", "trainjobs")
V1_DEFINITIONS = ("jaxjobs.kubeflow.org", "pytorchjobs.kubeflow.org")
SELECTOR = {
    "app.kubernetes.io/name": "kubeflow-trainer",
    "app.kubernetes.io/instance": RELEASE,
    "app.kubernetes.io/part-of": "kubeflow",
    "app.kubernetes.io/component": "manager",
}
"""As released; nobody can change it."""
LARGEST_SECRET = 1 << 20
VALUES: dict[str, Any] = {"apiVersion": "v1alpha1", "webhook": {"failurePolicy": "Ignore"}}
"""The version of the released chart; the dev cluster makes no pods of a Deployment, so that nobody answers webhooks."""

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="it needs a cluster on which nothing is installed"),
    pytest.mark.skipif(not IS_INSTALLED, reason="helm-python-sdk is not installed"),
    pytest.mark.timeout(240),
]


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    """Of a dev cluster with nothing installed."""
    with dev_cluster(tmp_path) as cluster:
        yield Kubectl(cluster.kubeconfig, namespace="kubeflow-system")


def test_a_release_from_its_beginning_to_its_end(kubectl: Kubectl, tmp_path: Path) -> None:
    """It takes the place of the Go manager, leaves what that has written, and keeps version, CRDs and runtimes."""
    helm(kubectl, "install", RELEASE, released_chart(tmp_path))
    kubectl.kubectl("annotate", "configmap/jobset-manager-config", "helm.sh/resource-policy=keep")
    before = found(kubectl, "deployment", MANAGER)

    helm(
        kubectl, "upgrade", RELEASE, **VALUES, runtimes={"defaultEnabled": False, "torchDistributed": {"enabled": True}}
    )

    deployment = found(kubectl, "deployment", MANAGER)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert deployment["metadata"]["uid"] == before["metadata"]["uid"]
    assert deployment["spec"]["selector"]["matchLabels"] == before["spec"]["selector"]["matchLabels"] == SELECTOR
    assert container["image"].startswith("trainer-operator:")
    assert {"jobset-manager-config", "kubeflow-trainer-public"} <= names(kubectl, "configmap")
    assert "kubeflow-trainer-config" not in names(kubectl, "configmap")
    assert names(kubectl, "clustertrainingruntime") == {"torch-distributed"}
    assert names(kubectl, "job") == set()
    assert stored_release(kubectl, 2) < LARGEST_SECRET

    with pytest.raises(AssertionError, match="stored as v1alpha1, which v2alpha1 cannot take over"):
        helm(kubectl, "upgrade", RELEASE, crds={"enabled": False})
    assert names(kubectl, "deployment") == {MANAGER}

    write_as_the_manager(kubectl)
    runtimes = {"defaultEnabled": False, "jaxDistributed": {"enabled": True}}
    v1_jobs = {"v1": {"enabled": True}}
    helm(kubectl, "upgrade", RELEASE, **VALUES, manager={"replicas": 1}, runtimes=runtimes, controllers=v1_jobs)

    assert stored_release(kubectl, 3) < LARGEST_SECRET
    assert set(V1_DEFINITIONS) <= names(kubectl, "customresourcedefinition")
    assert found(kubectl, "validatingwebhookconfiguration", "validator.kubeflow-v1.trainer.kubeflow.org")
    assert found(kubectl, "deployment", MANAGER)["spec"]["replicas"] == 1
    assert found(kubectl, "secret", "kubeflow-trainer-webhook-cert")["data"]["tls.crt"]
    configuration = found(kubectl, "validatingwebhookconfiguration", "validator.trainer.kubeflow.org")
    assert configuration["webhooks"][0]["clientConfig"]["caBundle"]

    helm(kubectl, "uninstall", RELEASE)

    until(lambda: kubectl.get("deployment", MANAGER) is None, "the Deployment is gone")
    assert {f"{name}.trainer.kubeflow.org" for name in DEFINITIONS} <= names(kubectl, "customresourcedefinition")
    assert set(V1_DEFINITIONS) <= names(kubectl, "customresourcedefinition")
    assert names(kubectl, "clustertrainingruntime") == {"jax-distributed", "torch-distributed"}
    for kind in ("clusterrole", "clusterrolebinding", "validatingwebhookconfiguration", "mutatingwebhookconfiguration"):
        assert {name for name in names(kubectl, kind) if "trainer" in name} == set()


def released_chart(directory: Path) -> Path:
    """A chart with the names and labels of the released one, and with something of JobSet."""
    chart = directory / "released"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": RELEASE, "version": "2.3.0"}))
    container = {"name": "manager", "image": "released", "command": ["/manager"]}
    pod = {"metadata": {"labels": SELECTOR}, "spec": {"containers": [container], "serviceAccountName": MANAGER}}
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": MANAGER},
            "spec": {"selector": {"matchLabels": SELECTOR}, "template": pod},
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": MANAGER}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kubeflow-trainer-webhook-cert"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kubeflow-trainer-config"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "jobset-manager-config"}},
    ]
    (chart / "templates" / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    return chart


def write_as_the_manager(kubectl: Kubectl) -> None:
    """What the manager writes into objects of the release: its certificates, and the authority that signs them."""
    pem = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").decode()
    secret = {"data": {"tls.crt": pem}}
    kubectl.kubectl("patch", "secret/kubeflow-trainer-webhook-cert", "--type=merge", "-p", json.dumps(secret))
    patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": pem}]
    configuration = "validatingwebhookconfiguration/validator.trainer.kubeflow.org"
    kubectl.kubectl("patch", configuration, "--type=json", "-p", json.dumps(patch))


def stored_release(kubectl: Kubectl, revision: int) -> int:
    """Bytes of the Secret in which Helm keeps a revision."""
    data = found(kubectl, "secret", f"sh.helm.release.v1.{RELEASE}.v{revision}")["data"]["release"]
    return len(base64.b64decode(data))


def names(kubectl: Kubectl, kind: str) -> set[str]:
    """Of all objects of a kind."""
    return {obj["metadata"]["name"] for obj in kubectl.list(kind)}


def found(kubectl: Kubectl, kind: str, name: str) -> dict[str, Any]:
    """An object that must be there."""
    obj = kubectl.get(kind, name)
    assert obj is not None
    return obj
