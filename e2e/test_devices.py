"""Devices that are no `nvidia.com/gpu`: what torchrun is to start on a node that has them."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from e2e.claim_templates import claim_templates
from e2e.cluster import IMAGE, Cluster, train_job
from e2e.waiting import until


def claim_template(name: str, device_class: str, number: int) -> dict[str, Any]:
    """Devices of one class for each pod."""
    request = {"name": "devices", "exactly": {"deviceClassName": device_class, "count": number}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def runtime(name: str, resources: dict[str, Any], **pod: Any) -> dict[str, Any]:
    """A torch runtime whose nodes have these resources."""
    container = {"name": "trainer", "image": IMAGE, "resources": resources}
    template = {"spec": {"template": {"spec": {"containers": [container]} | pod}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": name},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {"numProcPerNode": "auto"}},
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": template}]}},
        },
    }


def processes_of(cluster: Cluster, name: str, runtime: str) -> str:
    """The processes of a node of a new TrainJob, which never runs."""
    cluster.apply(train_job(name, "", runtimeRef={"kind": "TrainingRuntime", "name": runtime}, suspend=True))
    jobset = until(lambda: cluster.get("jobset", name), f"{name} has a JobSet")
    (job,) = jobset["spec"]["replicatedJobs"]
    env = job["template"]["spec"]["template"]["spec"]["containers"][0]["env"]
    value: str = next(each["value"] for each in env if each["name"] == "PET_NPROC_PER_NODE")
    return value


@pytest.mark.parametrize(
    ("name", "amount", "expected"),
    [
        pytest.param("nvidia.com/mig-1g.5gb", 1, "auto", id="slice"),
        pytest.param("huawei.com/Ascend910", 4, "4", id="no-gpu"),
        pytest.param("volcano.sh/vgpu-cores", 50, "auto", id="share"),
    ],
)
def test_resources(cluster: Cluster, name: str, amount: int, expected: str) -> None:
    """What torchrun finds itself it counts itself; of other devices it gets the number."""
    cluster.apply(runtime("devices", {"requests": {"cpu": 2}, "limits": {"cpu": 2, name: amount}}))
    assert processes_of(cluster, "devices", "devices") == expected


def test_claims(cluster: Cluster) -> None:
    """Devices that pods claim count by the ResourceClaimTemplate, once the cluster serves such."""
    with claim_templates(cluster):
        cluster.apply(claim_template("cores", "neuron.aws.com", 4))
        claims = {"resourceClaims": [{"name": "devices", "resourceClaimTemplateName": "cores"}]}
        cluster.apply(runtime("claims", {"claims": [{"name": "devices"}]}, **claims))
        attempts = count()
        until(
            lambda: processes_of(cluster, f"claims-{next(attempts)}", "claims") == "4",
            "the manager has found the kind, for which it looks every half a minute",
            timeout=90,
            pause=5,
        )
