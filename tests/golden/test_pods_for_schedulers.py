"""What schedulers and queues go by reaches the objects where they look: the pods, the Jobs and the JobSet."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhooks.nets import pipeline
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TrainJob
from trainer.framework.runtimes.runtimes import read_runtime
from trainer.kube.objects import Object, name_of
from trainer.v1alpha1.client import decoded
from trainer.v1alpha1.discovery import Version
from trainer.workloads import JOBSETS

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "gangs"
SHIPPED: dict[Version, Path] = {
    "v2alpha1": ROOT / "config" / "runtimes",
    "v1alpha1": ROOT / "config" / "v1alpha1" / "runtimes",
}
KAI: Object = {"labels": {"kai.scheduler/queue": "research"}}
KUEUE: Object = {
    "labels": {"kueue.x-k8s.io/queue-name": "research", "kueue.x-k8s.io/priority-class": "high"},
    "annotations": {"kueue.x-k8s.io/podset-required-topology": "topology.kubernetes.io/rack"},
}
VOLCANO: Object = {"annotations": {"volcano.sh/preemptable": "true"}}
SCHEDULERS = [
    pytest.param("kai-scheduler", KAI, id="KAI"),
    pytest.param("default-scheduler", KUEUE, id="Kueue"),
    pytest.param("volcano", VOLCANO, id="Volcano"),
]
TOPOLOGY: Object = {
    "annotations": {
        "kai.scheduler/topology": "datacenter",
        "kai.scheduler/topology-required-placement": "topology.kubernetes.io/rack",
    },
    "labels": {"kai.scheduler/queue": "research"},
}


def documents(path: Path) -> list[Object]:
    """The objects in a file."""
    return list(yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader))


def shipped(version: Version) -> list[Object]:
    """The runtimes that are shipped for an API version."""
    found = [obj for file in sorted(SHIPPED[version].glob("*.yaml")) for obj in documents(file)]
    return [obj for obj in found if obj["kind"] == CLUSTER_TRAINING_RUNTIMES.kind]


RUNTIMES = [
    pytest.param(version, runtime, id=f"{version}-{name_of(runtime)}")
    for version in SHIPPED
    for runtime in shipped(version)
]


def jobset(version: Version, runtime: Object, **spec: Any) -> Object:
    """The JobSet of a TrainJob on a runtime."""
    train_job: Object = {
        "apiVersion": f"trainer.kubeflow.org/{version}",
        "kind": "TrainJob",
        "metadata": {"name": "demo", "namespace": "default", "uid": "u"},
        "spec": {"runtimeRef": {"name": name_of(runtime)}} | spec,
    }
    found = read_runtime(CLUSTER_TRAINING_RUNTIMES, decoded(runtime))
    components = pipeline(version).build(TrainJob.from_object(decoded(train_job)), found)
    (made,) = [each.object for each in components if each.resource == JOBSETS]
    return made


def jobs_of(template: Object) -> dict[str, Object]:
    """The Job templates of a JobSet, or of the template of one, by the names of the replicated Jobs."""
    return {job["name"]: job["template"] for job in template["spec"]["replicatedJobs"]}


def add(place: Object, metadata: Object) -> None:
    """Give a template labels and annotations, beside those that it has."""
    own = place.setdefault("metadata", {})
    for kind, values in metadata.items():
        own[kind] = own.get(kind, {}) | values


def has(place: Object, metadata: Object) -> bool:
    """Whether an object has these labels and annotations."""
    own = place.get("metadata") or {}
    return all(values.items() <= (own.get(kind) or {}).items() for kind, values in metadata.items())


@pytest.mark.parametrize(("scheduler", "metadata"), SCHEDULERS)
@pytest.mark.parametrize(("version", "runtime"), RUNTIMES)
def test_pods_of_the_runtime(version: Version, runtime: Object, scheduler: str, metadata: Object) -> None:
    """Scheduler, labels and annotations of pod templates reach the pods of every step, whatever the framework."""
    own = copy.deepcopy(runtime)
    for job in jobs_of(own["spec"]["template"]).values():
        pods = job["spec"]["template"]
        add(pods, metadata)
        pods["spec"]["schedulerName"] = scheduler

    made = {name: job["spec"]["template"] for name, job in jobs_of(jobset(version, own)).items()}

    assert made.keys() >= jobs_of(own["spec"]["template"]).keys()
    assert {name: pods["spec"].get("schedulerName") for name, pods in made.items()} == dict.fromkeys(made, scheduler)
    assert [name for name, pods in made.items() if not has(pods, metadata)] == []


@pytest.mark.parametrize(("version", "runtime"), RUNTIMES)
def test_jobs_and_jobset_of_the_runtime(version: Version, runtime: Object) -> None:
    """Labels and annotations of the JobSet and of Jobs stay where they are, and pods get none of them."""
    own = copy.deepcopy(runtime)
    least: Object = {"annotations": {"kai.scheduler/batch-min-member": "1"}}
    add(own["spec"]["template"], TOPOLOGY)
    for job in jobs_of(own["spec"]["template"]).values():
        add(job, least)

    made = jobset(version, own)

    assert has(made, TOPOLOGY)
    assert [name for name, job in jobs_of(made).items() if not has(job, least)] == []
    assert not any(has(job["spec"]["template"], least) for job in jobs_of(made).values())


@pytest.mark.parametrize("policy", [{}, {"coscheduling": {}}, {"volcano": {}}, {"workload": {}}], ids=str)
@pytest.mark.parametrize("version", SHIPPED)
def test_beside_a_gang_policy(version: Version, policy: Object) -> None:
    """What the gang's own scheduler goes by comes beside the labels and annotations of the runtime."""
    own = copy.deepcopy(next(each for each in shipped(version) if name_of(each) == "torch-distributed"))
    own["spec"]["podGroupPolicy"] = policy
    add(jobs_of(own["spec"]["template"])["node"]["spec"]["template"], KUEUE)

    made = jobset(version, own)

    assert has(jobs_of(made)["node"]["spec"]["template"], KUEUE)


def patch(**template: Any) -> list[Object]:
    """The runtime patches with which a user changes the JobSet."""
    return [{"manager": "example.com/me", "trainingRuntimeSpec": {"template": template}}]


@pytest.mark.parametrize(
    ("version", "spec", "places"),
    [
        pytest.param("v2alpha1", TOPOLOGY, {"jobset", "job", "pods"}, id="v2alpha1-labels"),
        pytest.param("v2alpha1", {"jobSetMetadata": TOPOLOGY}, {"jobset"}, id="v2alpha1-jobset"),
        pytest.param(
            "v2alpha1",
            {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], "metadata": TOPOLOGY}]},
            {"pods"},
            id="v2alpha1-pods",
        ),
        pytest.param(
            "v2alpha1",
            {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], "jobMetadata": TOPOLOGY}]},
            {"job"},
            id="v2alpha1-job",
        ),
        pytest.param("v1alpha1", {"runtimePatches": patch(metadata=TOPOLOGY)}, {"jobset"}, id="v1alpha1-jobset"),
        pytest.param(
            "v1alpha1",
            {
                "runtimePatches": patch(
                    spec={"replicatedJobs": [{"name": "node", "template": {"metadata": TOPOLOGY}}]},
                )
            },
            {"job"},
            id="v1alpha1-job",
        ),
        pytest.param(
            "v1alpha1",
            {
                "runtimePatches": patch(
                    spec={
                        "replicatedJobs": [
                            {"name": "node", "template": {"spec": {"template": {"metadata": TOPOLOGY}}}},
                        ]
                    }
                )
            },
            {"pods"},
            id="v1alpha1-pods",
        ),
    ],
)
def test_train_job(version: Version, spec: Object, places: set[str]) -> None:
    """A TrainJob gives them to the JobSet, to Jobs or to pods, as its author chooses."""
    runtime = next(each for each in shipped(version) if name_of(each) == "torch-distributed")

    made = jobset(version, runtime, **spec)

    node = jobs_of(made)["node"]
    found = {"jobset": made, "job": node, "pods": node["spec"]["template"]}
    assert {place for place, obj in found.items() if has(obj, TOPOLOGY)} == places


def named(path: str, kind: str) -> list[str]:
    """Names of the objects of a kind in a file of the examples."""
    return [name_of(obj) for obj in documents(EXAMPLES / path) if obj["kind"] == kind]


def test_examples_fit_the_objects_beside_them() -> None:
    """Queues, topologies and claim templates that the examples name are in the files beside them."""
    runtime, train_job = documents(EXAMPLES / "kueue" / "trainjob.yaml")
    queue = train_job["spec"]["labels"]["kueue.x-k8s.io/queue-name"]
    assert [queue] == named("kueue/queues.yaml", "LocalQueue") == named("kueue/multikueue.yaml", "LocalQueue")
    (topology,) = [obj for obj in documents(EXAMPLES / "kueue" / "queues.yaml") if obj["kind"] == "Topology"]
    node = jobs_of(runtime["spec"]["template"])["node"]["spec"]["template"]
    rack = node["metadata"]["annotations"]["kueue.x-k8s.io/podset-required-topology"]
    assert rack in [level["nodeLabel"] for level in topology["spec"]["levels"]]

    runtime, _ = documents(EXAMPLES / "kai" / "trainjob.yaml")
    template = runtime["spec"]["template"]
    labels = jobs_of(template)["node"]["spec"]["template"]["metadata"]["labels"]
    assert labels["kai.scheduler/queue"] in named("kai/queues.yaml", "Queue")
    (topology,) = documents(EXAMPLES / "kai" / "topology.yaml")
    annotations = template["metadata"]["annotations"]
    assert annotations["kai.scheduler/topology"] == name_of(topology)
    place = annotations["kai.scheduler/topology-required-placement"]
    assert place in [level["nodeLabel"] for level in topology["spec"]["levels"]]

    runtime, _ = documents(EXAMPLES / "nvlink" / "trainjob.yaml")
    (domain,) = documents(EXAMPLES / "nvlink" / "compute-domain.yaml")
    (claim,) = jobs_of(runtime["spec"]["template"])["node"]["spec"]["template"]["spec"]["resourceClaims"]
    assert claim["resourceClaimTemplateName"] == domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
