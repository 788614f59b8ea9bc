"""Clusters of other people in which the end-to-end tests do not run."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from e2e import foreign
from e2e.cluster import Cluster
from e2e.manager import Manager


@dataclass(slots=True)
class FullCluster(Cluster):
    """What `kubectl get` finds in it."""

    objects: list[dict[str, Any]] = field(default_factory=list)

    def kubectl(
        self, *arguments: str, check: bool = True, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        _, kind, name, *_ = arguments
        found = [each for each in self.objects if each["kind"].lower() in {kind, kind.removesuffix("s")}]
        if name == "-A":
            return subprocess.CompletedProcess(arguments, 0, json.dumps({"items": found}), "")
        text = "".join(json.dumps(each) for each in found if each["metadata"]["name"] == name)
        return subprocess.CompletedProcess(arguments, 0, text, "")


def cluster_with(*objects: dict[str, Any]) -> FullCluster:
    return FullCluster(
        Path("none"),
        Path("none"),
        is_local=False,
        pod_network="",
        manager=Manager([], Path("none")),
        objects=list(objects),
    )


def named(kind: str, name: str, **members: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "namespace": "theirs"}} | members


def definition(*versions: str) -> dict[str, Any]:
    spec = {"versions": [{"name": version} for version in versions]}
    return named("CustomResourceDefinition", "trainjobs.trainer.kubeflow.org", spec=spec)


HELD = {"holderIdentity": "them", "renewTime": "2999-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15}


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        pytest.param(
            named("Deployment", "kubeflow-trainer-controller-manager", spec={}),
            "Deployment theirs/kubeflow-trainer-controller-manager manages TrainJobs",
            id="manager",
        ),
        pytest.param(named("Lease", foreign.LEASE, spec=HELD), "is held by them", id="leader"),
        pytest.param(named("Namespace", "trainer-system"), "namespace trainer-system exists", id="installed"),
        pytest.param(
            definition("v1alpha1"),
            "customresourcedefinition trainjobs.trainer.kubeflow.org lacks version v2alpha1",
            id="definitions-of-the-released-trainer",
        ),
    ],
)
def test_refused(found: dict[str, Any], reason: str) -> None:
    """It is said why, before anything is made."""
    with pytest.raises(pytest.exit.Exception, match=reason):
        foreign.refuse_unless_free(cluster_with(found))


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(named("Namespace", "default"), id="nothing"),
        pytest.param(named("Deployment", "trainer-controller-manager", spec={"replicas": 0}), id="manager-at-rest"),
        pytest.param(
            named("Lease", foreign.LEASE, spec=HELD | {"renewTime": "2001-01-01T00:00:00.000000Z"}), id="leader-is-gone"
        ),
        pytest.param(definition("v1alpha1", "v2alpha1"), id="our-definitions"),
    ],
)
def test_accepted(found: dict[str, Any]) -> None:
    """What is in nobody's way stays."""
    foreign.refuse_unless_free(cluster_with(found))
