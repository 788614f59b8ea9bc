"""Service accounts of new pods."""

from __future__ import annotations

from typing import Any

from packages.devcluster.tests.apiserver.kinds.context import make_context
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.pods.service_account import admit_service_account


def account(name: str = "default", **fields: Any) -> Object:
    return {"kind": "ServiceAccount", "metadata": {"name": name, "namespace": "ns"}, **fields}


def admitted(spec: Object, *accounts: Object) -> Object:
    """The specification of a new pod, after admission."""
    pod = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"containers": [{"name": "c"}], **spec}}
    admit_service_account(pod, make_context(None, *accounts))
    found: Object = pod["spec"]
    return found


def test_another_account() -> None:
    """The pod's own account counts, and gives it its pull secrets unless the pod has some."""
    bot = account("bot", imagePullSecrets=[{"name": "registry"}])
    spec = admitted({"serviceAccountName": "bot"}, bot)
    assert (spec["serviceAccount"], spec["imagePullSecrets"]) == ("bot", [{"name": "registry"}])
    spec = admitted({"serviceAccountName": "bot", "imagePullSecrets": [{"name": "mine"}]}, bot)
    assert spec["imagePullSecrets"] == [{"name": "mine"}]
