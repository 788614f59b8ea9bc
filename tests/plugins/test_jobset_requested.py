"""Which field asks for what a scheduler does not grant."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import train_job
from tests.plugins.test_jobset import static_reader
from tests.plugins.test_jobset_events import jobset
from tests.plugins.test_jobset_pod_problems import unscheduled
from trainer.kube.objects import Object
from trainer.plugins.jobset import JobSetPlugin

GPU = "nvidia.com/gpu"
NO_GPU = f"0/3 nodes are available: 3 Insufficient {GPU}. preemption: 0/3 nodes are available: 3 No preemption victims."
NO_MATCH = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."
OLD_NO_MATCH = "0/3 nodes are available: 3 node(s) didn't match node selector."
TAINTED = f"0/3 nodes are available: 3 node(s) had untolerated taint {{{GPU}: present}}."
MIXED = f"0/5 nodes are available: 1 node(s) had untolerated taint {{a: }}, 2 Insufficient cpu, 2 Insufficient {GPU}."
RUNTIME = "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[node].template.spec.template.spec"
ZONE = {"zone": "a", "disk": "ssd"}
TOLERATION = {"key": GPU, "operator": "Exists"}


def pods(limits: Object | None = None, requests: Object | None = None, **spec: Any) -> Object:
    """The spec of pods with a container that asks for resources."""
    return {
        "containers": [{"name": "trainer", "resources": {"limits": limits or {}, "requests": requests or {}}}]
    } | spec


def override(job: str = "node", **fields: Any) -> Object:
    """A podSpecOverride of the TrainJob."""
    return {"podSpecOverrides": [{"targetJobs": [{"name": "other"}]}, {"targetJobs": [{"name": job}]} | fields]}


def per_node(**kinds: Object) -> Object:
    """The resources that the TrainJob asks for."""
    return {"trainer": {"resourcesPerNode": kinds}}


@pytest.mark.parametrize(
    ("message", "spec", "template", "field"),
    [
        pytest.param(
            NO_GPU,
            per_node(limits={GPU: 8}),
            pods({GPU: "8"}),
            f"too little {GPU}: spec.trainer.resourcesPerNode.limits[{GPU}]: 8 requested: ",
            id="limits",
        ),
        pytest.param(
            NO_GPU,
            per_node(limits={GPU: 4}),
            pods({GPU: "8"}),
            f"too little {GPU}: {RUNTIME}.containers[trainer].resources.limits[{GPU}]: 8 requested: ",
            id="pods-that-have-not-what-the-trainer-asks-for",
        ),
        pytest.param(
            MIXED,
            per_node(limits={"cpu": "500"}, requests={GPU: 8}),
            pods({"cpu": "500"}, {GPU: "8"}),
            f"too little cpu and {GPU}: spec.trainer.resourcesPerNode.limits[cpu]: 500 requested, "
            f"spec.trainer.resourcesPerNode.requests[{GPU}]: 8 requested: ",
            id="several-and-no-taint-of-others",
        ),
        pytest.param("0/1 nodes are available: 1 Too many pods.", {}, pods(), "", id="no-field"),
        pytest.param(NO_GPU, {}, pods(), f"too little {GPU}: ", id="nobody-asks"),
        pytest.param(
            NO_MATCH,
            override(nodeSelector=ZONE),
            pods(nodeSelector=ZONE),
            "spec.podSpecOverrides[1].nodeSelector: zone=a,disk=ssd asked for: ",
            id="node-selector",
        ),
        pytest.param(
            OLD_NO_MATCH,
            override("launcher", nodeSelector=ZONE),
            pods(nodeSelector=ZONE),
            f"{RUNTIME}.nodeSelector: zone=a,disk=ssd asked for: ",
            id="node-selector-of-the-runtime",
        ),
        pytest.param(
            NO_MATCH, {}, pods(affinity={"nodeAffinity": {"a": {}}}), f"{RUNTIME}.affinity.nodeAffinity: ",
            id="affinity",
        ),
        pytest.param(
            TAINTED, override(tolerations=[TOLERATION]), pods(tolerations=[TOLERATION]),
            "spec.podSpecOverrides[1].tolerations: ", id="tolerations",
        ),
    ],
)  # fmt: skip
def test_the_field_that_asks(message: str, spec: Any, template: Object, field: str) -> None:
    """It comes before the words of the scheduler, with how much it asks for, behind what there is too little of."""
    reader = static_reader(jobset(pods=template), unscheduled(message=message))
    (wait,) = JobSetPlugin(reader).train_job_status(train_job(**spec)).problems
    assert (wait.reason, wait.headline) == ("Unschedulable", "1 pod cannot start")
    assert wait.details() == f"{field}pod demo-node-0-0-a: {message}"


@pytest.mark.parametrize("amount", ["1e999999", "8Gi?", ""])
def test_amounts_that_are_none(amount: str) -> None:
    """A runtime that nobody has checked may ask for anything."""
    reader = static_reader(jobset(pods=pods({GPU: amount})), unscheduled(message=NO_GPU))
    (wait,) = JobSetPlugin(reader).train_job_status(train_job(**per_node(limits={GPU: 1}))).problems
    asked = f"{RUNTIME}.containers[trainer].resources.limits[{GPU}]: {amount} requested: "
    assert wait.details().startswith(f"too little {GPU}: {asked}")
