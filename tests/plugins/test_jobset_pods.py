"""Pods that Kubernetes accepts, although at first sight something is missing or does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from trainer.framework.building.extraction import extract
from trainer.kube.objects import Object
from trainer.plugins.jobset.checks import check_pods, check_references

MOUNT = {"name": "data", "mountPath": "/data"}
VOLUME = {"name": "data", "emptyDir": {}}
CLAIM = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {}}}


def trainer(**fields: Any) -> Object:
    """The container that trains."""
    return {"name": "trainer", "image": "image"} | fields


def problems(job: dict[str, Any], *jobs: Object, jobset: Object | None = None) -> list[str]:
    """What is wrong with the pods and the JobSet."""
    train = train_job(**job)
    info = extract(train, runtime(*jobs, jobset=jobset))
    return [str(error) for error in (*check_references(info), *check_pods(info, train))]


@pytest.mark.parametrize(
    ("job", "replicated", "jobset"),
    [
        pytest.param(
            {}, replicated_job("node", trainer(volumeMounts=[MOUNT]), pod={"volumes": [VOLUME]}), {}, id="volume"
        ),
        pytest.param(
            {"podSpecOverrides": [{"targetJobs": [{"name": "Node"}], "volumes": [VOLUME]}]},
            replicated_job("node", trainer(volumeMounts=[MOUNT])),
            {},
            id="volume-of-an-override",
        ),
        pytest.param(
            {},
            replicated_job("node", trainer(volumeMounts=[MOUNT])),
            {"volumeClaimPolicies": [{"templates": [CLAIM]}]},
            id="claim-of-the-jobset",
        ),
        pytest.param({"trainer": {"image": "mine"}}, replicated_job("node", {"name": "trainer"}), {}, id="image"),
        pytest.param(
            {"trainer": {"resourcesPerNode": {"requests": {"cpu": "8"}, "limits": {"cpu": "8"}}}},
            replicated_job("node", trainer(resources={"requests": {"cpu": "4"}, "limits": {"cpu": "4"}})),
            {},
            id="limit-of-the-train-job",
        ),
        pytest.param(
            {},
            replicated_job("node", trainer(resources={"requests": {"cpu": "1000m"}, "limits": {"cpu": 1}})),
            {},
            id="equal-amounts",
        ),
        pytest.param(
            {},
            replicated_job(
                "node", trainer(resources={"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": 2}})
            ),
            {},
            id="devices",
        ),
        pytest.param(
            {"trainer": {"numNodes": 3}},
            replicated_job(),
            {"coordinator": {"replicatedJob": "node", "podIndex": 2}},
            id="coordinator-on-a-node-of-the-train-job",
        ),
        pytest.param(
            {}, replicated_job(), {"successPolicy": {"operator": "Any", "targetReplicatedJobs": ["Node"]}}, id="target"
        ),
    ],
)
def test_accepted(job: dict[str, Any], replicated: Object, jobset: Object) -> None:
    """What belongs together may be said in different places, and in different words."""
    assert problems(job, replicated, jobset=jobset) == []


def test_the_place_of_the_mistake_is_named() -> None:
    """A mount is blamed on the override that it comes from, a resource on whoever set the amount."""
    override = {"targetJobs": [{"name": "node"}], "containers": [{"name": "trainer", "volumeMounts": [MOUNT]}]}
    other = MOUNT | {"mountPath": "/other"}

    job = {"podSpecOverrides": [override], "trainer": {"resourcesPerNode": {"requests": {"cpu": 2}}}}
    container = trainer(volumeMounts=[other], resources={"limits": {"cpu": 1}})

    of_runtime, of_override, of_trainer = problems(job, replicated_job("node", container))

    rule = 'Invalid value: "data": is not a volume of the pods of node'
    pod = "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[node].template.spec.template.spec"
    assert of_runtime == f"{pod}.containers[trainer].volumeMounts[0].name: {rule}"
    assert of_override == f"spec.podSpecOverrides[0].containers[0].volumeMounts[0].name: {rule}"
    assert of_trainer == (
        "spec.trainer.resourcesPerNode.requests[cpu]: Invalid value: 2: must be less than or equal to cpu limit of 1"
    )


CLAIMED = {"trainer": {"resourcesPerNode": {"claims": [{"name": "gpu"}]}}}


def test_claims_of_devices() -> None:
    """The trainer can only use what its pods claim, which the runtime says."""
    own = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}
    assert problems(CLAIMED, replicated_job("node", trainer(), pod=own)) == []
    assert problems(CLAIMED, replicated_job("node", trainer())) == [
        (
            'spec.trainer.resourcesPerNode.claims[0].name: Invalid value: "gpu": is not a resourceClaim of the pods of '
            "node of ClusterTrainingRuntime/blueprint; they have none"
        )
    ]


@pytest.mark.parametrize(
    "label",
    [
        "job-name",
        "batch.kubernetes.io/job-name",
        "jobset.sigs.k8s.io/jobset-name",
        "trainer.kubeflow.org/trainjob-ancestor-step",
    ],
)
def test_labels_of_others(label: str) -> None:
    """Kubernetes refuses a Job whose pods have another's name, and nobody would find the pods."""
    assert problems({"labels": {label: "x", "app": "y"}}) == [
        f"spec.labels[{label}]: Forbidden: is for JobSet and Kubernetes to set on Jobs and pods; remove it"
    ]


PAGES = "hugepages-2Mi"
AT_TRAINER = (
    "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[node].template.spec.template.spec."
    "containers[trainer].resources"
)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param({"requests": {PAGES: "4Mi", "cpu": 1}, "limits": {PAGES: "4Mi"}}, [], id="as-they-should-be"),
        pytest.param(
            {"requests": {PAGES: "4Mi", "cpu": 1}},
            [
                (
                    f'{AT_TRAINER}.requests[{PAGES}]: Invalid value: "4Mi": must be equal to the {PAGES} limit, '
                    "which is none: it cannot be shared"
                )
            ],
            id="no-limit",
        ),
        pytest.param(
            {"limits": {PAGES: "4Mi"}},
            [f"{AT_TRAINER}: Required value: huge pages need cpu or memory beside them"],
            id="alone",
        ),
    ],
)
def test_huge_pages(resources: Object, expected: list[str]) -> None:
    """They are set aside like devices, and Kubernetes wants cpu or memory beside them."""
    assert problems({}, replicated_job("node", trainer(resources=resources))) == expected
